"""What the rows of one batch have in common; it precedes them, because Spark does not keep batches together."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from headrace.connect.batch import SourceBatch
from headrace.connect.partition import SourceOffset, SourcePartition
from headrace.connect.schema import Schema, arrow_type
from headrace.slot.split.headers import HeadersPlan, plan_of
from headrace.slot.split.loosened import loosened
from headrace.slot.split.types import FrameTypes

IN_COLUMN = "column"


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchHead:
    """A batch without its rows, of which there are *rows*; *number* is in each of them.

    *values* and *keys* are the types that the columns had, *carried* is that in which Spark got the values. What the
    step may make null is not required, neither in *values* nor in *value_schema*.
    *offset* is ``None`` where the batch has no offsets. *timestamps* are one for all rows, none, or
    :data:`IN_COLUMN`.
    """

    number: int
    rows: int
    topic: str
    partition: int | None
    source_partition: SourcePartition
    offset: SourceOffset | None
    moving: tuple[str, ...]
    values: pa.DataType
    carried: pa.DataType
    value_schema: Schema | None
    keys: pa.DataType | None
    key_schema: Schema | None
    headers: HeadersPlan
    timestamps: int | str | None


def head_of(batch: SourceBatch, number: int, carries: FrameTypes) -> BatchHead:
    """The head of *batch*, which is the one of this *number*, and of the types that *carries* says."""
    offsets, stamps = batch.offsets, batch.timestamps
    schema, values = _behind(batch, carries)
    return BatchHead(
        number=number,
        rows=len(batch),
        topic=batch.topic,
        partition=batch.partition,
        source_partition=batch.source_partition,
        offset=None if offsets is None else dict(offsets.constant),
        moving=() if offsets is None else tuple(offsets.columns),
        values=values,
        carried=carries.value,
        value_schema=schema,
        keys=None if batch.keys is None else batch.keys.type,
        key_schema=batch.key_schema,
        headers=plan_of(batch.headers),
        timestamps=stamps if isinstance(stamps, int | None) else IN_COLUMN,
    )


def _behind(batch: SourceBatch, carries: FrameTypes) -> tuple[Schema | None, pa.DataType]:
    """The schema and the type of the values of *batch* behind a step that keeps their type."""
    schema, kind = batch.value_schema, batch.values.type
    if schema is None or carries.left is None or pa.types.is_null(kind):
        return schema, kind
    found = loosened(schema, carries.left)
    return (schema, kind) if found is schema else (found, arrow_type(found))
