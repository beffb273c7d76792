"""Runs what a connector of the mirror does at intervals beside its plans, on a thread of its own."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from contextvars import copy_context
from typing import Final, NamedTuple

from headrace.connect.errors import ConnectError
from headrace.kafka.deadline import Clock

_log = logging.getLogger(__name__)

_AGAIN_SECONDS: Final = 60.0
# While a cluster is away, sentences differ in what was asked.
_REPORT_SECONDS: Final = 600.0


class Scheduled(NamedTuple):
    """*run* is called at once and then every *seconds*; without them, until it has not raised.

    *what* completes "… failed".
    """

    what: str
    run: Callable[[], None]
    seconds: float | None = None


def connector_thread(name: str, run: Callable[[], None]) -> threading.Thread:
    """A thread of a connector, not yet started, in the context of the caller's: log lines there name the flow."""
    return threading.Thread(target=copy_context().run, args=(run,), name=name, daemon=True)


class Scheduler:
    """Runs the *jobs* of a connector, one after the other. One that raises is tried again.

    That is logged once until it succeeds, which is logged, too; another reason meanwhile after ten minutes. An error that nobody
    expects is logged with its trace.

    *closed* are closed at the end, on the same thread: clients that only the jobs use.
    """

    def __init__(
        self,
        connector: str,
        jobs: Sequence[Scheduled],
        *,
        closed: Callable[[], None] = lambda: None,
        clock: Clock = time.monotonic,
    ) -> None:
        self._connector = connector
        self._jobs = jobs
        self._closed = closed
        self._clock = clock
        self._stopping = threading.Event()
        self._reported: dict[str, tuple[str, float]] = {}
        self._thread = connector_thread(f"{connector} jobs", self._run)

    def start(self) -> None:
        """Begin, unless it has begun."""
        if self._thread.ident is None:
            self._thread.start()

    def stop(self) -> None:
        """Begin no further job; returns at once, one that is under way ends by itself."""
        self._stopping.set()

    def _run(self) -> None:
        due: dict[str, float] = {job.what: self._clock() for job in self._jobs}
        while due and not self._stopping.wait(max(0.0, min(due.values()) - self._clock())):
            for job in self._jobs:
                if self._stopping.is_set():
                    break
                if job.what in due and due[job.what] <= self._clock():
                    self._do(job, due)
        with suppress(ConnectError):
            self._closed()

    def _do(self, job: Scheduled, due: dict[str, float]) -> None:
        again = job.seconds
        try:
            job.run()
        except Exception as error:  # noqa: BLE001 (one job must not end the others)
            self._report(job, error)
            again = min(again or _AGAIN_SECONDS, _AGAIN_SECONDS)
        else:
            if self._reported.pop(job.what, None) is not None:
                _log.info("Connector %s: %s succeeded after all", self._connector, job.what)
        if again is None:
            del due[job.what]
        else:
            due[job.what] = self._clock() + again

    def _report(self, job: Scheduled, error: Exception) -> None:
        reported, at = self._reported.get(job.what, ("", -_REPORT_SECONDS))
        reason, now = str(error) or repr(error), self._clock()
        if not reported or (reported != reason and now >= at + _REPORT_SECONDS):
            self._reported[job.what] = reason, now
            _log.warning(
                "Connector %s: %s failed, and is tried again: %s",
                self._connector,
                job.what,
                reason,
                exc_info=None if isinstance(error, ConnectError) else error,
            )
