"""Record batches that a task returns unopened, with its offsets in a group: from poll to commit."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from doubles.copied_positions import GROUP, copied, encoded
from doubles.memory_sender import MemorySender
from headrace.connect.encoded import EncodedBatches
from headrace.connect.errors import OffsetsError, PartitionError, TaskFailedError
from headrace.connect.partition import SourcePartition
from headrace.kafka.batches.errors import UnforwardableError
from headrace.kafka.refused_records import RefusedRecords
from headrace.kafka.topic_partition import TopicPartition
from headrace.task.connector_spec import BoundaryKind, ErrorPolicy
from headrace.task.poll_loop import MOST_BYTES, Throttle
from headrace.task.transaction_boundary import BoundaryRequests
from task.loop import Loop, ScriptedTask, batch, both_modes


def looped(
    *script: object,
    transactional: bool = True,
    kind: BoundaryKind = BoundaryKind.POLL,
    throttle: Throttle | None = None,
) -> Loop:
    """A loop that takes encoded batches and commits to the group; an interval is over at once."""
    return Loop(
        ScriptedTask(*script),
        group=GROUP,
        takes_encoded=True,
        transactional=transactional,
        kind=kind,
        interval=0.0,
        throttle=throttle or Throttle(None),
    )


def positions(loop: Loop) -> dict[int, int]:
    """What the group has for each partition of the copy: the source offset to read next."""
    return {place[1]: entry.offset for place, entry in loop.sender.groups.get("copies", {}).items()}


def counts(loop: Loop) -> list[int]:
    """How many records each forwarded piece held."""
    return [each.records for each in loop.sender.forwarded]


@both_modes
def test_they_are_forwarded_and_their_offset_is_committed(*, transactional: bool) -> None:
    """One object or several, of several partitions."""
    loop = looped(
        encoded(3, 2), [encoded(1, first=5), encoded(4, partition=1)], transactional=transactional
    )

    loop.run()

    assert [5, 1, 4] == counts(loop)
    assert {0: 6, 1: 4} == positions(loop)


@both_modes
def test_what_moves_without_records_is_committed_too(*, transactional: bool) -> None:
    """Behind an aborted transaction the end is reached without anything to send."""
    loop = looped(encoded(first=7), transactional=transactional)

    loop.run()

    assert [] == loop.sender.forwarded
    assert {0: 7} == positions(loop)


def test_records_and_bytes_are_counted() -> None:
    """Bytes as they were fetched; records from the headers, without those before the start."""
    loop = looped(encoded(3, 2, start=1, nbytes=50))

    loop.run()

    progress = loop.progress
    assert (4, 4, 4) == (progress.records, progress.committed_records, progress.polled_records)
    assert (100, 100) == (progress.bytes, progress.committed_bytes)
    assert ({"forwarded": 1}, {"forwarded": 100}) == (
        progress.copied_batches,
        progress.copied_bytes,
    )
    assert ["a.t"] == progress.topics
    assert (1, 4) == (progress.batches.count, progress.batches.total)


def test_records_that_no_header_counts_are_counted_by_the_sender() -> None:
    """After it has decoded them."""
    loop = looped(encoded(3, 2, known=False))

    loop.run()

    assert (5, 5) == (loop.progress.committed_records, loop.progress.polled_records)
    assert (1, 5) == (loop.progress.batches.count, loop.progress.batches.total)


def test_a_transaction_may_end_between_two_pieces() -> None:
    """With what has been sent by then; the rest is in the next one."""
    large = encoded(3, 2, 1, nbytes=MOST_BYTES // 2)
    loop = looped(large, kind=BoundaryKind.INTERVAL)

    loop.run()

    assert [5, 1] == counts(loop)
    assert 2 == loop.sender.commits
    assert {0: 6} == positions(loop)


def test_update_offsets_is_shown_their_offset() -> None:
    """As of any other batch."""
    loop = looped(encoded(3))
    task = loop.task
    assert isinstance(task, ScriptedTask)

    loop.run()

    assert [{copied(): {"offset": 2}}] == task.shown[:1]


@both_modes
def test_an_offset_is_removed_after_the_rest_is_committed(*, transactional: bool) -> None:
    """Kafka cannot do it in a transaction."""
    loop = looped(encoded(3), encoded(2, partition=1), transactional=transactional)
    task = loop.task
    assert isinstance(task, ScriptedTask)
    task.update = lambda shown: {copied(): None} if copied(partition=1) in shown else None

    loop.run()

    assert {1: 2} == positions(loop)
    assert ["send", "send", "delete"] == loop.sender.calls


def test_only_removals_need_no_transaction() -> None:
    """There would be nothing in it."""
    loop = looped([])
    task = loop.task
    assert isinstance(task, ScriptedTask)
    task.update = lambda _: {copied(): None}

    loop.run()

    assert 0 == loop.sender.commits
    assert "delete" in loop.sender.calls


def test_an_offset_that_no_entry_can_hold_fails_the_task() -> None:
    """And nothing of the transaction is visible."""
    strange = encoded(3)
    strange = EncodedBatches(
        **{
            **{name: getattr(strange, name) for name in EncodedBatches.__dataclass_fields__},
            "source_partition": SourcePartition(file="x"),
        }
    )
    loop = looped(strange)

    with pytest.raises(OffsetsError, match="no topic and partition"):
        loop.run()

    assert [] == loop.sender.forwarded


def test_a_task_that_may_not_return_them_fails() -> None:
    """Before anything is sent: nobody would look at its records."""
    loop = Loop(ScriptedTask(encoded(3)), group=GROUP)

    with pytest.raises(TaskFailedError, match=r"context\.takes_encoded"):
        loop.run()

    assert [] == loop.sender.forwarded


def test_one_poll_returns_one_kind() -> None:
    """Otherwise the order would be unclear."""
    loop = looped([encoded(3), batch("a", end=1)])

    with pytest.raises(TypeError, match="return one kind"):
        loop.run()


def test_decoded_batches_go_to_the_same_sender() -> None:
    """A task may return either, poll by poll."""
    decoded = batch("a", end=4)
    loop = looped(encoded(3), decoded)
    task = loop.task
    assert isinstance(task, ScriptedTask)
    task.script[1] = type(decoded)(
        topic="a.t",
        values=decoded.values,
        source_partition=copied(),
        offsets=type(decoded.offsets)(constant={"offset": 3}),  # type: ignore[misc]
    )

    loop.run()

    assert ["a"] == loop.values()
    assert {0: 4} == positions(loop)


class Acknowledging(ScriptedTask):
    """Notes what is acknowledged."""

    def __init__(self, *script: object) -> None:
        super().__init__(*script)
        self.acknowledged: list[EncodedBatches] = []

    def commit_encoded(self, batches: EncodedBatches) -> None:
        """Note them."""
        self.acknowledged.append(batches)


def test_they_are_acknowledged_after_the_commit_without_their_bytes() -> None:
    """A second of a fast mirror is too much to keep."""
    task = Acknowledging(encoded(3, 2))
    loop = Loop(task, group=GROUP, takes_encoded=True)

    loop.run()

    [acknowledged] = task.acknowledged
    assert encoded(3, 2).headers == acknowledged.headers
    assert 0 == acknowledged.nbytes


def test_what_the_connector_aborts_is_not_forwarded_but_passed() -> None:
    """As for records (KIP-618)."""
    requests = BoundaryRequests()
    script: list[Any] = [lambda: (requests.abort_transaction(), encoded(3))[1]]
    task = Acknowledging(*script)
    loop = Loop(
        task, group=GROUP, takes_encoded=True, kind=BoundaryKind.CONNECTOR, requests=requests
    )

    loop.run()

    assert [] == loop.sender.forwarded
    assert [] == task.acknowledged
    assert {0: 3} == positions(loop)


@pytest.mark.parametrize("known", [True, False])
def test_the_rate_holds_for_them(*, known: bool) -> None:
    """Ten records a second: each piece waits for what the one before it has cost, also where only the sender counts."""
    now = 0.0

    def wait(seconds: float) -> None:
        nonlocal now
        now += seconds

    throttle = Throttle(10, clock=lambda: now)
    loop = looped(encoded(*[2] * 10, known=known), throttle=throttle)
    loop.lease.wait = wait  # type: ignore[method-assign]

    loop.run()

    assert 20 == loop.progress.committed_records
    assert pytest.approx(1.8, abs=0.1) == now


@both_modes
def test_refused_records_are_dead_letters_with_the_offsets_around_them(
    *, transactional: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """Before the commit, whatever the log settings: each place is logged."""
    loop = looped(encoded(5), transactional=transactional)
    loop.errors = ErrorPolicy(tolerate=True, dead_letters="dead")
    loop.sender.refused_batches = [refused(encoded(5), 3, handed_over=1)]

    loop.run()

    assert [("dead", b"k", b"v3")] == loop.sender.committed
    assert {0: 5} == positions(loop)
    progress = loop.progress
    assert (4, 1, 1) == (progress.committed_records, progress.dead_lettered, progress.record_errors)
    assert "Task c-0 passes over the offsets 3 to 3 of t-0, which are sent to" in caplog.text


@pytest.mark.parametrize("tolerates", [False, True])
def test_a_partition_that_the_task_cannot_read_on_is_told_after_what_is_before_it(
    *, tolerates: bool
) -> None:
    """As what it is, also where errors are tolerated: the driver plans without it."""
    failed = PartitionError(copied(), "its length is wrong", source_offset={"at": 9})
    loop = looped(encoded(3), failed)
    loop.errors = ErrorPolicy(tolerate=tolerates)

    with pytest.raises(PartitionError, match="its length is wrong") as raised:
        loop.run()

    assert (copied(), {"at": 9}) == (raised.value.partition, raised.value.source_offset)
    assert {0: 3} == positions(loop)
    assert 1 == loop.progress.record_errors


@both_modes
def test_what_is_before_a_damaged_batch_is_committed(*, transactional: bool) -> None:
    """With what other partitions have; nothing behind it is sent."""
    loop = looped(
        [encoded(2, partition=1), encoded(3, 2, 4)], encoded(9), transactional=transactional
    )
    loop.sender.damaged = {3}

    with pytest.raises(
        PartitionError, match=r"offset 3 of .* t-0 .* its last offset 4, with"
    ) as raised:
        loop.run()

    assert {"offset": 4} == raised.value.source_offset

    assert {1: 2, 0: 3} == positions(loop)
    assert [2, 3] == counts(loop)
    assert (5, 1) == (loop.progress.committed_records, loop.progress.record_errors)


def test_a_damaged_batch_at_the_position_moves_nothing() -> None:
    """Its partition is to be read from there again."""
    loop = looped(encoded(3, 2))
    loop.sender.damaged = {0}

    with pytest.raises(PartitionError):
        loop.run()

    assert {} == positions(loop)
    assert [] == loop.sender.forwarded


class _NotingSender(MemorySender):
    """Notes how many are refused when batches are sent."""

    def __init__(self) -> None:
        super().__init__()
        self.seen = list[int]()

    def send_batches(self, batches: EncodedBatches) -> int:
        self.seen.append(len(self.refused_batches))
        return super().send_batches(batches)


def test_many_refused_records_are_passed_over_before_the_commit() -> None:
    """They hold memory; their dead letters are in the same transaction."""
    loop = looped(encoded(5), encoded(2, first=5), kind=BoundaryKind.INTERVAL)
    loop.interval = 1000.0
    loop.errors = ErrorPolicy(tolerate=True, dead_letters="dead")
    loop.sender = sender = _NotingSender()
    sender.refused_batches = [refused(encoded(5), at, handed_over=1) for at in range(3)]

    loop.run()

    assert [3, 0] == sender.seen
    assert (3, 1) == (len(sender.committed), sender.commits)
    assert {0: 7} == positions(loop)
    assert (4, 3) == (loop.progress.committed_records, loop.progress.dead_lettered)


def test_refused_records_are_skipped_without_a_topic_for_them(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """They are counted and logged."""
    loop = looped(encoded(5))
    loop.errors = ErrorPolicy(tolerate=True)
    loop.sender.refused_batches = [refused(encoded(5), 3)]

    loop.run()

    assert [] == loop.sender.committed
    assert (5, 1) == (loop.progress.committed_records, loop.progress.skipped)
    assert "which are skipped (errors.tolerance=all). The record at offset 3" in caplog.text


def refused(batches: EncodedBatches, offset: int, *, handed_over: int = 0) -> RefusedRecords:
    """One record of *batches*."""
    error = UnforwardableError(TopicPartition("t", 0), offset, "it is refused", advice="Do it.")
    columns = {"offset": [offset], "key": [b"k"], "value": [b"v%d" % offset]}
    return RefusedRecords(
        batches=batches.released(),
        error=error,
        first=offset,
        last=offset,
        records=pa.table(columns),
        handed_over=handed_over,
    )
