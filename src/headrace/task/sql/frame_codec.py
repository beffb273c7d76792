"""Frames as rows for Spark, and back: it does not matter where Spark cuts batches of rows.

Each batch of records begins with a row of what its records have in common. Frames that are not records are rows among them.
"""

from __future__ import annotations

import itertools
import pickle
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import lru_cache
from typing import Final, cast

import numpy as np
import pyarrow as pa

from headrace.connect.batch import BatchOffsets, SourceBatch
from headrace.connect.errors import TaskFailedError
from headrace.connect.header_columns import HeaderColumn, HeaderColumns
from headrace.connect.json_document import document
from headrace.connect.partition import SourceOffset, SourcePartition
from headrace.connect.record import Headers
from headrace.connect.schema import Schema, arrow_type
from headrace.task.frames import (
    Abort,
    Commit,
    DeadLetter,
    Encoded,
    EndOfPoll,
    Failed,
    Filtered,
    Frame,
    Records,
    Refused,
    Waiting,
)
from headrace.task.record_origin import position_text, source_name
from headrace.task.slot_report import Outcome
from headrace.task.sql.pickling import pickled_frame, unpickled_frame
from headrace.task.sql.spark_types import (
    converted,
    has_times,
    nullable_schema,
    schema_of_spark_type,
    spark_type,
)
from headrace.task.sql.step import HEADER, FrameTypes


class RowKind(IntEnum):
    """What a row is; the column ``kind``."""

    RECORD = 0
    DEAD_LETTER = 1
    FILTERED = 2
    REFUSED = 3
    END_OF_POLL = 4
    COMMIT = 5
    ABORT = 6
    FAILED = 7
    BATCH = 8
    """What the following records have in common, and how many they are."""
    END = 9
    """Reading has ended; only filler rows follow."""
    FILLER = 10
    """Flushes the rows before it through Spark."""
    WAITING = 11


_ADVICE = "Correct it in the source, or remove the field before SparkSql, for example with ReplaceField and exclude."

# What Spark holds of a batch at once, besides the rows that it makes of it; larger pieces gain nothing.
_MOST_BYTES: Final = 4 * 1024 * 1024
_MOST_ROWS: Final = 10_000
_KINDS: Final = {
    DeadLetter: RowKind.DEAD_LETTER,
    Filtered: RowKind.FILTERED,
    Refused: RowKind.REFUSED,
    EndOfPoll: RowKind.END_OF_POLL,
    Commit: RowKind.COMMIT,
    Abort: RowKind.ABORT,
    Failed: RowKind.FAILED,
    Waiting: RowKind.WAITING,
}
IN_COLUMN = "column"


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchHead:
    """A batch without its rows, of which there are *rows*; each of them has its *number*.

    *values* and *keys* are the types of the columns, *in_spark* is the type in which Spark received the values. What
    the step may make null is nullable in *values* and *value_schema*. *offset* is ``None`` if the batch has no offsets.
    *headers* are those of all rows: a step sees them, but cannot change them. *timestamps* is one for all rows, ``None``,
    or :data:`IN_COLUMN`.
    """

    number: int
    rows: int
    topic: str
    partition: int | None
    source_partition: SourcePartition
    offset: SourceOffset | None
    moving: tuple[str, ...]
    values: pa.DataType
    in_spark: pa.DataType
    value_schema: Schema | None
    keys: pa.DataType | None
    key_schema: Schema | None
    headers: Sequence[Headers] | None
    timestamps: int | str | None


def _head_of(batch: SourceBatch, number: int, types: FrameTypes) -> BatchHead:
    """The head of *batch*, which gets this *number*; *types* are those of the connector's frames."""
    offsets, stamps = batch.offsets, batch.timestamps
    schema, values = _after_step(batch, types)
    return BatchHead(
        number=number,
        rows=len(batch),
        topic=batch.topic,
        partition=batch.partition,
        source_partition=batch.source_partition,
        offset=None if offsets is None else dict(offsets.constant),
        moving=() if offsets is None else tuple(offsets.columns),
        values=values,
        in_spark=types.value,
        value_schema=schema,
        keys=None if batch.keys is None else batch.keys.type,
        key_schema=batch.key_schema,
        headers=_compact(batch.headers),
        timestamps=stamps if isinstance(stamps, int | None) else IN_COLUMN,
    )


