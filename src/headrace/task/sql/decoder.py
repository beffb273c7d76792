"""Decodes rows from Spark into frames, regardless of how Spark has split them into batches."""

from __future__ import annotations

import itertools
import pickle
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import cast

import numpy as np
import pyarrow as pa

from headrace.connect.batch import BatchOffsets, SourceBatch
from headrace.connect.errors import TaskFailedError
from headrace.connect.record import Headers
from headrace.connect.schema import Schema, arrow_type
from headrace.task.frames import Filtered, Frame, Records
from headrace.task.slot_report import Outcome
from headrace.task.sql import row_types as types
from headrace.task.sql.notes import IN_COLUMN, BatchHead, frame_of
from headrace.task.sql.row_types import (
    has_times,
    reshaped,
    schema_of_carried,
    travelling,
    unpacked,
)


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
            if start == end or kinds[start] == types.NOTHING:
                continue
            if kinds[start] == types.RECORD:
                yield from self._records(rows.slice(start, end - start))
                continue
            for row in range(start, end):
                yield from self._marked(int(kinds[row]), rows.column("note")[row].as_py())

    def _marked(self, kind: int, note: bytes) -> Iterator[Frame]:
        if self._left and kind != types.FAILED:
            raise _changed(f"{self._left} rows are missing")
        match kind:
            case types.BATCH:
                head = cast("BatchHead", pickle.loads(note))  # noqa: S301 (the reading process's)
                self._head, self._left = head, head.rows
            case types.END:
                self.outcome = Outcome(note.decode())
            case _:
                yield frame_of(note)

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
        keys=None if head.keys is None else reshaped(rows.column("key"), head.keys),
        key_schema=head.key_schema,
        headers=headers,
        timestamps=rows.column("timestamp") if stamps == IN_COLUMN else cast("int | None", stamps),
    )


def _offsets(column: pa.Array, head: BatchHead) -> BatchOffsets | None:
    if head.offset is None:
        return None
    moving = unpacked(reshaped(column, pa.binary()), head.moving)
    return BatchOffsets(constant=head.offset, columns=moving)


def _values(column: pa.Array, head: BatchHead) -> tuple[Schema | None, pa.Array]:
    """The values of a piece, and their schema: the schema with which they were read if Spark has not changed their type."""
    made = _made_schema(column.type, head.carried)
    if made is None:
        return head.value_schema, reshaped(column, head.values)
    return made, reshaped(column, arrow_type(made))


@lru_cache(maxsize=8)
def _made_schema(kind: pa.DataType, carried: pa.DataType) -> Schema | None:
    """The schema of values of type *kind* that Spark has returned; ``None`` if it is the type that Spark received."""
    if travelling(kind) == carried and not has_times(kind):
        return None
    try:
        return schema_of_carried(kind)
    except TypeError as error:
        raise TaskFailedError(
            f"The SparkSql step returns values that Kafka Connect has no type for: {error} Cast them in select."
        ) from error
