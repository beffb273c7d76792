"""What Kafka Connect's own tests of source tasks ask, of the task loop here; each case in words of its own.

Other cases of theirs are elsewhere: requests of tasks in ``test_transaction_context``, hooks in
``test_commit_hooks``, late refusals in ``test_refusals``, topics in ``test_topic_creation``, the steps before the
first record in ``test_worker_task``, offsets without records in the tests of ``update_offsets``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from doubles.memory_sender import MemorySender
from headrace.connect.batch import SourceBatch
from headrace.connect.errors import RecordError, RetriableError, TaskFailedError
from headrace.connect.partition import SourcePartition
from headrace.connect.record import RecordMetadata, SourceRecord
from headrace.connect.task import Offsets, Polled
from headrace.kafka.sender import OffsetEntry
from headrace.offsets.codec import encoded_key
from headrace.task.connector_spec import BoundaryKind
from headrace.task.slot_report import Outcome
from task.loop import KEY, Loop, ScriptedTask, batch, both_modes, record

OTHER = SourcePartition(filename="g")


class Ordered(ScriptedTask):
    """Notes which hooks are called, in their order."""

    def __init__(self, *script: object) -> None:
        super().__init__(*script)
        self.calls: list[str] = []

    def poll(self) -> Polled:
        """The script's; a note."""
        self.calls.append("poll")
        return super().poll()

    def update_offsets(self, offsets: Offsets) -> Offsets | None:
        """A note."""
        self.calls.append("update_offsets")
        return None

    def commit_batch(self, batch: SourceBatch) -> None:
        """A note."""
        self.calls.append(f"commit_batch of {len(batch)}")

    def commit_record(self, record: SourceRecord, metadata: RecordMetadata | None) -> None:
        """A note."""
        self.calls.append(f"commit_record {record.value}")

    def commit(self) -> None:
        """A note."""
        self.calls.append("commit")


@both_modes
def test_hooks_come_behind_the_commit_in_the_order_of_poll(*, transactional: bool) -> None:
    """Records as they were polled, then ``commit`` once, then the next poll."""
    task = Ordered([record("a", 1), record("b", 2)])
    loop = Loop(task, kind=BoundaryKind.POLL, transactional=transactional)

    loop.run()

    expected = ["poll", "update_offsets", "commit_batch of 2"]
    expected += ["commit_record a", "commit_record b", "commit", "poll"]
    assert expected == task.calls[: len(expected)]


@both_modes
def test_polls_without_records_are_told_as_commits_but_write_nothing(
    *, transactional: bool
) -> None:
    """With the boundary poll each poll is one; there is no transaction without anything in it."""
    task = Ordered((), ())
    loop = Loop(task, kind=BoundaryKind.POLL, transactional=transactional)

    loop.run()

    assert task.calls.count("commit") >= 2
    assert (0, {}) == (loop.sender.commits, loop.sender.offsets)


@both_modes
def test_a_commit_that_fails_tells_no_hook_and_moves_no_offset(*, transactional: bool) -> None:
    """It may be records or offsets: neither counts."""
    task = Ordered(batch("a", end=1), batch("b", end=2))
    loop = Loop(task, kind=BoundaryKind.POLL, transactional=transactional)
    loop.sender.refuses_late.add(b"a")

    with pytest.raises(RecordError):
        loop.run()

    assert not [each for each in task.calls if each.startswith("commit")]
    assert (0, None) == (loop.progress.committed_records, loop.position())


class NoOffsets(MemorySender):
    """A sender that the offsets topic refuses."""

    def send_offsets(self, topic: str, entries: Sequence[OffsetEntry]) -> None:
        """Refuse them."""
        raise TaskFailedError(f"Kafka refused writing to topic {topic!r}.")


def test_without_its_offsets_no_record_is_committed() -> None:
    """The transaction is aborted: otherwise its records would be read, and sent, again."""
    loop = Loop(ScriptedTask(batch("a", end=1)))
    loop.sender = NoOffsets()

    with pytest.raises(TaskFailedError, match="topic 'offsets'"):
        loop.run()

    assert (1, 0, []) == (loop.sender.aborts, loop.sender.commits, loop.values())