def _compact(headers: Sequence[Headers] | None) -> Sequence[Headers] | None:
    """*headers* without rows of columns that they are a slice of, which would be pickled, too."""
    if isinstance(headers, HeaderColumns):
        return headers.take(pa.array(np.arange(len(headers))))
    return headers


def _after_step(batch: SourceBatch, types: FrameTypes) -> tuple[Schema | None, pa.DataType]:
    """The schema and the type of the values of *batch* after a step that keeps their type."""
    schema, kind = batch.value_schema, batch.values.type
    if schema is None or types.after_step is None or pa.types.is_null(kind):
        return schema, kind
    found = nullable_schema(schema, types.after_step)
    return (schema, kind) if found is schema else (found, arrow_type(found))


class FrameEncoder:
    """Makes rows of the frames of one task, in order. Its records have these *types*."""

    def __init__(self, types: FrameTypes) -> None:
        self._types = types
        self._schema = types.schema()
        self._batches = 0

    def rows(self, frame: Frame) -> Iterator[pa.RecordBatch]:
        """*frame* as rows.

        Raises :class:`~headrace.connect.errors.TaskFailedError` for records of other types than planned, and for a
        value that Spark cannot represent.
        """
        if isinstance(frame, Records):
            yield from self._records(frame.batch)
        else:
            assert not isinstance(frame, Encoded), (
                "the poll loop refuses them where there are steps"
            )
            yield self._mark_rows(_KINDS[type(frame)], pickled_frame(frame))

    def end(self, outcome: Outcome) -> pa.RecordBatch:
        """The row that says how reading ended."""
        return self._mark_rows(RowKind.END, outcome.value.encode())

    def filler(self, rows: int, payload: bytes | None = None) -> pa.RecordBatch:
        """So many filler *rows*."""
        return self._mark_rows(RowKind.FILLER, payload, rows)

    def _mark_rows(self, kind: int, payload: bytes | None, rows: int = 1) -> pa.RecordBatch:
        given = {
            "kind": pa.repeat(pa.scalar(kind, pa.int8()), rows),
            "headers": _no_headers(rows),
            "keep": pa.repeat(pa.scalar(value=True), rows),
            "payload": pa.repeat(pa.scalar(payload, pa.binary()), rows),
        }
        columns = [given.get(each.name, pa.nulls(rows, each.type)) for each in self._schema]
        return pa.RecordBatch.from_arrays(columns, schema=self._schema)

    def _records(self, batch: SourceBatch) -> Iterator[pa.RecordBatch]:
        if not len(batch):
            return
        self._check(batch)
        # All rows are converted before the first is handed over: rows that share an offset must be sent together.
        keys = _as_spark_type(batch, "the key", batch.keys, self._types.key)
        values = _as_spark_type(batch, "the value", batch.values, self._types.value)
        head = _head_of(batch, self._batches, self._types)
        self._batches += 1
        yield self._mark_rows(RowKind.BATCH, pickle.dumps(head))
        step = _rows_at_once(batch)
        for start in range(0, len(batch), step):
            piece = batch.slice(start, min(step, len(batch) - start))
            parts = keys.slice(start, len(piece)), values.slice(start, len(piece))
            yield pa.RecordBatch.from_arrays(_columns(piece, head, *parts), schema=self._schema)

    def _check(self, batch: SourceBatch) -> None:
        pairs = [("values", batch.values, self._types.value), ("keys", batch.keys, self._types.key)]
        for noun, column, planned in pairs:
            if column is None or pa.types.is_null(column.type):
                continue
            if spark_type(column.type) != planned:
                raise TaskFailedError(
                    f"{source_name(batch.source_partition)}: the {noun} are of type {column.type}, but "
                    f"the SparkSql step was planned with {planned}. All records of a connector with that "
                    "step must have one type, which the connector declares before it starts: give them one "
                    "schema (for files: files.schema), or remove the step."
                )


