"""The interface of connector runs for those who start and stop them, one by one or together."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from typing import Final, Protocol

from headrace.kafka.deadline import Deadline
from headrace.runtime.connector_run import ConnectorRun
from headrace.runtime.services import RunSpec, Services
from headrace.runtime.task_status import RunWatcher

LEAVE_SECONDS: Final = 15.0
"""How long a run may take after its tasks' grace period, to withdraw tokens, to fence and to write the status."""

_LOOK_SECONDS = 0.2


class Run(Protocol):
    """A connector that runs; see :class:`~headrace.runtime.connector_run.ConnectorRun`."""

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


class Worker:
    """The connectors of one process. One thread owns it.

    ``ask_to_stop`` may be called from any thread, and from a signal handler, which may interrupt the owner
    while it holds a lock. So it takes none.
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
        """Make :meth:`wait` stop everything and return; noticed within moments."""
        self._stopping = True

    def stop(self) -> None:
        """Stop everything and wait until it has ended; does nothing if it has already."""
        self.ask_to_stop()
        self.wait()

    def wait(self) -> dict[str, Exception]:
        """Wait until every connector has ended, by itself or after :meth:`ask_to_stop`.

        Returns the failures by connector, empty if there are none. Connectors that do not end in time are left to
        their leases: they cannot write once their process is gone.
        """
        for run in self._runs:
            while not self._stopping and not run.join(_LOOK_SECONDS):
                pass
        stop_all(self._runs, grace=self._services.timing.grace)
        return {run.name: run.failure for run in self._runs if run.failure is not None}
