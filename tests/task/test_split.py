"""A slot in two processes: what the one reads the other one writes, whatever becomes of either."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

import pyarrow as pa
import pytest

from doubles.memory_sender import MemorySender
from doubles.puppets import SOURCE, Puppet, puppet
from headrace.connect.errors import RecordError, ReplanError, StaleTokenError, TaskFailedError
from headrace.connect.record import BadRecord, SourceRecord
from headrace.connect.task import Offsets, SourceTask
from headrace.runtime.channel_server import Channel
from headrace.runtime.micro_batch import MicroBatch
from headrace.task.connector_spec import BoundaryKind, ErrorPolicy, PluginChoice, StageChoice
from headrace.task.frames import EndOfPoll, Failed, Frame
from headrace.task.slot_report import Outcome, Progress
from headrace.task.slot_work import SlotWork
from headrace.task.sql.frame_codec import FrameEncoder
from headrace.task.sql.pickling import NotPickled
from headrace.task.sql.reader import ArrowFlush, FlushedRows, ReadAhead, ReaderTask, read_part
from headrace.task.sql.step import FrameTypes, work_of_reading, work_of_writing
from headrace.task.sql.writer import ReceivedFrames
from headrace.task.worker_task import WorkerTask
from task.loop import HeldLease
from task.test_worker_task import WORK, Driver, with_settings

DROPS = "org.apache.kafka.connect.transforms.Filter"
FLUSH = ArrowFlush(rows=3, octets=8)


def step(class_name: str, **config: str) -> StageChoice:
    """One step of a chain."""
    return StageChoice(transform=PluginChoice(class_name=class_name, config=config))


SQL = step("headrace.transforms.SparkSql", where="true")
SPLIT = with_settings(WORK, transforms=(SQL,))


@dataclass
class TwoProcesses:
    """A slot whose halves meet in a pipe that cuts rows into pieces of *size*; *between* changes them there."""

    puppet: Puppet
    work: SlotWork = SPLIT
    between: Callable[[pa.RecordBatch], pa.RecordBatch] = lambda rows: rows
    size: int = 2
    lost_after: int | None = None
    patience: float = 10.0
    lease: HeldLease = field(default_factory=HeldLease)
    progress: Progress = field(default_factory=Progress)

    def __post_init__(self) -> None:
        puppet("c", self.puppet)
        self.sender = MemorySender()
        self.driver: Any = Driver(lambda: True)

    def run(self) -> Outcome:
        """Run both halves; rows are read when they are asked for."""
        lease: Any = self.lease
        run = WorkerTask(
            work_of_writing(self.work),
            self.driver,
            lease,
            self.progress,
            received=ReceivedFrames(self._pieces()),
            make_sender=lambda *_, **__: self.sender,
        )
        try:
            return run.run()
        finally:
            assert run.close()

    def _pieces(self) -> Iterator[pa.RecordBatch]:
        left = self.lost_after
        for rows in self._read():
            for start in range(0, rows.num_rows, self.size):
                if left is not None:
                    left -= 1
                    if left < 0:
                        raise OSError("connection reset")
                yield self.between(rows.slice(start, self.size))

    def _read(self) -> Iterator[pa.RecordBatch]:
        lease: Any = self.lease
        run = ReaderTask(work_of_reading(self.work), self.driver, lease, Progress())
        ahead, encoder = ReadAhead(run), FrameEncoder(FrameTypes())
        try:
            flushed = FlushedRows(encoder, FLUSH, clock=lambda: 0.0)
            yield from flushed.rows(ahead.frames(self.patience))
            yield encoder.end(run.outcome)
        finally:
            ahead.close()

    def values(self) -> list[str]:
        """What is committed."""
        return [(value or b"").decode() for _, _, value in self.sender.committed]


def polls(*script: object) -> Puppet:
    """A task that returns or raises what *script* says, and then has finished."""
    left = list(script)

    def poll(_: object) -> Any:  # noqa: ANN401
        found = left.pop(0) if left else None
        if isinstance(found, Exception):
            raise found
        return found

    return Puppet(poll=poll)


def texts(*values: str, first: int) -> list[SourceRecord]:
    """Records of text at positions from *first* on."""
    return [
        SourceRecord(
            topic="t", value=value, source_partition=SOURCE, source_offset={"at": first + index}
        )
        for index, value in enumerate(values)
    ]


def stored(slot: TwoProcesses) -> set[bytes | None]:
    """The offsets that are committed."""
    return set(slot.sender.offsets.values())


def test_what_the_one_reads_the_other_writes() -> None:
    """Records in their order, and the offset after the last one."""
    slot = TwoProcesses(polls(texts("a", "b", "c", first=1), texts("d", first=4)))

    assert Outcome.FINISHED is slot.run()
    assert ["a", "b", "c", "d"] == slot.values()
    assert {b'{"at":4}'} == stored(slot)


def test_rows_that_are_not_kept_move_their_offsets() -> None:
    """Also when none is sent."""

    def none_kept(rows: pa.RecordBatch) -> pa.RecordBatch:
        index = rows.schema.get_field_index("keep")
        return rows.set_column(index, "keep", pa.array([False] * rows.num_rows))

    slot = TwoProcesses(polls(texts("a", "b", "c", first=1)), between=none_kept)

    assert Outcome.FINISHED is slot.run()
    assert [] == slot.values()
    assert {b'{"at":3}'} == stored(slot)


def test_a_reader_that_fails_fails_the_task_behind_what_it_has_read() -> None:
    """Its error is the reason, and not that a pipe broke."""
    slot = TwoProcesses(polls(texts("a", first=1), ValueError("no more")))

    with pytest.raises(ValueError, match="no more"):
        slot.run()

    assert ["a"] == slot.values()
    assert {b'{"at":1}'} == stored(slot)


@pytest.mark.parametrize("pieces", range(4))
def test_a_reader_that_is_lost_has_its_work_planned_again(pieces: int) -> None:
    """What came before is either committed with its offset, or is not there."""
    slot = TwoProcesses(polls(texts("a", first=1), texts("b", first=2)), lost_after=pieces)

    with pytest.raises(ReplanError, match="The process that reads for this slot was lost"):
        slot.run()

    sent = len(slot.values())
    assert [[], ["a"], ["a", "b"]][sent] == slot.values()
    assert ({f'{{"at":{sent}}}'.encode()} if sent else set()) == stored(slot)


def test_rows_without_a_last_word_are_not_the_end() -> None:
    """A pipe that closes says nothing of the source."""
    rows = FrameEncoder(FrameTypes()).rows(EndOfPoll(0))

    with pytest.raises(ReplanError, match="without a final report"):
        list(ReceivedFrames(rows).frames())


def test_steps_before_and_behind_the_sql_step_run_where_they_stand() -> None:
    """What the first drops never reaches Spark; what is after sees what Spark has made."""
    seen = list[str]()

    def shout(rows: pa.RecordBatch) -> pa.RecordBatch:
        column = rows.column("value")
        seen.extend(each for each in column.to_pylist() if each is not None)
        loud = pa.array([None if each is None else each.upper() for each in column.to_pylist()])
        return rows.set_column(rows.schema.get_field_index("value"), "value", loud)

    router = step("org.apache.kafka.connect.transforms.RegexRouter", regex="t", replacement="u")
    hoist = step("org.apache.kafka.connect.transforms.HoistField$Value", field="it")
    work = with_settings(
        SPLIT,
        transforms=(router, SQL, hoist),
        value_converter=PluginChoice(class_name="json", config={"schemas.enable": "false"}),
    )
    slot = TwoProcesses(polls(texts("a", first=1)), work=work, between=shout)

    slot.run()

    assert ["a"] == seen
    assert [("u", None, b'{"it":"A"}')] == slot.sender.committed


def test_the_task_that_writes_is_the_one_that_moves_offsets() -> None:
    """It is another instance, which is shown what is about to be committed."""
    shown = list[Offsets]()

    def update(offsets: Offsets) -> Offsets:
        shown.append(offsets)
        return {SOURCE: {"at": 9}}

    behaviour = replace(polls(texts("a", first=1)), update=update)
    slot = TwoProcesses(behaviour)

    slot.run()

    assert {SOURCE: {"at": 1}} == shown[0]
    assert {b'{"at":9}'} == stored(slot)


def test_values_that_were_not_planned_fail_the_task_with_both_types() -> None:
    """They are not made null, and what precedes them is committed."""
    (number,) = texts("b", first=2)
    slot = TwoProcesses(polls(texts("a", first=1), [replace(number, value=1)]))

    with pytest.raises(
        TaskFailedError, match=r"the values are of type .*, but the SparkSql step was planned"
    ):
        slot.run()

    assert ["a"] == slot.values()


def test_rows_are_flushed_while_a_source_is_slow() -> None:
    """Twice a second, so that a commit a second has them."""
    times = iter([0.0, 0.1, 0.6, 0.6, 0.7])
    frames: list[Frame] = [EndOfPoll(0), EndOfPoll(0), EndOfPoll(0)]
    flushed = FlushedRows(FrameEncoder(FrameTypes()), FLUSH, clock=lambda: next(times))

    counts = [rows.num_rows for rows in flushed.rows(frames)]

    assert [1, 1, FLUSH.rows, 1, 1] == counts


def test_a_record_that_cannot_be_read_is_tolerated_where_it_is_written() -> None:
    """The reader hands it over in its place."""
    policy = replace(WORK.spec.errors, tolerate=True)
    bad = BadRecord(source_partition=SOURCE, source_offset={"at": 2}, raw=b"?")
    slot = TwoProcesses(
        polls(texts("a", first=1), RecordError("odd", bad=bad), texts("c", first=3)),
        work=with_settings(SPLIT, errors=policy),
    )

    assert Outcome.FINISHED is slot.run()
    assert ["a", "c"] == slot.values()
    assert 1 == slot.progress.skipped


def test_a_record_that_only_its_own_process_can_hold_is_tolerated_like_any_other() -> None:
    """The hook is notified of it with all that could be carried, and of what class the rest was."""
    (odd,) = texts("", first=2)
    odd = replace(odd, key="k", value=threading.Lock(), source_offset=MappingProxyType({"at": 2}))
    slot = TwoProcesses(
        polls([*texts("a", first=1), odd, *texts("c", first=3)]),
        work=with_settings(
            replace(SPLIT, task_class="doubles.puppets:TellingTask"),
            errors=ErrorPolicy(tolerate=True, dead_letters="dead"),
        ),
    )

    assert Outcome.FINISHED is slot.run()
    assert [("t", b"a"), ("dead", None), ("t", b"c")] == [
        (topic, value) for topic, _, value in slot.sender.committed
    ]
    reported = [(each.key, each.value, each.source_offset) for each, _ in slot.puppet.placed]
    assert (3, ("k", NotPickled("_thread.lock"), {"at": 2})) == (len(reported), reported[1])


def test_the_connectors_own_ends_of_transactions_travel() -> None:
    """What it aborts is not sent, and is not read again."""
    left = [texts("a", first=1), texts("b", first=2)]

    def poll(task: SourceTask) -> Any:  # noqa: ANN401
        transaction = task.context.transaction
        assert transaction is not None
        if len(left) == 2:
            transaction.commit_transaction()
        elif left:
            transaction.abort_transaction()
        return left.pop(0) if left else None

    work = with_settings(SPLIT, boundary=BoundaryKind.CONNECTOR)
    slot = TwoProcesses(Puppet(poll=poll), work=work)

    assert Outcome.FINISHED is slot.run()
    assert ["a"] == slot.values()
    assert {b'{"at":2}'} == stored(slot)


def test_a_second_copy_of_a_reader_reads_nothing_and_says_why() -> None:
    """Whoever gets its rows, because its own copy of the writer was granted, has its work planned again."""
    batch = MicroBatch([SPLIT], {}, run="r", readers=True)
    channel = Channel(lambda _: None)
    try:
        (ticket,) = channel.open(batch)
        batch.claim(ticket.for_reading().token, pid=1, host="h")
        rows = list(read_part(ticket.for_reading(), FrameTypes(), FLUSH))
    finally:
        channel.close()

    received = ReceivedFrames(rows)
    (frame,) = received.frames()

    assert isinstance(frame, Failed)
    assert isinstance(frame.error, StaleTokenError)
    assert Outcome.STALE is received.outcome
