"""Runs of connectors as those see them who start and end them, one by one or together."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from typing import Final, Protocol

from headrace.kafka.deadline import Deadline
from headrace.runtime.connector_run import ConnectorRun
from headrace.runtime.services import RunSpec, Services
from headrace.runtime.task_status import RunWatcher

LEAVE_SECONDS: Final = 15.0
"""What a run may take beyond the grace that its tasks get: to withdraw, to fence and to write the status."""


class Run(Protocol):
    """A connector that runs; see :class:`~headrace.runtime.connector_run.ConnectorRun`."""

    def start(self) -> None:
        """Begin, on a thread of its own."""
        ...

    def ask_to_stop(self) -> None:
        """Return at once; the end is told to the watcher."""
        ...

    def silence(self) -> None:
        """Write no status any more."""
        ...

    def join(self, timeout_seconds: float | None = None) -> bool:
        """Wait for the end; whether it has come."""
        ...


NewRun = Callable[[RunSpec, Services, RunWatcher], Run]
"""Makes a run that has not been started."""


def stop_all(
    runs: Sequence[Run], *, grace: float, clock: Callable[[], float] = time.monotonic
) -> None:
    """Ask all *runs* to stop, and return when they have ended, or their time is over; *grace* is in seconds.

    One that does not end in time is left to its lease: it cannot write once the process is gone.
    """
    for run in runs:
        run.ask_to_stop()
    deadline = Deadline.after(grace + LEAVE_SECONDS, clock)
    for run in runs:
        run.join(deadline.remaining())


_LOOK_SECONDS = 0.2


class Worker:
    """The connectors of one process. One thread owns it.

    ``ask_to_stop`` may come from any thread, and from a signal's handler, which may interrupt the owner
    anywhere: also where it holds a lock. So it takes none.
    """

    def __init__(self, services: Services) -> None:
        self._services = services
        self._runs: list[ConnectorRun] = []
        self._stopping = False

    def start(self, specs: Iterable[RunSpec]) -> None:
        """Start a thread per connector; returns at once."""
        for spec in specs:
            run = ConnectorRun(spec, self._services)
            self._runs.append(run)
            run.start()

    def ask_to_stop(self) -> None:
        """Let :meth:`wait` stop everything and return; heeded within moments."""
        self._stopping = True

    def stop(self) -> None:
        """Ask everything to stop and wait until it has; nothing when it has already."""
        self.ask_to_stop()
        self.wait()

    def wait(self) -> dict[str, Exception]:
        """Wait until every connector has ended, or until asked to stop and they have.

        The failures by connector; empty when all is well. Connectors that do not end in time are left to
        their leases: they cannot write once their process is gone.
        """
        for run in self._runs:
            while not self._stopping and not run.join(_LOOK_SECONDS):
                pass
        stop_all(self._runs, grace=self._services.timing.grace)
        return {run.name: run.failure for run in self._runs if run.failure is not None}
