"""Calls a task's commit hooks, if its class overrides them."""

from __future__ import annotations

import logging
from collections.abc import Callable

import pyarrow as pa

from headrace.connect.batch import SourceBatch
from headrace.connect.record import Header, RecordMetadata, SourceRecord
from headrace.connect.task import SourceTask
from headrace.task.batching import without_value
from headrace.task.frames import Records

_log = logging.getLogger(__name__)


class CommitHooks:
    """Remembers what is in the transaction for the hooks that the task overrides, and only for those."""

    def __init__(self, task: SourceTask) -> None:
        self._task = task
        self._wants_batches = overrides(task, "commit_batch")
        self.wants_records = overrides(task, "commit_record")
        self._batches: list[SourceBatch] = []
        self._records: list[tuple[SourceRecord, RecordMetadata | None]] = []

    def sent(self, frame: Records, places: list[RecordMetadata]) -> None:
        """Note that *frame* is in the transaction; *places* are given when ``wants_records``."""
        if self._wants_batches:
            self._batches.append(frame.of_task)
        if self.wants_records:
            originals = frame.originals or records_of(frame.of_task)
            self._records.extend(zip(originals, places, strict=True))

    def skipped(self, frame: Records) -> None:
        """Note that the rows of *frame* moved their offsets but were not sent to their topic."""
        if self._wants_batches:
            self._batches.append(frame.of_task)
        for record in frame.originals or (records_of(frame.of_task) if self.wants_records else ()):
            self._never_sent(record)

    def never_batched(self, record: SourceRecord) -> None:
        """Note that *record*, which fits no batch, moved its offset but was not sent to its topic."""
        if self._wants_batches:
            self._batches.append(without_value(record))
        self._never_sent(record)

    def committed(self) -> None:
        """Call the hooks; an exception of one is logged and does not prevent the others from being called."""
        batches, self._batches = self._batches, []
        records, self._records = self._records, []
        for batch in batches:
            self._call(self._task.commit_batch, batch)
        for record, place in records:
            self._call(self._task.commit_record, record, place)
        self._call(self._task.commit)

    def dropped(self) -> None:
        """Note that the transaction was aborted on the connector's request."""
        self._batches = []
        self._records = [(record, None) for record, _ in self._records]

    def _never_sent(self, record: SourceRecord) -> None:
        if self.wants_records:
            self._records.append((record, None))

    def _call(self, hook: Callable[..., None], *what: object) -> None:
        try:
            hook(*what)
        except Exception:  # noqa: BLE001 (the commit has happened; a failing hook can only be logged)
            _log.exception("%s of %s raised", hook.__name__, type(self._task).__name__)


def records_of(batch: SourceBatch) -> list[SourceRecord]:
    """The rows of *batch* as plain records, for tasks that override ``commit_record``."""
    values = _plain_values(batch.values)
    keys = [None] * len(batch) if batch.keys is None else _plain_values(batch.keys)
    stamps = batch.timestamps
    headers: list[tuple[Header, ...]] | None = (
        None if batch.headers is None else list(batch.headers)
    )
    return [
        SourceRecord(
            topic=batch.topic,
            partition=batch.partition,
            source_partition=batch.source_partition,
            source_offset=batch.offset_at(row),
            value=values[row],
            value_schema=batch.value_schema,
            key=keys[row],
            key_schema=batch.key_schema,
            headers=() if headers is None else headers[row],
            timestamp=stamps if isinstance(stamps, int | None) else stamps[row].as_py(),
        )
        for row in range(len(batch))
    ]


def _plain_values(column: pa.Array) -> list[object]:
    if isinstance(column, pa.ExtensionArray):
        return column.storage.to_pylist()
    return column.to_pylist()


def overrides(task: SourceTask, hook: str) -> bool:
    """Whether the task's class has a *hook* of its own."""
    return getattr(type(task), hook) is not getattr(SourceTask, hook)
