"""Encodes frames as rows for Spark; a value that Spark's types cannot hold is refused with advice."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from typing import Final

import pyarrow as pa

from headrace.connect.batch import SourceBatch
from headrace.connect.errors import TaskFailedError
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
from headrace.task.record_origin import position_text, source_name
from headrace.task.slot_report import Outcome
from headrace.task.sql import row_types as types
from headrace.task.sql.notes import BatchHead, head_of, note_of
from headrace.task.sql.row_types import (
    FrameTypes,
    no_headers,
    packed,
    reshaped,
    shown,
    travelling,
)

_ADVICE = "Correct it in the source, or remove the field before SparkSql, for example with ReplaceField and exclude."

# What Spark holds of a batch at once, besides the rows that it makes of it; larger pieces gain nothing.
_MOST_BYTES: Final = 4 * 1024 * 1024
_MOST_ROWS: Final = 10_000
_KINDS: Final = {
    DeadLetter: types.DEAD_LETTER,
    Filtered: types.FILTERED,
    Refused: types.REFUSED,
    EndOfPoll: types.END_OF_POLL,
    Commit: types.COMMIT,
    Abort: types.ABORT,
    Failed: types.FAILED,
    Waiting: types.WAITING,
}


def unrepresentable(
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
        reshaped(values, kind)
    except pa.ArrowInvalid as error:
        return error
    return None


class FrameEncoder:
    """Makes rows of the frames of one task, in order. Its records have the types *carries*."""

    def __init__(self, carries: FrameTypes) -> None:
        self._types = carries
        self._schema = carries.schema()
        self._batches = 0

    def rows(self, frame: Frame) -> Iterator[pa.RecordBatch]:
        """*frame* as rows.

        Raises :class:`~headrace.connect.errors.TaskFailedError` for records of other types than planned, and for a
        value that Spark cannot represent.
        """
        if isinstance(frame, Records):
            yield from self._records(frame.batch)
        else:
            yield self._marks(_KINDS[type(frame)], note_of(frame))

    def end(self, outcome: Outcome) -> pa.RecordBatch:
        """The row that says how reading ended."""
        return self._marks(types.END, outcome.value.encode())

    def nothing(self, rows: int, note: bytes | None = None) -> pa.RecordBatch:
        """So many filler *rows*."""
        return self._marks(types.NOTHING, note, rows)

    def _marks(self, kind: int, note: bytes | None, rows: int = 1) -> pa.RecordBatch:
        given = {
            "kind": pa.repeat(pa.scalar(kind, pa.int8()), rows),
            "headers": no_headers(rows),
            "keep": pa.repeat(pa.scalar(value=True), rows),
            "note": pa.repeat(pa.scalar(note, pa.binary()), rows),
        }
        columns = [given.get(each.name, pa.nulls(rows, each.type)) for each in self._schema]
        return pa.RecordBatch.from_arrays(columns, schema=self._schema)

    def _records(self, batch: SourceBatch) -> Iterator[pa.RecordBatch]:
        if not len(batch):
            return
        self._check(batch)
        # All rows are converted before the first is handed over: rows that share an offset must be sent together.
        keys = _carried(batch, "the key", batch.keys, self._types.key)
        values = _carried(batch, "the value", batch.values, self._types.value)
        head = head_of(batch, self._batches, self._types)
        self._batches += 1
        yield self._marks(types.BATCH, pickle.dumps(head))
        step = _rows_at_once(batch)
        for start in range(0, len(batch), step):
            piece = batch.slice(start, min(step, len(batch) - start))
            given = keys.slice(start, len(piece)), values.slice(start, len(piece))
            yield pa.RecordBatch.from_arrays(_columns(piece, head, *given), schema=self._schema)

    def _check(self, batch: SourceBatch) -> None:
        pairs = [("values", batch.values, self._types.value), ("keys", batch.keys, self._types.key)]
        for noun, column, planned in pairs:
            if column is None or pa.types.is_null(column.type):
                continue
            if travelling(column.type) != planned:
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
        pa.repeat(pa.scalar(types.RECORD, pa.int8()), rows),
        pa.repeat(batch.topic, rows),
        pa.repeat(pa.scalar(batch.partition, pa.int32()), rows),
        keys,
        values,
        shown(batch.headers, rows),
        stamps if isinstance(stamps, pa.Array) else pa.repeat(pa.scalar(stamps, pa.int64()), rows),
        pa.repeat(pa.scalar(head.number, pa.int32()), rows),
        pa.nulls(rows, pa.binary()) if offsets is None else packed(offsets.columns, rows),
        pa.repeat(pa.scalar(value=True), rows),
        pa.nulls(rows, pa.binary()),
    ]


def _carried(batch: SourceBatch, noun: str, column: pa.Array | None, kind: pa.DataType) -> pa.Array:
    if column is None or pa.types.is_null(column.type):
        return pa.nulls(len(batch), kind)
    try:
        return reshaped(column, kind)
    except pa.ArrowInvalid as error:
        raise unrepresentable(batch, noun, column, kind) from error


def _rows_at_once(batch: SourceBatch) -> int:
    return max(1, min(_MOST_ROWS, _MOST_BYTES * len(batch) // max(1, batch.nbytes)))
