"""Frames on their way through Spark: whatever it cuts, they come out as they went in."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, time, timedelta
from typing import Literal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.connect.batch import BatchOffsets, SourceBatch
from headrace.connect.errors import RecordError, TaskFailedError
from headrace.connect.header_columns import HeaderColumn, HeaderColumns
from headrace.connect.partition import SourcePartition
from headrace.connect.record import BadRecord, Header, Headers
from headrace.connect.schema import (
    INT64,
    JSON_DOCUMENT,
    OPTIONAL_STRING,
    STRING,
    TIME,
    TIMESTAMP,
    Field,
    Schema,
    SchemaType,
    arrow_type,
)
from headrace.task.frames import (
    Abort,
    Commit,
    DeadLetter,
    EndOfPoll,
    Failed,
    Filtered,
    Frame,
    Records,
    Refused,
    Waiting,
)
from headrace.task.plain_records import plain_row
from headrace.task.slot_report import Outcome
from headrace.task.sql.frame_codec import FrameDecoder, FrameEncoder
from headrace.task.sql.spark_types import spark_type
from headrace.task.sql.step import FrameTypes

FILE = SourcePartition(filename="f")
ORDER = Schema(
    type=SchemaType.STRUCT,
    name="Order",
    fields=(
        Field("id", STRING),
        Field("at", TIMESTAMP),
        Field("every", TIME.as_optional()),
        Field("tags", Schema(type=SchemaType.ARRAY, value_schema=OPTIONAL_STRING)),
    ),
)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def order(number: int) -> dict[str, object] | None:
    """A value of the schema."""
    if number % 5 == 4:
        return None
    at = EPOCH + timedelta(milliseconds=number - 50)
    every = None if number % 2 else (EPOCH + timedelta(milliseconds=number)).time()
    return {"id": f"o{number}", "at": at, "every": every, "tags": ["a", None][: number % 3]}


@st.composite
def batches(draw: st.DrawFn) -> SourceBatch:
    """Batches of orders, or of a few tombstones, with whatever else a batch may have."""
    rows = draw(st.integers(1, 7))
    numbers = draw(st.lists(st.integers(0, 99), min_size=rows, max_size=rows))
    moving = draw(st.sampled_from([(), ("position",), ("position", "line")]))
    given_offsets = BatchOffsets(
        constant={"version": draw(st.text(max_size=3))},
        columns={name: pa.array(numbers, pa.int64()) for name in moving},
    )
    stamped = draw(st.sampled_from([None, 5, pa.array(numbers, pa.int64())]))
    return SourceBatch(
        topic=draw(st.sampled_from(["t", "u"])),
        partition=draw(st.sampled_from([None, 3])),
        source_partition=SourcePartition(filename=draw(st.sampled_from("fg"))),
        offsets=draw(st.sampled_from([None, given_offsets])),
        values=pa.array([order(each) for each in numbers], arrow_type(ORDER)),
        value_schema=ORDER,
        keys=draw(st.sampled_from([None, pa.array([f"k{each}" for each in numbers])])),
        headers=draw(st.sampled_from([None, header_columns(numbers), header_rows(numbers)])),
        timestamps=stamped,
    )


def header_columns(numbers: Sequence[int]) -> HeaderColumns:
    """The same headers for all rows."""
    texts = pa.array([None if each % 3 else f"h{each}" for each in numbers], pa.utf8())
    columns = [
        HeaderColumn(key="all", value=b"\xff"),
        HeaderColumn(key="line", values=pa.array(numbers, pa.int64())),
        HeaderColumn(key="text", values=texts, schema=OPTIONAL_STRING),
    ]
    return HeaderColumns(columns, rows=len(numbers))


def header_rows(numbers: Sequence[int]) -> list[Headers]:
    """Other headers for each row."""
    return [tuple(Header("n", [each], None) for each in range(number % 3)) for number in numbers]


def letter(reason: str) -> RecordError:
    """An error about a record."""
    bad = BadRecord(source_partition=FILE, source_offset={"position": 1}, raw=b"?")
    return RecordError(reason, native_key="f", position="at line 2", bad=bad)


FRAMES = st.lists(
    st.one_of(
        st.builds(Records, batches()),
        st.builds(EndOfPoll, st.integers(0, 9)),
        st.builds(DeadLetter, st.builds(letter, st.text(max_size=5))),
        st.sampled_from([Commit(), Commit(ends_poll=False), Abort(ends_poll=False)]),
        st.sampled_from([Waiting(), Waiting((FILE, {"position": 3}))]),
        batches().map(lambda batch: Refused(Records(batch.slice(0, 1)), letter("no"), "X")),
        batches().map(lambda batch: Filtered(Records(batch), batch.offset_at(-1))),
    ),
    max_size=8,
)
TYPES = FrameTypes(value=spark_type(arrow_type(ORDER)))


def told(frames: Iterable[Frame]) -> list[object]:
    """What *frames* say, row by row where rows may be cut."""
    said = list[object]()
    for frame in frames:
        match frame:
            case Records():
                said += [("record", *each) for each in plain(frame.batch)]
            case Filtered():
                said += [("filtered", *plain(frame.records.batch), str(frame.offset))]
            case Refused():
                said.append(("refused", str(frame.error), frame.by, *plain(frame.records.batch)))
            case DeadLetter() | Failed():
                said.append((type(frame), type(frame.error), str(frame.error), place(frame.error)))
            case _:
                said.append(frame)
    return said


def place(error: Exception) -> object:
    """Where *error* is."""
    return (error.native_key, error.position, error.bad) if isinstance(error, RecordError) else None


def plain(batch: SourceBatch) -> list[tuple[object, ...]]:
    """The rows of *batch*, and the type of their values."""
    return [(batch.values.type, repr(plain_row(batch, row))) for row in range(len(batch))]


def encoded(frames: Iterable[Frame], types: FrameTypes = TYPES) -> pa.Table:
    """All rows of *frames*, as Spark gets them."""
    encoder = FrameEncoder(types)
    pieces = [piece for frame in frames for piece in encoder.rows(frame)]
    return pa.Table.from_batches([*pieces, encoder.end(Outcome.FINISHED)])


def decoded(table: pa.Table, cuts: Iterable[int] = ()) -> list[Frame]:
    """The frames of *table*, cut again."""
    borders = [0, *sorted(min(cut, len(table)) for cut in cuts), len(table)]
    decoder, frames = FrameDecoder(), list[Frame]()
    whole = table.combine_chunks().to_batches()[0]
    for start, end in itertools.pairwise(borders):
        frames += decoder.frames(whole.slice(start, end - start))
    assert decoder.outcome is Outcome.FINISHED
    return frames


@given(FRAMES, st.lists(st.integers(0, 40), max_size=9))
def test_frames_come_out_as_they_went_in_however_they_are_cut(
    frames: list[Frame], cuts: list[int]
) -> None:
    """Records, offsets, boundaries and errors, in their order."""
    assert told(frames) == told(decoded(encoded(frames), cuts))


def lines(*texts: str) -> SourceBatch:
    """Rows of text without schema, at positions from 1 on."""
    positions = pa.array(range(1, len(texts) + 1), pa.int64())
    return SourceBatch(
        topic="t",
        values=pa.array(texts, pa.utf8()),
        source_partition=FILE,
        offsets=BatchOffsets(columns={"position": positions}),
    )


@pytest.mark.parametrize("headers", [header_columns, header_rows])
def test_headers_of_a_batch_of_several_pieces_are_sent_once(
    headers: Callable[[Sequence[int]], Sequence[Headers]],
) -> None:
    """With the head of their batch."""
    numbers = range(12_000)
    batch = replace(lines(*map(str, numbers)), headers=headers(numbers))
    types = FrameTypes(value=pa.utf8())

    table = encoded([Records(batch)], types)

    # The head, twice rows, and the end.
    assert 4 == table["kind"].num_chunks
    assert told([Records(batch)]) == told(decoded(table))


def replaced(table: pa.Table, name: str, column: pa.Array) -> pa.Table:
    """*table* as the step leaves it that makes *column*."""
    return table.set_column(table.schema.get_field_index(name), name, column)


def test_rows_that_are_not_kept_are_filtered_and_move_their_offset() -> None:
    """A row for which nothing is known is not kept."""
    table = encoded([Records(lines("a", "b", "c"))], FrameTypes())
    kept = replaced(table, "keep", pa.array([True, True, False, None, True]))

    sent, dropped = decoded(kept)

    assert isinstance(sent, Records)
    assert ["a"] == sent.batch.values.to_pylist()
    assert isinstance(dropped, Filtered)
    assert {"position": 3} == dropped.offset
    assert ["b", "c"] == dropped.records.batch.values.to_pylist()


def test_values_that_spark_has_made_get_the_schema_of_their_type() -> None:
    """Every field may be null, and an instant is Connect's Timestamp, rounded down."""
    table = encoded([Records(lines("a"))], FrameTypes())
    at = pa.array([None, -1, None], pa.timestamp("us", tz="Europe/Berlin"))
    made = pa.StructArray.from_arrays(
        [pa.array([None, 7, None], pa.int32()), at], names=["n", "at"]
    )

    (frame,) = decoded(replaced(table, "value", made))

    assert isinstance(frame, Records)
    assert frame.batch.value_schema == Schema(
        type=SchemaType.STRUCT,
        fields=(
            Field("n", Schema(type=SchemaType.INT32, optional=True)),
            Field("at", TIMESTAMP.as_optional()),
        ),
    )
    assert [{"n": 7, "at": EPOCH - timedelta(milliseconds=1)}] == frame.batch.values.to_pylist()


