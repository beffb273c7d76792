"""The one session of an engine: opened by whoever needs it first, closed without waiting for anybody."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Generic, TypeVar

from headrace.connect.errors import RetriableError

Session = TypeVar("Session")

# PySpark keeps its gateway and its session in class attributes, so a process opens one at a time.
_process = threading.Lock()


class SessionKeeper(Generic[Session]):
    """Threads: any may ask for :meth:`session`; one of them opens it, the others wait for it.

    Opening may take for ever: a cluster without free cores, a server that does not answer. So no lock that
    :meth:`close` needs is held meanwhile. *open_one* opens and leaves nothing behind when it raises, *stop*
    ends a session in a moment, *discard* clears a lost one away, which may take long, too, and *abandon*
    makes either of the two that take long fail soon, where that can be done; another thread calls it.
    """

    def __init__(
        self,
        *,
        open_one: Callable[[], Session],
        stop: Callable[[Session], None],
        discard: Callable[[Session], None],
        abandon: Callable[[], None],
    ) -> None:
        self._open_one = open_one
        self._stop = stop
        self._discard = discard
        self._abandon = abandon
        self._changed = threading.Condition()
        self._session: Session | None = None
        self._busy = False
        self._under_way = False
        self._closed = False

    def session(self) -> Session:
        """The session, opened when there is none.

        Raises what opening it raises, and :class:`~headrace.connect.errors.RetriableError` once closed.
        """
        with self._changed:
            self._changed.wait_for(lambda: self._closed or not self._busy)
            self.check_open()
            if self._session is not None:
                return self._session
            self._busy = True
        with self._alone():
            return self._opened()

    def opened(self) -> Session | None:
        """The session if there is one now; opens none and waits for none."""
        with self._changed:
            return self._session

    def replace(self, session: Session) -> bool:
        """Clear *session*, which is lost, away; ``False`` when somebody else has done so already."""
        with self._changed:
            if self._session is not session:
                return False
            self._session, self._busy = None, True
        with self._alone():
            self._discard(session)
        return True

    def close(self) -> None:
        """Stop the session; one that is being opened is given up without waiting for it."""
        with self._changed:
            self._closed = True
            session, self._session = self._session, None
            under_way = self._under_way
            self._changed.notify_all()
        if session is not None:
            self._stop(session)
        elif under_way:
            self._abandon()

    def check_open(self) -> None:
        """Raise :class:`~headrace.connect.errors.RetriableError` once closed; *open_one* asks between steps."""
        if self._closed:
            raise _too_late()

    @contextmanager
    def _alone(self) -> Generator[None]:
        try:
            with _process:
                with self._changed:
                    self.check_open()
                    self._under_way = True
                yield
        finally:
            with self._changed:
                self._busy = self._under_way = False
                self._changed.notify_all()

    def _opened(self) -> Session:
        try:
            session = self._open_one()
        except Exception as error:
            if self._closed:
                raise _too_late() from error
            raise
        with self._changed:
            if not self._closed:
                self._session = session
                return session
        self._stop(session)
        raise _too_late()


def _too_late() -> RetriableError:
    return RetriableError("Spark is not opened any more: its worker has been closed.")
