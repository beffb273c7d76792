"""What fails between the poll loop and Spark: no source offset is committed of which a part was not sent."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pytest

from doubles.puppets import SOURCE
from headrace.connect.batch import BatchOffsets, SourceBatch
from headrace.connect.errors import RetriableError, TaskFailedError
from headrace.connect.record import SourceRecord
from headrace.task.connector_spec import BoundaryKind
from headrace.task.frames import Commit, EndOfPoll, Records
from headrace.task.sql.frame_codec import FrameEncoder, RowKind
from headrace.task.sql.reader import FlushedRows
from headrace.task.sql.spark_types import spark_type
from headrace.task.sql.step import FrameTypes
from task.test_split import FLUSH, SPLIT, SQL, TwoProcesses, polls, step, stored
from task.test_worker_task import with_settings


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
    slot = TwoProcesses(
        polls(pair()), work=with_settings(SPLIT, transforms=(before, SQL), boundary=kind)
    )

    with pytest.raises(RetriableError, match="away"):
        slot.run()

    assert ([], set()) == (slot.values(), stored(slot))


def test_a_record_of_a_type_that_was_not_planned_commits_nothing_of_its_offset() -> None:
    """Another start with a better schema reads both."""
    slot = TwoProcesses(polls(pair(second=5)))

    with pytest.raises(TaskFailedError, match="int64"):
        slot.run()

    assert ([], set()) == (slot.values(), stored(slot))


FAR = pa.array([0, 9_223_372_036_854_775_807, 0], pa.timestamp("s", "UTC"))
FINE = pa.array([1_000, 1_001], pa.timestamp("ns", "UTC"))


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        (FAR, "source offset at 2: the value cannot be handed to Spark: Casting from timestamp[s]"),
        (nested := pa.StructArray.from_arrays([FAR], ["at"]), "at 2: at of the value cannot be h"),
        (nested.slice(1), "source offset at 1: at of the value cannot be handed"),
        (pa.StructArray.from_arrays([nested], ["o"]), "at 2: o.at of the value cannot be h"),
        (FINE, "at 2: the value cannot be handed to Spark: Casting from timestamp[ns] to timest"),
    ],
)
def test_a_value_that_spark_cannot_hold_is_named_with_its_place(
    values: pa.Array, sentence: str
) -> None:
    """And with what to do; nothing of its batch is handed over."""
    encoder = FrameEncoder(FrameTypes(value=spark_type(values.type)))

    with pytest.raises(TaskFailedError, match=re.escape(sentence) + r".* ReplaceField"):
        next(encoder.rows(Records(some_rows(values))))


def test_moments_finer_than_microseconds_travel_where_they_are_whole_ones() -> None:
    """Whatever unit they are counted in."""
    values = pa.array([1_000, None, -2_000], pa.timestamp("ns", "UTC"))
    encoder = FrameEncoder(FrameTypes(value=spark_type(values.type)))

    _, rows = encoder.rows(Records(some_rows(values)))

    assert [1, None, -2] == rows.column("value").cast(pa.int64()).to_pylist()


def test_what_cannot_be_handed_over_fails_the_task() -> None:
    """A job that it ended would be tried again forever."""
    flushed = FlushedRows(FrameEncoder(FrameTypes(value=spark_type(FAR.type))), FLUSH)

    rows = list(flushed.rows([Records(some_rows(FAR))]))

    assert [b"cannot be handed to Spark" in rows[0].column("payload")[0].as_py()] == [True] * len(
        rows
    )


def test_the_end_of_a_transaction_is_flushed_at_once() -> None:
    """The next poll may be long in coming."""
    flushed = FlushedRows(FrameEncoder(FrameTypes()), FLUSH, clock=lambda: 0.0)
    frames = [Records(some_rows(pa.array(["a"]))), EndOfPoll(1), Commit()]

    kinds = [rows.column("kind")[0].as_py() for rows in flushed.rows(frames)]

    assert [RowKind.FILLER, RowKind.FILLER] == kinds[-2:]


def some_rows(values: pa.Array) -> SourceBatch:
    """A batch of *values*, at offsets from 1 on."""
    return SourceBatch(
        topic="t",
        values=values,
        source_partition=SOURCE,
        offsets=BatchOffsets(columns={"at": pa.array(range(1, len(values) + 1), pa.int64())}),
    )