@pytest.mark.parametrize("unit", ["us", "ns"])
def test_a_time_of_day_that_spark_has_made_is_connects_time(unit: Literal["us", "ns"]) -> None:
    """Rounded down to milliseconds, also where the value that was read was a number as wide."""
    read = Schema(type=SchemaType.STRUCT, fields=(Field("t", INT64),))
    batch = replace(lines("a"), values=pa.array([{"t": 1}], arrow_type(read)), value_schema=read)
    table = encoded([Records(batch)], FrameTypes(value=spark_type(arrow_type(read))))
    each = {"us": 1, "ns": 1_000}[unit]
    noon = pa.array([None, 43_200_001_999 * each, None], pa.time64(unit))

    (frame,) = decoded(replaced(table, "value", pa.StructArray.from_arrays([noon], ["t"])))

    assert isinstance(frame, Records)
    assert (TIME.as_optional(), [{"t": time(12, 0, 0, 1_000)}]) == (
        frame.batch.value_schema and frame.batch.value_schema.fields[0].schema,
        frame.batch.values.to_pylist(),
    )


def test_a_document_that_no_expression_changes_stays_a_document() -> None:
    """Expressions see its text."""
    document = pa.ExtensionArray.from_storage(JSON_DOCUMENT, pa.array([json.dumps({"a": 1})]))
    batch = SourceBatch(topic="t", values=document, source_partition=FILE, offsets=None)

    (frame,) = decoded(encoded([Records(batch)], FrameTypes()))

    assert isinstance(frame, Records)
    assert JSON_DOCUMENT == frame.batch.values.type


