"""What the store says of a connector and its tasks."""

from __future__ import annotations

from headrace.runtime.services import Services
from headrace.slot.work import SlotReport
from headrace.storage.protocols import Status


class StatusBoard:
    """Writes one connector's statuses, in the states and at the times of Kafka Connect."""

    def __init__(self, connector: str, services: Services) -> None:
        self._connector = connector
        self._services = services
        self._failed = set[int]()

    def put(self, task: int | None, state: str, trace: str | None = None) -> None:
        """Write the state of *task*, or of the connector itself."""
        status = Status(state=state, worker_id=self._services.worker_id, trace=trace)
        self._services.statuses.put(self._connector, task, status)

    def failed(self, task: int, report: SlotReport) -> None:
        """*task* has failed, and stays so until it runs again."""
        self._failed.add(task)
        self.put(task, "FAILED", trace=report.trace)

    def unassign_tasks(self) -> None:
        """Say of every task that nobody runs it any more, but of those that failed in this run."""
        for task in self._services.statuses.statuses(self._connector):
            if task is not None and task not in self._failed:
                self.put(task, "UNASSIGNED")
