"""The two halves of the task loop, without Spark and without Kafka."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pytest

from headrace.connect.batch import BatchOffsets, SourceBatch
from headrace.connect.errors import (
    FencedError,
    RecordError,
    RetriableError,
    StaleTokenError,
    TaskFailedError,
)
from headrace.connect.partition import SourcePartition
from headrace.connect.record import RecordMetadata, SourceRecord
from headrace.connect.task import Offsets, Polled, SourceTask
from headrace.converters import make_converter, make_header_converter
from headrace.slot.boundary import Boundary, BoundaryRequests
from headrace.slot.commits import AcknowledgedCommits, Commits, TransactionalCommits
from headrace.slot.encoding import Encoder
from headrace.slot.reading import ReadingHalf, ReadingRules
from headrace.slot.throttle import Throttle
from headrace.slot.work import BoundaryKind, Outcome, Progress
from headrace.slot.writing import Outlet, WritingHalf
from headrace.storage.offset_codec import encoded_key
from headrace.testing.memory_sender import MemorySender

FILE = SourcePartition(filename="f")
KEY = encoded_key("c", FILE)


def batch(*values: str, end: int) -> SourceBatch:
    """Rows whose positions end at *end*."""
    positions = range(end - len(values) + 1, end + 1)
    return SourceBatch(
        topic="t",
        values=pa.array(values, pa.utf8()),
        source_partition=FILE,
        offsets=BatchOffsets(columns={"position": pa.array(positions, pa.int64())}),
    )


def record(value: str, position: int) -> SourceRecord:
    """One plain record."""
    return SourceRecord(
        topic="t", value=value, source_partition=FILE, source_offset={"position": position}
    )


class ScriptedTask(SourceTask):
    """Returns, raises or calls what its script says, poll by poll."""

    def __init__(self, *script: object) -> None:
        self.script = list(script)
        self.shown: list[dict[SourcePartition, Any]] = []
        self.update: Callable[[Offsets], Offsets | None] = lambda _: None
        self.commits = 0

    def start(self, config: Mapping[str, str]) -> None:
        """Nothing to open."""

    def poll(self) -> Polled:
        """The next step of the script."""
        step = self.script.pop(0) if self.script else None
        if callable(step):
            step = step()
        if isinstance(step, Exception):
            raise step
        return step  # type: ignore[return-value]

    def update_offsets(self, offsets: Offsets) -> Offsets | None:
        """Note what was shown."""
        self.shown.append(dict(offsets))
        return self.update(offsets)

    def commit(self) -> None:
        """Count."""
        self.commits += 1


@dataclass
class HeldLease:
    """A lease under the test's control."""

    end: bool = False
    lost: bool = False
    asked_to_end: str | None = None

    def should_end(self) -> bool:
        """As set."""
        return self.end or self.lost or self.asked_to_end is not None

    def check(self) -> None:
        """As set."""
        if self.lost:
            raise StaleTokenError("lost")

    def wait(self, seconds: float) -> None:
        """Time does not pass here."""


@dataclass
class Loop:
    """A task loop with everything around it in memory."""

    task: SourceTask
    kind: BoundaryKind = BoundaryKind.POLL
    interval: float = 1.0
    transactional: bool = True
    planned: bool = True
    value_converter: str = "string"
    times: Iterator[float] | None = None
    lease: HeldLease = field(default_factory=HeldLease)
    progress: Progress = field(default_factory=Progress)
    requests: BoundaryRequests = field(default_factory=BoundaryRequests)

    def __post_init__(self) -> None:
        self.sender = MemorySender(transactional=self.transactional)

    def run(self) -> Outcome:
        """Run the loop as a slot does."""
        clock = (lambda: 0.0) if self.times is None else lambda: next(self.times)  # type: ignore[arg-type]
        rules = ReadingRules(
            planned=self.planned,
            linger_seconds=None,
            grace_seconds=5.0,
            requests=self.requests if self.kind is BoundaryKind.CONNECTOR else None,
        )
        reading = ReadingHalf(
            self.task,
            self.lease,
            rules,
            throttle=Throttle(None),
            clock=lambda: 0.0,  # type: ignore[arg-type]
        )
        writing = WritingHalf(self.task, self._outlet(), self.lease, self.progress, clock=clock)  # type: ignore[arg-type]
        try:
            writing.write(reading.frames())
        finally:
            writing.abandon()
        return reading.outcome

    def _outlet(self) -> Outlet:
        return Outlet(
            encoder=Encoder(
                make_converter("string", {}, is_key=True),
                make_converter(self.value_converter, {}, is_key=False),
                make_header_converter("simple", {}),
            ),
            sender=self.sender,
            commits=self._commits(),
            boundary=Boundary(kind=self.kind, interval_seconds=self.interval, committed_at=0.0),
        )

    def _commits(self) -> Commits:
        if self.transactional:
            return TransactionalCommits(self.sender, "c", "offsets")
        return AcknowledgedCommits(self.sender, "c", self.sender.offsets.update)

    def values(self) -> list[str]:
        """What a consumer sees."""
        return [(value or b"").decode() for _, _, value in self.sender.committed]

    def position(self) -> int | None:
        """The stored position."""
        stored = self.sender.offsets.get(KEY)
        return None if stored is None else json.loads(stored)["position"]