def test_records_of_another_type_than_planned_are_refused_with_both() -> None:
    """Nothing becomes null because of its type."""
    numbers = SourceBatch(topic="t", values=pa.array([1]), source_partition=FILE, offsets=None)

    with pytest.raises(TaskFailedError, match=r"filename f: the values .*int64, but .* string"):
        encoded([Records(numbers)], FrameTypes())


def without_row(table: pa.Table, row: int) -> pa.Table:
    """*table* without one of its rows."""
    return pa.concat_tables([table.slice(0, row), table.slice(row + 1)])


@pytest.mark.parametrize("row", [0, 1, 2])
def test_a_row_that_is_missing_is_an_error(row: int) -> None:
    """A function that filters must not lose records."""
    table = encoded([Records(lines("a", "b"))], FrameTypes())

    with pytest.raises(TaskFailedError, match="changed the set or order of rows"):
        decoded(without_row(table, row))


class OwnError(Exception):
    """One that cannot be carried: it takes two arguments, but passes on one."""

    def __init__(self, first: str, second: str) -> None:
        super().__init__(f"{first}{second}")


def test_an_error_of_any_class_is_carried_with_its_trace() -> None:
    """What a task raises may be of a class that only its own process can make."""
    try:
        raise OwnError("a", "b")
    except OwnError as error:
        (frame,) = decoded(encoded([Failed(error)]))

    assert isinstance(frame, Failed)
    assert str(frame.error) == f"{__name__}.OwnError: ab"
    assert 'raise OwnError("a", "b")' in str(frame.error.__cause__)
