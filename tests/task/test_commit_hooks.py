"""The commit hooks of a task."""

from __future__ import annotations

from headrace.connect.batch import SourceBatch
from headrace.connect.record import RecordMetadata, SourceRecord
from task.loop import Loop, ScriptedTask, batch


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
