"""Calls a task's commit hooks, if its class overrides them."""

from __future__ import annotations

import logging
from collections.abc import Callable

from headrace.connect.batch import SourceBatch
from headrace.connect.encoded import EncodedBatches
from headrace.connect.errors import RecordError, TaskFailedError
from headrace.connect.record import RecordMetadata, SourceRecord
from headrace.connect.task import SourceTask
from headrace.task.batching import without_value
from headrace.task.frames import Records
from headrace.task.plain_records import plain_row
from headrace.task.record_origin import located

_log = logging.getLogger(__name__)


class CommitHooks:
    """Remembers what is in the transaction for the hooks that the task overrides, and only for those."""

    def __init__(self, task: SourceTask) -> None:
        self._task = task
        self._wants_batches = overrides(task, "commit_batch")
        self._wants_encoded = overrides(task, "commit_encoded")
        self.wants_records = overrides(task, "commit_record")
        self._batches: list[SourceBatch] = []
        self._encoded: list[EncodedBatches] = []
        self._records: list[tuple[SourceRecord, RecordMetadata | None]] = []

    def sent(self, frame: Records, places: list[RecordMetadata]) -> None:
        """Note that *frame* is in the transaction; *places* are given when ``wants_records``."""
        if self._wants_batches:
            self._batches.append(frame.of_task)
        if self.wants_records:
            originals = frame.originals or _plain_records(frame.of_task)
            self._records.extend(zip(originals, places, strict=True))

    def forwarded(self, batches: EncodedBatches) -> None:
        """Note that *batches* are in the transaction."""
        if self._wants_encoded:
            self._encoded.append(batches.released())

    def skipped(self, frame: Records) -> None:
        """Note that the rows of *frame* moved their offsets but were not sent to their topic."""
        if self._wants_batches:
            self._batches.append(frame.of_task)
        for record in frame.originals or (
            _plain_records(frame.of_task) if self.wants_records else ()
        ):
            self._never_sent(record)

    def never_batched(self, record: SourceRecord) -> None:
        """Note that *record*, which fits no batch, moved its offset but was not sent to its topic."""
        if self._wants_batches:
            self._batches.append(without_value(record))
        self._never_sent(record)

    def committed(self) -> None:
        """Call the hooks; an exception of one is logged and does not prevent the others from being called."""
        batches, self._batches = self._batches, []
        encoded, self._encoded = self._encoded, []
        records, self._records = self._records, []
        for batch in batches:
            self._call(self._task.commit_batch, batch)
        for each in encoded:
            self._call(self._task.commit_encoded, each)
        for record, place in records:
            self._call(self._task.commit_record, record, place)
        self._call(self._task.commit)

    def dropped(self) -> None:
        """Note that the transaction was aborted on the connector's request."""
        self._batches = []
        self._encoded = []
        self._records = [(record, None) for record, _ in self._records]

    def _never_sent(self, record: SourceRecord) -> None:
        if self.wants_records:
            self._records.append((record, None))

    def _call(self, hook: Callable[..., None], *what: object) -> None:
        try:
            hook(*what)
        except Exception:  # noqa: BLE001 (the commit has happened; a failing hook can only be logged)
            _log.exception("%s of %s raised", hook.__name__, type(self._task).__name__)


def _plain_records(batch: SourceBatch) -> list[SourceRecord]:
    """The rows of *batch*, as a transformation gets them.

    Raises :class:`~headrace.connect.errors.TaskFailedError`, which is never tolerated: the rows may be sent already.
    """
    try:
        return [plain_row(batch, row) for row in range(len(batch))]
    except RecordError as error:
        raise TaskFailedError(
            f"commit_record cannot be called with a record: {located(error, batch)}"
        ) from error


def overrides(task: SourceTask, hook: str) -> bool:
    """Whether the task's class has a *hook* of its own."""
    return getattr(type(task), hook) is not getattr(SourceTask, hook)
