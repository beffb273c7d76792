"""Plans of the files connector, and the batches of a task that reads one."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from headrace.connect import SourceBatch, SourceOffset, SourcePartition
from headrace.connect.connector import Explained, Plan, PlanRequest
from headrace.connectors.files.connector import FilesConnector
from headrace.connectors.files.task import FilesTask
from headrace.testing.task_runs import LocalContext, StoredOffsets

Stored = dict[SourcePartition, SourceOffset]


class Steps:
    """A started connector that reads what is at *path*, and its plans against *stored*."""

    def __init__(self, path: Path | str, stored: Stored | None = None, /, **props: str) -> None:
        named = {key.replace("_", "."): value for key, value in props.items()}
        self.props = {"files.path": str(path), "topic": "t", "files.min.age.ms": "0", **named}
        self.stored = {} if stored is None else stored
        self.connector = FilesConnector()
        self.connector.start(self.props)

    def plan(self, slots: int = 1) -> Plan:
        """The next plan."""
        return self.connector.plan(self._request(slots))

    def explained(self, slots: int = 1) -> Mapping[str, Explained]:
        """What is told of each file, by the last part of its name."""
        rows = self.connector.explain(self._request(slots))
        return {each.name.rpartition("/")[2]: each for each in rows}

    def task(self) -> FilesTask:
        """The task of the next plan's only slot, started; whoever asks for it stops it."""
        task = FilesTask()
        (splits,) = self.plan().shares
        task.initialize(LocalContext(offsets=StoredOffsets(self.stored), splits=splits))
        task.start(self.props)
        return task

    def batches(self) -> list[SourceBatch]:
        """All that one slot reads of the next plan."""
        task, found = self.task(), list[SourceBatch]()
        try:
            while (polled := task.poll()) is not None:
                found += polled
        finally:
            task.stop()
        return found

    def _request(self, slots: int) -> PlanRequest:
        return PlanRequest(slots=slots, offsets=StoredOffsets(self.stored))


def names_of(plan: Plan) -> list[str]:
    """The last parts of the names of the files that *plan* reads, in order."""
    paths = (str(split.partition["filename"]) for share in plan.shares for split in share)
    return [path.rpartition("/")[2] for path in paths]
