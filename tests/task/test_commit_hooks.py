"""The commit hooks of a task."""

from __future__ import annotations

import pyarrow as pa
import pytest

from doubles.puppets import SOURCE
from headrace.connect.batch import BatchOffsets, SourceBatch
from headrace.connect.errors import TaskFailedError
from headrace.connect.record import RecordMetadata, SourceRecord
from headrace.connect.schema import JSON_DOCUMENT
from headrace.task.commit_hooks import CommitHooks
from headrace.task.frames import Records
from headrace.task.plain_records import plain_row
from task.loop import Loop, ScriptedTask, batch

PLACE = RecordMetadata(topic="t", partition=0, offset=0)


class TellingTask(ScriptedTask):
    """Overrides the hooks of records and batches."""

    reported: list[tuple[object, int | None]]

    def commit_record(self, record: SourceRecord, metadata: RecordMetadata | None) -> None:
        """Note the record's place."""
        self.reported.append((record.value, None if metadata is None else metadata.offset))


def test_commit_record_is_told_each_place_after_the_commit() -> None:
    """In the order of poll, with the offset in Kafka."""
    task = TellingTask(batch("a", "b", end=2))
    task.reported = []
    loop = Loop(task)

    loop.run()

    assert [("a", 0), ("b", 1)] == task.reported


class BatchTellingTask(ScriptedTask):
    """Overrides the batch hook and looks at what is committed by then."""

    committed_by_then: list[int]
    loop: Loop

    def commit_batch(self, batch: SourceBatch) -> None:
        """Note how much a consumer sees."""
        self.committed_by_then.append(len(self.loop.values()))


def test_commit_batch_comes_after_the_commit() -> None:
    """Upstream may be acknowledged there: the records are in Kafka."""
    task = BatchTellingTask(batch("a", "b", end=2))
    task.committed_by_then = []
    task.loop = Loop(task)

    task.loop.run()

    assert [2] == task.committed_by_then


def test_an_exception_in_a_commit_hook_changes_nothing() -> None:
    """The commit has happened; the loop continues."""

    class Raising(ScriptedTask):
        def commit(self) -> None:
            raise ValueError("too late")

    loop = Loop(Raising(batch("a", end=1), batch("b", end=2)))

    loop.run()

    assert ["a", "b"] == loop.values()


def test_an_exception_in_one_hook_keeps_no_other_from_being_called() -> None:
    """What is not acknowledged upstream for it would be sent again, or kept forever."""
    reported: list[str] = []

    class Raising(ScriptedTask):
        def commit_batch(self, batch: SourceBatch) -> None:
            reported.extend(batch.values.to_pylist())
            raise ValueError("upstream is away")

        def commit_record(self, record: SourceRecord, metadata: RecordMetadata | None) -> None:
            reported.append(f"record {record.value}")
            raise ValueError("upstream is away")

    task = Raising([batch("a", end=1), batch("b", end=2)])
    Loop(task).run()

    assert ["a", "b", "record a", "record b"] == reported
    assert task.commits


class RecordsKept(ScriptedTask):
    """Keeps the records that its hook is called with."""

    kept: list[SourceRecord]

    def commit_record(self, record: SourceRecord, metadata: RecordMetadata | None) -> None:
        """Keep *record*."""
        self.kept.append(record)


def structured(values: pa.Array) -> SourceBatch:
    """A batch of one row."""
    return SourceBatch(
        topic="t",
        values=pa.array(["sent"]),
        keys=values,
        source_partition=SOURCE,
        offsets=BatchOffsets(columns={"next": pa.array([1])}),
    )


MAPS = pa.map_(pa.string(), pa.int64())


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        (pa.array([[("a", 1), ("b", 2)]], MAPS), {"a": 1, "b": 2}),
        (pa.array([{"m": [("a", 1)]}], pa.struct({"m": MAPS})), {"m": {"a": 1}}),
        (pa.ExtensionArray.from_storage(JSON_DOCUMENT, pa.array(['{"a": [1]}'])), {"a": [1]}),
    ],
)
def test_commit_record_gets_the_record_that_a_transformation_gets(
    column: pa.Array, expected: object
) -> None:
    """Maps are dictionaries, and JSON documents are parsed."""
    hooks = CommitHooks(task := RecordsKept())
    task.kept = []
    returned = structured(column)

    hooks.sent(Records(returned), [PLACE])
    hooks.committed()

    assert [plain_row(returned, 0)] == task.kept
    assert expected == task.kept[0].key


def test_a_record_that_python_cannot_represent_fails_the_task_with_its_position() -> None:
    """It may be sent already, so it cannot be skipped."""
    hooks = CommitHooks(RecordsKept())
    twice = pa.array([[("a", 1), ("a", 2)]], MAPS)

    with pytest.raises(
        TaskFailedError, match=r"commit_record .* source offset next 1.*duplicate key"
    ):
        hooks.sent(Records(structured(twice)), [PLACE])
