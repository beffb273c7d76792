"""What the store says of a connector and its tasks."""

from __future__ import annotations

import threading

from headrace.observe.hidden import Hidden
from headrace.runtime.herder.states import State
from headrace.runtime.services import Services
from headrace.slot.work import SlotReport
from headrace.storage.protocols import Status


class StatusBoard:
    """Writes one run's statuses, in the states and at the times of Kafka Connect.

    The run's thread writes; any thread may silence it. No trace shows what is *hidden*.
    """

    def __init__(
        self,
        connector: str,
        services: Services,
        *,
        version: str | None = None,
        hidden: Hidden | None = None,
    ) -> None:
        self._connector = connector
        self._services = services
        self._version = version
        self._hidden = hidden or Hidden()
        self._failed = set[int]()
        self._is_silent = False
        # So that nothing is written behind the back of whoever has silenced this.
        self._guard = threading.Lock()

    def silence(self) -> None:
        """Write nothing from now on: somebody else says how the connector is."""
        with self._guard:
            self._is_silent = True

    def put(self, task: int | None, state: State, trace: str | None = None) -> None:
        """Write the state of *task*, or of the connector itself."""
        status = Status(
            state=state.value,
            worker_id=self._services.worker_id,
            version=self._version,
            trace=None if trace is None else self._hidden.masked(trace),
        )
        with self._guard:
            if not self._is_silent:
                self._services.statuses.put(self._connector, task, status)

    def running(self, tasks: int) -> None:
        """The connector has so many tasks, all of them in order."""
        for task in range(tasks):
            self.put(task, State.RUNNING)

    def failed(self, task: int, report: SlotReport) -> None:
        """*task* has failed, and stays so until it runs again."""
        self._failed.add(task)
        self.put(task, State.FAILED, trace=report.trace)

    def unassign_tasks(self) -> None:
        """Say of every task that nobody runs it any more, but of those that failed in this run."""
        for task in self._services.statuses.statuses(self._connector):
            if task is not None and task not in self._failed:
                self.put(task, State.UNASSIGNED)
