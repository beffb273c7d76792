"""What fails between the reading half and Spark: no source offset is committed of which a part was not sent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from headrace.connect.batch import BatchOffsets, SourceBatch
from headrace.connect.errors import RetriableError, TaskFailedError
from headrace.connect.record import SourceRecord
from headrace.slot.frames import Commit, EndOfPoll, Records
from headrace.slot.split.encoder import FrameEncoder
from headrace.slot.split.pushing import Pushing
from headrace.slot.split.types import NOTHING, FrameTypes
from headrace.slot.work import BoundaryKind
from headrace.testing.puppets import SOURCE
from slot.test_split import PUSH, SPLIT, SQL, TwoProcesses, polls, step, stored


class AwayForB:
    """A transformation of an author's that needs a service."""

    def configure(self, config: Mapping[str, str]) -> None:
        """Nothing to configure."""

    def apply(self, record: SourceRecord) -> SourceRecord:
        """The record as it is."""
        if record.value == "b":
            raise RetriableError("The service is away.")
        return record


def pair(second: Any = "b") -> list[SourceRecord]:  # noqa: ANN401 (a value of any type)
    """Two records that were made of one, at one source offset."""
    return [
        SourceRecord(topic=topic, value=value, source_partition=SOURCE, source_offset={"at": 7})
        for topic, value in (("t", "a"), ("audit", second))
    ]


@pytest.mark.parametrize("kind", [BoundaryKind.POLL, BoundaryKind.INTERVAL])
def test_a_step_before_spark_that_may_pass_commits_nothing_of_its_poll(kind: BoundaryKind) -> None:
    """The work is planned again from before it, as with one process."""
    before = step(f"{__name__}:{AwayForB.__name__}")
    slot = TwoProcesses(polls(pair()), work=replace(SPLIT, transforms=(before, SQL), boundary=kind))

    with pytest.raises(RetriableError, match="away"):
        slot.run()

    assert ([], set()) == (slot.values(), stored(slot))


def test_a_record_of_a_type_that_was_not_planned_commits_nothing_of_its_offset() -> None:
    """Another start with a better schema reads both."""
    slot = TwoProcesses(polls(pair(second=5)))

    with pytest.raises(TaskFailedError, match="int64"):
        slot.run()

    assert ([], set()) == (slot.values(), stored(slot))


def test_what_arrow_cannot_carry_fails_the_task() -> None:
    """A job that it ended would be tried again for ever."""
    values = pa.array([9_223_372_036_854_775_807], pa.timestamp("s", "UTC"))
    carries = FrameTypes(value=pa.timestamp("us", "UTC"))
    pushing = Pushing(FrameEncoder(carries), PUSH)

    rows = list(pushing.rows([Records(one_row(values))]))

    assert b"could not be handed to Spark" in rows[-1].column("note")[0].as_py()


def test_the_end_of_a_transaction_is_pushed_at_once() -> None:
    """The next poll may be long in coming."""
    pushing = Pushing(FrameEncoder(FrameTypes()), PUSH, clock=lambda: 0.0)
    frames = [Records(one_row(pa.array(["a"]))), EndOfPoll(1), Commit()]

    kinds = [rows.column("kind")[0].as_py() for rows in pushing.rows(frames)]

    assert [NOTHING, NOTHING] == kinds[-2:]


def one_row(values: pa.Array) -> SourceBatch:
    """A batch of one row."""
    return SourceBatch(
        topic="t",
        values=values,
        source_partition=SOURCE,
        offsets=BatchOffsets(columns={"at": pa.array([1])}),
    )
