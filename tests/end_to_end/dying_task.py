"""A files connector whose task ends its own process behind records that a test has chosen."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from headrace.connect.batch import SourceBatch
from headrace.connect.task import Polled, SourceTask
from headrace.connectors.files.connector import FilesConnector

KILLS, MARKS = "test.kills", "test.marks"
"""Settings: behind which records to die, as ``object:number``, comma separated and each once; and the folder
in which there is a file for each death."""


@dataclass(frozen=True, slots=True)
class Death:
    """Dies behind record *number* of the object whose name ends with *name*."""

    name: str
    number: int

    @property
    def mark(self) -> str:
        """The name of its file."""
        return f"{self.name}:{self.number}"

    def row(self, batch: SourceBatch) -> int | None:
        """Which row of *batch* it comes behind, if any."""
        if not any(str(each).endswith(self.name) for each in batch.source_partition.values()):
            return None
        assert batch.offsets is not None
        counts = batch.offsets.columns["recordCount"].to_pylist()
        return counts.index(self.number) if self.number in counts else None


class Deaths:
    """Ends the process behind record after record of those that *config* names."""

    def __init__(self, config: Mapping[str, str]) -> None:
        self._marks = Path(config[MARKS])
        told = [each.rsplit(":", 1) for each in config[KILLS].split(",")]
        self._all = [Death(name, int(number)) for name, number in told]
        self._due: Death | None = None

    def cut(self, polled: Polled) -> Polled:
        """What *polled* has up to the record of the first death among it."""
        if isinstance(polled, SourceBatch):
            polled = [polled]
        batches = [each for each in polled or () if isinstance(each, SourceBatch)]
        return list(self._up_to_death(batches)) if batches else polled

    def come(self) -> None:
        """Die, if it is time."""
        if self._due is not None:
            (self._marks / self._due.mark).touch()
            os.kill(os.getpid(), signal.SIGKILL)

    def _up_to_death(self, batches: Iterable[SourceBatch]) -> Iterable[SourceBatch]:
        left = [each for each in self._all if not (self._marks / each.mark).exists()]
        for batch in batches:
            rows = [(row, each) for each in left if (row := each.row(batch)) is not None]
            if rows:
                row, self._due = min(rows, key=lambda each: each[0])
                yield batch.slice(0, row + 1)
                return
            yield batch


class DyingFilesTask(FilesConnector.task_class):
    """Reads files, and dies."""

    def start(self, config: Mapping[str, str]) -> None:
        """See :class:`~headrace.connect.task.SourceTask`."""
        self._deaths = Deaths(config)
        super().start(config)

    def poll(self) -> Any:  # noqa: ANN401 (what is cut is a poll's result as before)
        """See :class:`~headrace.connect.task.SourceTask`."""
        self._deaths.come()
        return self._deaths.cut(super().poll())


class DyingFiles(FilesConnector):
    """The files connector with such tasks."""

    task_class: ClassVar[type[SourceTask]] = DyingFilesTask