both_modes = pytest.mark.parametrize("transactional", [True, False])


@both_modes
def test_what_is_polled_arrives_in_order_with_its_offset(*, transactional: bool) -> None:
    """Every row of every batch is committed, and the offset is that of the last row."""
    loop = Loop(
        ScriptedTask(batch("a", "b", end=2), batch("c", end=3)), transactional=transactional
    )

    assert Outcome.FINISHED is loop.run()

    assert ["a", "b", "c"] == loop.values()
    assert 3 == loop.position()


def test_plain_records_are_batched_by_the_runtime() -> None:
    """A task may return plain records; neighbours travel together."""
    loop = Loop(ScriptedTask([record("a", 1), record("b", 2)]))

    loop.run()

    assert ["a", "b"] == loop.values()
    assert 2 == loop.position()


def test_the_poll_boundary_commits_after_each_poll() -> None:
    """transaction.boundary=poll ends a transaction after every poll."""
    loop = Loop(ScriptedTask(batch("a", end=1), batch("b", end=2)))

    loop.run()

    assert 2 == loop.sender.commits


def test_the_interval_boundary_commits_when_its_time_is_over() -> None:
    """Polls share a transaction until the interval is over."""
    moments = iter([0.1, 0.2, 1.5, 1.5, 1.6, 1.7, 1.8, 1.9])
    loop = Loop(
        ScriptedTask(batch("a", end=1), batch("b", end=2), batch("c", end=3)),
        kind=BoundaryKind.INTERVAL,
        times=moments,
    )

    loop.run()

    assert 2 == loop.sender.commits
    assert ["a", "b", "c"] == loop.values()


def test_what_precedes_a_failure_of_poll_is_committed_and_the_failure_is_raised() -> None:
    """The offset stays before what failed, and nothing before it is read again."""
    loop = Loop(
        ScriptedTask(batch("a", end=1), RecordError("bad", native_key="f", position="byte 2")),
        kind=BoundaryKind.INTERVAL,
    )

    with pytest.raises(RecordError, match="byte 2"):
        loop.run()

    assert ["a"] == loop.values()
    assert 1 == loop.position()


def test_a_refused_message_leaves_nothing_of_its_transaction() -> None:
    """The transaction is aborted, its offsets do not move, and the error names the place."""
    task = ScriptedTask(batch("a", "bad", "c", end=3))
    loop = Loop(task, kind=BoundaryKind.INTERVAL)
    loop.sender.refuses.add(b"bad")

    with pytest.raises(RecordError, match=r"filename f.*'position': 2"):
        loop.run()

    assert [] == loop.values()
    assert loop.position() is None


def test_a_row_that_cannot_be_converted_is_named_and_those_before_it_stay() -> None:
    """Rows before it are committed with their offset."""
    values = pa.array([b"ok", b"\xff"], pa.binary())
    rows = SourceBatch(
        topic="t",
        values=values,
        source_partition=FILE,
        offsets=BatchOffsets(columns={"position": pa.array([1, 2], pa.int64())}),
    )
    loop = Loop(ScriptedTask(rows), value_converter="json")
    rows_are_text = make_converter("json", {"schemas.enable": "false"}, is_key=False)
    assert rows_are_text is not None

    loop.run()

    assert 2 == loop.position()


def test_a_retriable_error_of_poll_counts_as_nothing_now() -> None:
    """Poll is called again after it."""
    loop = Loop(ScriptedTask(RetriableError("soon"), batch("a", end=1)))

    loop.run()

    assert ["a"] == loop.values()


def test_a_lost_lease_writes_nothing_more() -> None:
    """What is in the open transaction is thrown away."""
    loop = Loop(ScriptedTask(), kind=BoundaryKind.INTERVAL)

    def lose() -> SourceBatch:
        loop.lease.lost = True
        return batch("b", end=2)

    loop.task.script = [batch("a", end=1), lose]  # type: ignore[attr-defined]

    with pytest.raises(StaleTokenError):
        loop.run()

    assert [] == loop.values()


def test_a_slot_that_is_asked_to_end_commits_what_it_has() -> None:
    """Nothing that was read has to be read again."""
    loop = Loop(ScriptedTask(), kind=BoundaryKind.INTERVAL)

    def ask() -> SourceBatch:
        loop.lease.asked_to_end = "stop"
        return batch("a", end=1)

    loop.task.script = [ask, batch("b", end=2)]  # type: ignore[attr-defined]

    assert Outcome.ASKED is loop.run()

    assert ["a"] == loop.values()
    assert 1 == loop.position()


