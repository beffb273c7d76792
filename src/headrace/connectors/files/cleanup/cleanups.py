"""Cleans up after commits, on threads of its own, so that nothing has to wait for it."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import Protocol

from headrace.connect.partition import SourceOffset

_THREADS = 4
_FIRST_BACKOFF_SECONDS = 1.0
_LAST_BACKOFF_SECONDS = 300.0
# A run that ends with its work waits for so many attempts of each file, and leaves the rest to the next run.
_WAITED_FOR = 3


class Outcome(Enum):
    """What became of a file that was to be cleaned up."""

    DONE = auto()
    """It was done just now."""
    GONE = auto()
    """It was not there. Its place may only be away for a moment, so that it may be seen again."""
    CHANGED = auto()
    """It is another one by now and was left alone."""


class Cleaner(Protocol):
    """What cleans up; see :class:`~headrace.connectors.files.cleanup.cleaner.Cleanup`."""

    def clean(self, path: str, entry: SourceOffset) -> Outcome:
        """Do it to the file at *path*, as long as it is still the one of *entry*."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Cleaned:
    """A file that is done with, and how."""

    path: str
    entry: SourceOffset
    outcome: Outcome


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """Why a file could not be cleaned up, how often that was tried, and when it is tried again, by the clock."""

    reason: str
    attempts: int
    due: float


class Cleanups:
    """Files that are to be cleaned up. Its threads end with :meth:`stop`, or with the process.

    The connector's thread calls every method; one lock guards what its own threads share with it.
    """

    def __init__(
        self, cleaner: Callable[[], Cleaner], *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._cleaner = cleaner
        self._clock = clock
        self._changed = threading.Condition()
        # Not all clients of stores may be made by several threads at once.
        self._making = threading.Lock()
        self._waiting = deque[tuple[str, SourceOffset]]()
        self._running = set[str]()
        self._done = dict[str, Cleaned]()
        self._threads = list[threading.Thread]()
        self._stopped = False
        self._failures = dict[str, Failure]()

    def ask(self, entries: Mapping[str, SourceOffset]) -> None:
        """Begin with all of *entries* that is not under way and has not failed a short time ago."""
        now = self._clock()
        with self._changed:
            # What is not asked for any more is no one's failure.
            for path in self._failures.keys() - entries.keys():
                del self._failures[path]
            for path, entry in entries.items():
                failed = self._failures.get(path)
                if path in self._running or path in self._done:
                    continue
                if failed is None or failed.due <= now:
                    self._running.add(path)
                    self._waiting.append((path, entry))
            missing = min(_THREADS, len(self._waiting)) - len(self._threads)
            started = [self._thread() for _ in range(missing)]
            self._threads += started
            self._changed.notify_all()
        for thread in started:
            thread.start()

    def failures(self) -> Mapping[str, Failure]:
        """What could not be done so far, by path."""
        with self._changed:
            return dict(self._failures)

    def under_way(self) -> set[str]:
        """The paths that are being cleaned up, or have been and are not :meth:`taken` yet."""
        with self._changed:
            return self._running | self._done.keys()

    def taken(self, *, wait_seconds: float = 0.0) -> Sequence[Cleaned]:
        """What is done since the last call; waits at most *wait_seconds* until nothing is under way."""
        with self._changed:
            self._changed.wait_for(lambda: not self._running, wait_seconds)
            done, self._done = self._done, {}
            return list(done.values())

    def again_after(self) -> float | None:
        """In how many seconds there may be something to take or to ask for again; ``None``: not soon."""
        with self._changed:
            if self._running:
                return _FIRST_BACKOFF_SECONDS
            due = [each.due for each in self._failures.values() if each.attempts < _WAITED_FOR]
        return max(0.01, min(due) - self._clock()) if due else None

    def stop(self) -> None:
        """Begin nothing any more; returns at once. What is left is begun again at the next start."""
        with self._changed:
            self._stopped = True
            self._changed.notify_all()

    def _thread(self) -> threading.Thread:
        # A daemon: a store that does not answer must not hold the process beyond its end.
        return threading.Thread(target=self._work, name="headrace-after-commit", daemon=True)

    def _work(self) -> None:
        cleaner: Cleaner | None = None
        while (job := self._next()) is not None:
            path, entry = job
            try:
                cleaner = cleaner or self._made()
                outcome = cleaner.clean(path, entry)
            except Exception as error:  # noqa: BLE001 (whatever it was, it is told and tried again)
                self._failed(path, str(error) or type(error).__name__)
            else:
                self._ended(path, Cleaned(path=path, entry=entry, outcome=outcome))

    def _made(self) -> Cleaner:
        with self._making:
            return self._cleaner()

    def _next(self) -> tuple[str, SourceOffset] | None:
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._stopped)
            return None if self._stopped else self._waiting.popleft()

    def _ended(self, path: str, cleaned: Cleaned) -> None:
        with self._changed:
            self._failures.pop(path, None)
            self._running.discard(path)
            self._done[path] = cleaned
            self._changed.notify_all()

    def _failed(self, path: str, reason: str) -> None:
        with self._changed:
            before = self._failures.get(path)
            attempts = 1 + (before.attempts if before else 0)
            seconds = min(_FIRST_BACKOFF_SECONDS * 2 ** (attempts - 1), _LAST_BACKOFF_SECONDS)
            due = self._clock() + seconds
            self._failures[path] = Failure(reason=reason, attempts=attempts, due=due)
            self._running.discard(path)
            self._changed.notify_all()
