"""Notes that are sent beside records: what a batch's rows have in common, pickled errors and records, nullable schemas."""

from __future__ import annotations

import dataclasses
import pickle
import traceback
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from headrace.connect.batch import SourceBatch
from headrace.connect.errors import RecordError
from headrace.connect.header_columns import HeaderColumns
from headrace.connect.partition import SourceOffset, SourcePartition
from headrace.connect.record import BadRecord, Headers, SourceRecord
from headrace.connect.schema import Schema, SchemaType, arrow_type
from headrace.task.dead_letters import class_name
from headrace.task.frames import DeadLetter, Failed, Filtered, Frame, Records, Refused
from headrace.task.sql.row_types import FrameTypes

IN_COLUMN = "column"


@dataclass(frozen=True, slots=True)
class NotPickled:
    """Stands for a part of a record that cannot be pickled; *class_name* is its class."""

    class_name: str


def picklable_error(error: Exception) -> Exception:
    """*error*, or one with the same message if it cannot be pickled."""
    if _is_picklable(error):
        return error
    if not isinstance(error, RecordError):
        return RuntimeError(f"{class_name(error)}: {error}")
    return RecordError(
        error.reason,
        native_key=error.native_key,
        position=error.position,
        row=error.row,
        advice=error.advice,
        bad=None if error.bad is None else _plain(error.bad),
    )


def picklable_record(record: SourceRecord) -> SourceRecord:
    """*record*, with :class:`NotPickled` in place of its value, key and header values that cannot be pickled."""
    if _is_picklable(record):
        return record
    return replace(
        record,
        value=_part(record.value),
        key=_part(record.key),
        headers=tuple(replace(each, value=_part(each.value)) for each in record.headers),
        source_offset=_plain_offset(record.source_offset),
    )


def _part(value: object) -> object:
    return value if _is_picklable(value) else NotPickled(class_name(value))


def _plain(bad: BadRecord) -> BadRecord:
    offset = _plain_offset(bad.source_offset)
    return replace(bad, source_offset=offset, reference=dict(bad.reference))


def _plain_offset(offset: SourceOffset | None) -> SourceOffset | None:
    return None if offset is None else dict(offset)


def _is_picklable(thing: object) -> bool:
    try:
        pickle.loads(pickle.dumps(thing))  # noqa: S301 (just written)
    except Exception:  # noqa: BLE001 (an author's class may do anything)
        return False
    return True


class ReadingTrace(Exception):  # noqa: N818 (a cause that is printed, never raised)
    """The stack trace of an error, as it was in the process that reads."""

    def __init__(self, trace: str) -> None:
        super().__init__(trace)

    def __str__(self) -> str:
        return f"in the process that reads:\n{self.args[0]}"


def note_of(frame: Frame) -> bytes:
    """*frame*, which must not be :class:`Records`, as bytes."""
    match frame:
        case Failed() | DeadLetter() | Refused():
            trace = "".join(traceback.format_exception(frame.error))
            return pickle.dumps((_picklable(frame), trace))
        case Filtered():
            return pickle.dumps((replace(frame, records=_records(frame.records)), None))
        case _:
            return pickle.dumps((frame, None))


def frame_of(note: bytes) -> Frame:
    """The frame that :func:`note_of` encoded."""
    frame, trace = pickle.loads(note)  # noqa: S301 (written by our own reading process)
    if isinstance(frame, Failed | DeadLetter | Refused):
        frame.error.__cause__ = ReadingTrace(trace)
    return frame


def _picklable(frame: Any) -> Any:  # noqa: ANN401 (one of three kinds, as given)
    """*frame* with picklable parts, and without the columns that its one row is a slice of."""
    frame = replace(frame, error=picklable_error(frame.error))
    match frame:
        case DeadLetter(original=SourceRecord() as original):
            return replace(frame, original=picklable_record(original))
        case Refused(records=records):
            row = Records(records.batch.take(pa.array([0])), records.originals)
            return replace(frame, records=_records(row))
        case Failed(refused=Refused() as refused):
            return replace(frame, refused=_picklable(refused))
        case _:
            return frame


def _records(records: Records) -> Records:
    if records.originals is None:
        return records
    return replace(records, originals=[picklable_record(each) for each in records.originals])


def loosened(schema: Schema, left: pa.DataType) -> Schema:
    """*schema* with null allowed where *left*, the type of its values after a step, allows it.

    Names, versions, defaults and everything else stay. Returns the schema itself when nothing changes.
    """
    match schema.type:
        case SchemaType.STRUCT:
            return _struct(schema, left)
        case SchemaType.ARRAY:
            return _element(schema, left.value_field)
        case SchemaType.MAP:
            return _element(schema, left.item_field)
        case _:
            return schema


def _struct(schema: Schema, left: Any) -> Schema:  # noqa: ANN401 (a struct's type)
    fields = tuple(
        dataclasses.replace(each, schema=_loosened_part(each.schema, part))
        for each, part in zip(schema.fields, left, strict=True)
    )
    return schema if fields == schema.fields else dataclasses.replace(schema, fields=fields)


def _element(schema: Schema, part: pa.Field) -> Schema:
    assert schema.value_schema is not None, "of an array or a map"
    value = _loosened_part(schema.value_schema, part)
    return (
        schema if value == schema.value_schema else dataclasses.replace(schema, value_schema=value)
    )


def _loosened_part(schema: Schema, part: pa.Field) -> Schema:
    found = loosened(schema, part.type)
    return found.as_optional() if part.nullable and not found.optional else found


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchHead:
    """A batch without its rows, of which there are *rows*; each of them has its *number*.

    *values* and *keys* are the types of the columns, *carried* is the type in which Spark received the values. What
    the step may make null is nullable in *values* and *value_schema*. *offset* is ``None`` if the batch has no offsets.
    *headers* are those of all rows: a step sees them, but cannot change them. *timestamps* is one for all rows, ``None``, or :data:`IN_COLUMN`.
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
    headers: Sequence[Headers] | None
    timestamps: int | str | None


def head_of(batch: SourceBatch, number: int, carries: FrameTypes) -> BatchHead:
    """The head of *batch*, which gets this *number*; *carries* are the types of the connector's frames."""
    offsets, stamps = batch.offsets, batch.timestamps
    schema, values = _after_step(batch, carries)
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
        headers=_compact(batch.headers),
        timestamps=stamps if isinstance(stamps, int | None) else IN_COLUMN,
    )


def _compact(headers: Sequence[Headers] | None) -> Sequence[Headers] | None:
    """*headers* without rows of columns that they are a slice of, which would be pickled, too."""
    if isinstance(headers, HeaderColumns):
        return headers.take(pa.array(np.arange(len(headers))))
    return headers


def _after_step(batch: SourceBatch, carries: FrameTypes) -> tuple[Schema | None, pa.DataType]:
    """The schema and the type of the values of *batch* after a step that keeps their type."""
    schema, kind = batch.value_schema, batch.values.type
    if schema is None or carries.left is None or pa.types.is_null(kind):
        return schema, kind
    found = loosened(schema, carries.left)
    return (schema, kind) if found is schema else (found, arrow_type(found))
