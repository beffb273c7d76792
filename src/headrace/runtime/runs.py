"""Runs of connectors, as those see them who start and end them."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Final, Protocol

from headrace.kafka.deadline import Deadline
from headrace.runtime.running.run_watcher import RunWatcher
from headrace.runtime.services import RunSpec, Services

LEAVE_SECONDS: Final = 15.0
"""What a run may take beyond the grace that its tasks get: to withdraw, to fence and to write the status."""


class Run(Protocol):
    """A connector that runs; see :class:`~headrace.runtime.running.connector_run.ConnectorRun`."""

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