def test_a_fenced_slot_reports_it() -> None:
    """FencedError comes out of the loop, so that the work is planned again."""
    loop = Loop(ScriptedTask(batch("a", end=1)))
    loop.sender.fenced = True

    with pytest.raises(FencedError):
        loop.run()


def test_the_connector_places_the_end_of_a_transaction() -> None:
    """With boundary connector nothing is committed until the task says so."""
    loop = Loop(ScriptedTask(), kind=BoundaryKind.CONNECTOR)

    def commit() -> SourceBatch:
        loop.requests.commit_transaction()
        return batch("b", end=2)

    loop.task.script = [batch("a", end=1), commit, batch("c", end=3)]  # type: ignore[attr-defined]
    loop.run()

    assert ["a", "b"] == loop.values()
    assert 2 == loop.position()


def test_an_abort_by_the_connector_moves_its_offsets() -> None:
    """What the connector threw away is not read again."""
    loop = Loop(ScriptedTask(), kind=BoundaryKind.CONNECTOR)

    def abort() -> SourceBatch:
        loop.requests.abort_transaction()
        return batch("b", end=2)

    loop.task.script = [batch("a", end=1), abort]  # type: ignore[attr-defined]
    loop.run()

    assert [] == loop.values()
    assert 2 == loop.position()


def test_the_connector_cuts_at_a_record() -> None:
    """A commit after one record leaves those behind it to the next transaction."""
    loop = Loop(ScriptedTask(), kind=BoundaryKind.CONNECTOR)
    records = [record("a", 1), record("b", 2), record("c", 3)]

    def cut() -> Sequence[SourceRecord]:
        loop.requests.commit_transaction(records[1])
        return records

    loop.task.script = [cut]  # type: ignore[attr-defined]
    loop.run()

    assert ["a", "b"] == loop.values()
    assert 2 == loop.position()


def test_asking_for_commit_and_abort_of_one_transaction_fails_the_task() -> None:
    """The conflict is told in Connect's words."""
    requests = BoundaryRequests()
    requests.commit_transaction()

    with pytest.raises(TaskFailedError, match="both commit and abort of same transaction"):
        requests.abort_transaction()


@both_modes
def test_update_offsets_moves_offsets_without_a_record(*, transactional: bool) -> None:
    """What the hook returns is committed even when nothing else is."""
    task = ScriptedTask(())
    task.update = lambda _: {FILE: {"position": 9}}
    loop = Loop(task, transactional=transactional)

    loop.run()

    assert 9 == loop.position()
    assert [] == loop.values()


def test_update_offsets_sees_what_is_about_to_be_committed_and_cannot_change_it() -> None:
    """Its argument is read-only."""
    task = ScriptedTask(batch("a", end=1))
    failures: list[Exception] = []

    def attempt(offsets: Offsets) -> None:
        try:
            offsets[FILE] = None  # type: ignore[index]
        except TypeError as error:
            failures.append(error)

    task.update = attempt
    loop = Loop(task)
    loop.run()

    assert {FILE: {"position": 1}} == task.shown[0]
    assert failures
    assert 1 == loop.position()


def test_a_tombstone_from_update_offsets_is_committed() -> None:
    """An offset of None removes what is stored."""
    task = ScriptedTask(batch("a", end=1))
    task.update = lambda offsets: dict.fromkeys(offsets) or None
    loop = Loop(task)

    loop.run()

    assert {KEY: None} == loop.sender.offsets


def test_a_failing_update_offsets_fails_an_exactly_once_task() -> None:
    """Nothing of the transaction is committed."""
    task = ScriptedTask(batch("a", end=1))
    task.update = lambda _: 1 / 0  # type: ignore[assignment,return-value]
    loop = Loop(task)

    with pytest.raises(ZeroDivisionError):
        loop.run()

    assert [] == loop.values()


def test_a_failing_update_offsets_is_only_logged_at_least_once() -> None:
    """The old offsets are committed."""
    task = ScriptedTask(batch("a", end=1))
    task.update = lambda _: 1 / 0  # type: ignore[assignment,return-value]
    loop = Loop(task, transactional=False)

    loop.run()

    assert 1 == loop.position()


class TellingTask(ScriptedTask):
    """Overrides the hooks of records and batches."""

    told: list[tuple[object, int | None]]

    def commit_record(self, record: SourceRecord, metadata: RecordMetadata | None) -> None:
        """Note the record's place."""
        self.told.append((record.value, None if metadata is None else metadata.offset))


def test_commit_record_is_told_each_place_after_the_commit() -> None:
    """In the order of poll, with the offset in Kafka."""
    task = TellingTask(batch("a", "b", end=2))
    task.told = []
    loop = Loop(task)

    loop.run()

    assert [("a", 0), ("b", 1)] == task.told


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
    """The commit has happened; the loop goes on."""

    class Raising(ScriptedTask):
        def commit(self) -> None:
            raise ValueError("too late")

    loop = Loop(Raising(batch("a", end=1), batch("b", end=2)))

    loop.run()

    assert ["a", "b"] == loop.values()