def _columns(
    batch: SourceBatch, head: BatchHead, keys: pa.Array, values: pa.Array
) -> list[pa.Array]:
    rows, stamps, offsets = len(batch), batch.timestamps, batch.offsets
    return [
        pa.repeat(pa.scalar(RowKind.RECORD, pa.int8()), rows),
        pa.repeat(batch.topic, rows),
        pa.repeat(pa.scalar(batch.partition, pa.int32()), rows),
        keys,
        values,
        _headers_as_text(batch.headers, rows),
        stamps if isinstance(stamps, pa.Array) else pa.repeat(pa.scalar(stamps, pa.int64()), rows),
        pa.repeat(pa.scalar(head.number, pa.int32()), rows),
        pa.nulls(rows, pa.binary()) if offsets is None else _packed_offsets(offsets.columns, rows),
        pa.repeat(pa.scalar(value=True), rows),
        pa.nulls(rows, pa.binary()),
    ]


def _as_spark_type(
    batch: SourceBatch, noun: str, column: pa.Array | None, kind: pa.DataType
) -> pa.Array:
    if column is None or pa.types.is_null(column.type):
        return pa.nulls(len(batch), kind)
    try:
        return converted(column, kind)
    except pa.ArrowInvalid as error:
        raise _not_representable(batch, noun, column, kind) from error


