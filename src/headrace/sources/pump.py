"""A thread that reads ahead, and the bounded queue between it and the task's ``poll``."""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Generator
from contextlib import closing
from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")
_log = logging.getLogger(__name__)

# Fits into the time that a worker gives a task to stop.
_CLOSE_SECONDS = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """How much may wait in the queue. One piece always fits, however large it is."""

    records: int
    bytes: int


class Pump(Generic[T]):
    """Runs *produce* on a thread of its own and hands over what it yields, in order.

    *size* tells records and bytes of a piece. *ending* is set by :meth:`close`: whoever waits inside
    *produce* waits for it, and then returns. An exception of *produce* is raised by :meth:`take`, after
    everything that was yielded before it.
    """

    def __init__(
        self,
        produce: Callable[[], Generator[T]],
        *,
        size: Callable[[T], tuple[int, int]],
        bounds: Bounds,
        name: str,
        ending: threading.Event,
    ) -> None:
        self._produce = produce
        self._size = size
        self._bounds = bounds
        self._pieces = deque[T]()
        self._records = self._bytes = 0
        self._changed = threading.Condition()
        self._ending = ending
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        """Start reading, when that has not begun."""
        if self._thread.ident is None:
            self._thread.start()

    def take(self, seconds: float) -> T | None:
        """The next piece; ``None`` when none came within *seconds*. Raises what ended the thread."""
        with self._changed:
            self._changed.wait_for(lambda: self._pieces or self._failure, seconds)
            if self._pieces:
                piece = self._pieces.popleft()
                records, size = self._size(piece)
                self._records -= records
                self._bytes -= size
                self._changed.notify_all()
                return piece
            if self._failure is not None:
                raise self._failure
            return None

    def close(self, seconds: float | None = _CLOSE_SECONDS) -> None:
        """Ask the thread to end and wait for it, for at most so many *seconds* if any; what is queued is dropped.

        A thread that hangs in the source is left behind: it can hand over nothing more.
        """
        with self._changed:
            self._ending.set()
            self._pieces.clear()
            self._changed.notify_all()
        if self._thread.ident is not None:
            self._thread.join(seconds)
            if self._thread.is_alive():
                _log.warning("%s does not end; it is left behind.", self._thread.name)

    def _run(self) -> None:
        try:
            # Closed here and now: what it reads is open until then.
            with closing(self._produce()) as pieces:
                for piece in pieces:
                    if not self.put(piece):
                        return
        except BaseException as error:  # noqa: BLE001 (whatever it was, poll raises it)
            with self._changed:
                self._failure = error
                self._changed.notify_all()

    def put(self, piece: T) -> bool:
        """Queue *piece* when there is room; ``False`` when the pump was closed meanwhile.

        For *produce* itself, too, while it works at what it yields next.
        """
        records, size = self._size(piece)
        with self._changed:
            self._changed.wait_for(lambda: self._ending.is_set() or self._has_room(records, size))
            if self._ending.is_set():
                return False
            self._pieces.append(piece)
            self._records += records
            self._bytes += size
            self._changed.notify_all()
            return True

    def _has_room(self, records: int, size: int) -> bool:
        if not self._pieces:
            return True
        bounds = self._bounds
        return self._records + records <= bounds.records and self._bytes + size <= bounds.bytes