@both_modes
def test_an_offset_that_cannot_be_stored_fails_before_its_record_is_committed(
    *, transactional: bool
) -> None:
    """A half of a character is no text; the record would be sent again and again."""
    broken = replace(record("a", 1), source_offset={"position": 1, "name": "\ud800"})
    loop = Loop(ScriptedTask([broken]), transactional=transactional)

    with pytest.raises(Exception, match="surrogate"):
        loop.run()

    assert loop.position() is None
    assert not (transactional and loop.values())


@both_modes
def test_the_last_offset_of_each_source_partition_is_committed(*, transactional: bool) -> None:
    """Whichever came between them."""
    polled = [
        record("a", 1),
        replace(record("x", 7), source_partition=OTHER),
        record("b", 2),
    ]
    loop = Loop(ScriptedTask(polled), transactional=transactional)

    loop.run()

    expected = {KEY: b'{"position":2}', encoded_key("c", OTHER): b'{"position":7}'}
    assert expected == loop.sender.offsets


@both_modes
def test_a_record_without_an_offset_removes_what_is_stored(*, transactional: bool) -> None:
    """A tombstone, as the last record of its source partition."""
    polled = [record("a", 1), replace(record("b", 2), source_offset=None)]
    loop = Loop(ScriptedTask(polled), transactional=transactional)

    loop.run()

    assert ["a", "b"] == loop.values()
    assert {KEY: None} == loop.sender.offsets


def test_one_record_that_is_not_acknowledged_holds_all_offsets_back() -> None:
    """At least once; those of another source partition as well, until the records are sent again."""
    polled = [record("a", 1), replace(record("x", 7), source_partition=OTHER)]
    loop = Loop(ScriptedTask(polled), transactional=False)
    loop.sender.refuses_late.add(b"a")

    with pytest.raises(RecordError):
        loop.run()

    assert {} == loop.sender.offsets


@both_modes
def test_a_failure_of_poll_is_raised_as_it_is(*, transactional: bool) -> None:
    """Its class and its words are the author's, for the trace."""
    failure = KeyError("no such table")
    loop = Loop(ScriptedTask(failure), transactional=transactional)

    with pytest.raises(KeyError) as raised:
        loop.run()

    assert failure is raised.value
    assert 0 == loop.sender.commits


def test_a_failing_task_commits_nothing_where_the_connector_places_the_ends() -> None:
    """What its transaction holds is half of what the connector wanted to be there together."""
    loop = Loop(ScriptedTask(batch("a", end=1), ValueError("broken")), kind=BoundaryKind.CONNECTOR)

    with pytest.raises(ValueError, match="broken"):
        loop.run()

    assert (1, [], None) == (loop.sender.aborts, loop.values(), loop.position())


@both_modes
def test_records_are_sent_again_from_the_stored_offset(*, transactional: bool) -> None:
    """Nothing is lost by a source that is away between two polls, and nothing is twice."""
    away = RetriableError("away", delay_seconds=0.0)
    loop = Loop(
        ScriptedTask(batch("a", end=1), away, away, batch("b", end=2)), transactional=transactional
    )

    assert Outcome.FINISHED is loop.run()
    assert (["a", "b"], 2) == (loop.values(), loop.position())


@pytest.mark.parametrize("timestamp", [-2, -(2**40)])
def test_a_time_before_1970_is_refused(timestamp: int) -> None:
    """In Connect's words; -1 stands for no time at all."""
    with pytest.raises(ValueError, match=f"Invalid record timestamp {timestamp}"):
        replace(record("a", 1), timestamp=timestamp)

    assert -1 == replace(record("a", 1), timestamp=-1).timestamp


def test_transactions_are_counted_by_their_records() -> None:
    """The least, the most and the sum, for the metrics; one of offsets alone has none."""
    task = ScriptedTask(batch("a", "b", "c", end=3), batch("d", end=4), ())
    moves = iter([None, None, {OTHER: {"position": 1}}])
    task.update = lambda _: next(moves, None)
    loop = Loop(task, kind=BoundaryKind.POLL)

    loop.run()

    sizes = loop.progress.transaction_sizes
    assert (3, 4, 0, 3) == (sizes.count, sizes.total, sizes.least, sizes.most)