def _rows_at_once(batch: SourceBatch) -> int:
    return max(1, min(_MOST_ROWS, _MOST_BYTES * len(batch) // max(1, batch.nbytes)))


def _not_representable(
    batch: SourceBatch, noun: str, column: pa.Array, kind: pa.DataType
) -> TaskFailedError:
    """The error about the first value of *column*, the batch's *noun*, that cannot be converted to *kind*.

    There must be such a value.
    """
    row = _first(column, kind)
    path, error = _part(column.slice(row, 1), kind, ())
    source, what = (
        source_name(batch.source_partition),
        f"{'.'.join(path)} of {noun}" if path else noun,
    )
    return TaskFailedError(
        f"{source}, {position_text(batch.offset_at(row))}: {what} cannot be handed to Spark: {error}. {_ADVICE}"
    )


def _first(column: pa.Array, kind: pa.DataType) -> int:
    good, bad = 0, len(column)
    while bad - good > 1:
        middle = (good + bad) // 2
        if _refusal(column.slice(good, middle - good), kind) is None:
            good = middle
        else:
            bad = middle
    return good


def _part(
    row: pa.Array, kind: pa.DataType, path: tuple[str, ...]
) -> tuple[tuple[str, ...], pa.ArrowInvalid | None]:
    """The path of the field of *row* that is refused, and why."""
    for name, part, wanted in _fields(row, kind):
        if _refusal(part, wanted) is not None:
            return _part(part, wanted, (*path, name))
    return path, _refusal(row, kind)


def _fields(row: pa.Array, kind: pa.DataType) -> Iterator[tuple[str, pa.Array, pa.DataType]]:
    if isinstance(row, pa.StructArray) and isinstance(kind, pa.StructType):
        # Not by the slice's children, which are not sliced.
        parts = row.flatten()
        yield from ((each.name, parts[index], each.type) for index, each in enumerate(kind))


def _refusal(values: pa.Array, kind: pa.DataType) -> pa.ArrowInvalid | None:
    try:
        converted(values, kind)
    except pa.ArrowInvalid as error:
        return error
    return None


_HEADERS = pa.list_(HEADER)


def _headers_as_text(headers: Sequence[Headers] | None, rows: int) -> pa.Array:
    """*headers* as SQL sees them: each value as text, whatever its type."""
    if headers is None:
        return _no_headers(rows)
    if isinstance(headers, HeaderColumns) and all(map(_casts_to_text, headers.columns)):
        return _by_columns(headers)
    texts = [[{"key": one.key, "value": _text(one.value)} for one in each] for each in headers]
    return pa.array(texts, _HEADERS)


def _no_headers(rows: int) -> pa.Array:
    """An empty list for each row.

    Not nulls, because for each null Spark scans all rows before it in the batch.
    """
    return pa.ListArray.from_arrays(
        pa.repeat(pa.scalar(0, pa.int32()), rows + 1), pa.nulls(0, HEADER)
    )


# Arrow's text of these types is that of :func:`_text`.
_TEXT_BY_CAST = (pa.types.is_string, pa.types.is_integer, pa.types.is_boolean)


def _casts_to_text(column: HeaderColumn) -> bool:
    values = column.values
    return values is None or any(belongs(values.type) for belongs in _TEXT_BY_CAST)


def _by_columns(headers: HeaderColumns) -> pa.Array:
    rows, width = len(headers), len(headers.columns)
    borders = pa.array(np.arange(rows + 1, dtype=np.int32) * np.int32(width))
    if not width:
        return pa.ListArray.from_arrays(borders, pa.nulls(0, HEADER))
    keys = pa.array([each.key for each in headers.columns], pa.utf8())
    texts = pa.concat_arrays([_texts(each, rows) for each in headers.columns])
    of_columns = np.repeat(np.arange(width)[None, :], rows, axis=0).ravel()
    order = (np.arange(width)[None, :] * rows + np.arange(rows)[:, None]).ravel()
    entries = [keys.take(pa.array(of_columns)), texts.take(pa.array(order))]
    return pa.ListArray.from_arrays(
        borders, pa.StructArray.from_arrays(entries, fields=list(HEADER)), type=_HEADERS
    )


def _texts(column: HeaderColumn, rows: int) -> pa.Array:
    if column.values is not None:
        return column.values.cast(pa.utf8())
    return pa.repeat(pa.scalar(_text(column.value), pa.utf8()), rows)


def _text(value: object) -> str | None:
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    try:
        return document(value)
    except (TypeError, ValueError):
        return str(value)


_OFFSET_BYTES = 8


def _packed_offsets(columns: Mapping[str, pa.Int64Array], rows: int) -> pa.BinaryArray:
    """One value per row: the row's numbers in *columns*, eight bytes each."""
    width = _OFFSET_BYTES * len(columns)
    numbers = np.empty((rows, len(columns)), "<i8")
    for index, column in enumerate(columns.values()):
        numbers[:, index] = column.to_numpy()
    borders = np.arange(rows + 1, dtype=np.int32) * np.int32(width)
    buffers = [None, pa.py_buffer(borders), pa.py_buffer(numbers)]
    return pa.Array.from_buffers(pa.binary(), rows, buffers)


def _unpacked_offsets(column: pa.BinaryArray, names: Sequence[str]) -> dict[str, pa.Int64Array]:
    """The columns *names* that :func:`_packed_offsets` combined into *column*.

    Raises ``ValueError`` when *column* does not have that form.
    """
    width = _OFFSET_BYTES * len(names)
    _, borders, stored = column.buffers()
    starts = np.frombuffer(borders or b"", np.int32)[column.offset :][: len(column) + 1]
    if column.null_count or (np.diff(starts) != width).any():
        raise ValueError(f"The packed source offsets of rows are not {width} bytes each.")
    if not len(column) or not names:
        return {name: pa.array([], pa.int64()) for name in names}
    octets = np.frombuffer(stored or b"", np.uint8)[starts[0] : starts[-1]]
    numbers = octets.view("<i8").reshape(len(column), len(names))
    return {name: pa.array(numbers[:, index]) for index, name in enumerate(names)}


class FrameDecoder:
    """Makes frames of the rows of one task, which come in order; *outcome* is set after the last one."""

    def __init__(self) -> None:
        self._head: BatchHead | None = None
        self._left = 0
        self.outcome: Outcome | None = None

    def frames(self, rows: pa.RecordBatch) -> Iterator[Frame]:
        """The frames of *rows*; a batch that Spark has split becomes several frames.

        Raises :class:`~headrace.connect.errors.TaskFailedError` when rows are missing, or have changed their order.
        """
        kinds = rows.column("kind").to_numpy()
        borders = [0, *(np.flatnonzero(np.diff(kinds)) + 1).tolist(), len(kinds)]
        for start, end in itertools.pairwise(borders):
            if start == end or kinds[start] == RowKind.FILLER:
                continue
            if kinds[start] == RowKind.RECORD:
                yield from self._records(rows.slice(start, end - start))
                continue
            for row in range(start, end):
                yield from self._mark(int(kinds[row]), rows.column("payload")[row].as_py())

    def _mark(self, kind: int, payload: bytes) -> Iterator[Frame]:
        if self._left and kind != RowKind.FAILED:
            raise _changed(f"{self._left} rows are missing")
        match kind:
            case RowKind.BATCH:
                head = cast("BatchHead", pickle.loads(payload))  # noqa: S301 (the reading process's)
                self._head, self._left = head, head.rows
            case RowKind.END:
                self.outcome = Outcome(payload.decode())
            case _:
                yield unpickled_frame(payload)

    def _records(self, rows: pa.RecordBatch) -> Iterator[Frame]:
        head, count = self._head, rows.num_rows
        if head is None or count > self._left:
            raise _changed(f"there are {count} rows where {self._left} were expected")
        if (rows.column("source_partition").to_numpy(zero_copy_only=False) != head.number).any():
            raise _changed("rows are in another order")
        first = head.rows - self._left
        self._left -= count
        headers = None if head.headers is None else head.headers[first : first + count]
        records = Records(_batch(rows, head, headers))
        keep = rows.column("keep").fill_null(fill_value=False).to_numpy(zero_copy_only=False)
        if keep.all():
            yield records
            return
        if keep.any():
            yield records.take(pa.array(np.flatnonzero(keep)))
        dropped = records.take(pa.array(np.flatnonzero(~keep)))
        yield Filtered(dropped, records.batch.offset_at(-1))


def _changed(how: str) -> TaskFailedError:
    return TaskFailedError(
        f"The SparkSql step has changed the set or order of rows: {how}. It may change the content of a row and drop "
        "rows with where; a function must return every row that it gets, in the same order."
    )


def _batch(rows: pa.RecordBatch, head: BatchHead, headers: Sequence[Headers] | None) -> SourceBatch:
    schema, values = _values(rows.column("value"), head)
    stamps = head.timestamps
    return SourceBatch(
        topic=head.topic,
        partition=head.partition,
        source_partition=head.source_partition,
        offsets=_offsets(rows.column("offset"), head),
        values=values,
        value_schema=schema,
        keys=None if head.keys is None else converted(rows.column("key"), head.keys),
        key_schema=head.key_schema,
        headers=headers,
        timestamps=rows.column("timestamp") if stamps == IN_COLUMN else cast("int | None", stamps),
    )


def _offsets(column: pa.Array, head: BatchHead) -> BatchOffsets | None:
    if head.offset is None:
        return None
    moving = _unpacked_offsets(converted(column, pa.binary()), head.moving)
    return BatchOffsets(constant=head.offset, columns=moving)


def _values(column: pa.Array, head: BatchHead) -> tuple[Schema | None, pa.Array]:
    """The values of a piece, and their schema: the schema with which they were read if Spark has not changed their type."""
    made = _made_schema(column.type, head.in_spark)
    if made is None:
        return head.value_schema, converted(column, head.values)
    return made, converted(column, arrow_type(made))


@lru_cache(maxsize=8)
def _made_schema(kind: pa.DataType, in_spark: pa.DataType) -> Schema | None:
    """The schema of values of type *kind* that Spark has returned; ``None`` if it is the type that Spark received."""
    if spark_type(kind) == in_spark and not has_times(kind):
        return None
    try:
        return schema_of_spark_type(kind)
    except TypeError as error:
        raise TaskFailedError(
            f"The SparkSql step returns values that Kafka Connect has no type for: {error} Cast them in select."
        ) from error
