"""Starts connectors, waits for them and stops them together."""

from __future__ import annotations

from collections.abc import Iterable

from headrace.runtime.running.connector_run import ConnectorRun
from headrace.runtime.runs import stop_all
from headrace.runtime.services import RunSpec, Services

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
