"""What a herder knows of a connector's run: how it is started and stopped, and what it reports."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Final, Protocol

from headrace.kafka.deadline import Deadline
from headrace.runtime.services import RunSpec, Services

LEAVE_SECONDS: Final = 15.0
"""How long a run may take after its tasks' grace period, to withdraw tokens, to fence and to write the status."""


class RunWatcher(Protocol):
    """Is notified by one run, on the run's thread; returns soon and never raises, but for ``has_tasks``."""

    def has_tasks(self, configs: Sequence[Mapping[str, str]]) -> None:
        """The connector has these tasks now, each with its configuration with secrets resolved; returns once they are stored.

        No slot starts before. Raises :class:`~headrace.connect.errors.RetriableError` when they cannot be stored.
        """
        ...

    def has_begun(self) -> None:
        """The connector has started, or its start failed with a retriable error. May be called repeatedly."""
        ...

    def has_ended(self, failure: Exception | None) -> None:
        """The run is over: nothing of it writes any more. Called once, as the last call."""
        ...


class Run(Protocol):
    """A connector that runs; see :class:`~headrace.runtime.connector_run.ConnectorRun`."""

    @property
    def failure(self) -> Exception | None:
        """Why the connector has failed, or does not read a part of its source; any thread may ask."""
        ...

    def start(self) -> None:
        """Begin, on a thread of its own."""
        ...

    def ask_to_stop(self) -> None:
        """Ask the run to stop and return at once; the watcher is notified of the end."""
        ...

    def silence(self) -> None:
        """Write no status from now on."""
        ...

    def join(self, timeout_seconds: float | None = None) -> bool:
        """Wait for the end; returns whether the run has ended."""
        ...


NewRun = Callable[[RunSpec, Services, RunWatcher], Run]
"""Makes a run that has not been started."""


def stop_all(
    runs: Sequence[Run], *, grace: float, clock: Callable[[], float] = time.monotonic
) -> None:
    """Ask all *runs* to stop, and return when they have ended or their time is over; *grace* is in seconds.

    The slots of a run that does not end in time are left to their leases: they cannot write once this process is gone.
    """
    for run in runs:
        run.ask_to_stop()
    deadline = Deadline.after(grace + LEAVE_SECONDS, clock)
    for run in runs:
        run.join(deadline.remaining())
