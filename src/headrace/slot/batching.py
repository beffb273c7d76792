"""Plain records into batches: neighbours that share all but their values and positions; pure."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from headrace.connect.batch import BatchOffsets, SourceBatch
from headrace.connect.errors import RecordError
from headrace.connect.partition import OffsetValue, SourceOffset
from headrace.connect.record import SourceRecord
from headrace.connect.schema import JSON_DOCUMENT, Schema, arrow_type


def batches_of(records: Sequence[SourceRecord]) -> Iterator[tuple[SourceBatch, list[SourceRecord]]]:
    """The batches of *records*, in order, each with the records it was made from.

    Raises :class:`~headrace.connect.errors.RecordError` for a value that does not fit its schema.
    """
    for _, neighbours in itertools.groupby(records, _shared):
        group = list(neighbours)
        yield _batch(group), group


def _shared(record: SourceRecord) -> tuple[object, ...]:
    return (
        record.topic,
        record.partition,
        record.source_partition,
        _column_kind(record.value_schema, record.value),
        _column_kind(record.key_schema, record.key),
        record.timestamp is None,
        _fixed_part(record.source_offset),
    )


def _column_kind(schema: Schema | None, value: object) -> object:
    if schema is not None:
        return repr(schema)
    return dict if isinstance(value, Mapping | list | tuple) else type(value)


def _fixed_part(offset: SourceOffset | None) -> object:
    if offset is None:
        return None
    return tuple(
        (key, type(value), None if _moves(value) else value)
        for key, value in sorted(offset.items())
    )


def _moves(value: OffsetValue) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _batch(group: Sequence[SourceRecord]) -> SourceBatch:
    first = group[0]
    stamped = first.timestamp is not None
    return SourceBatch(
        topic=first.topic,
        partition=first.partition,
        source_partition=first.source_partition,
        offsets=_offsets([record.source_offset for record in group]),
        values=_column(first.value_schema, [record.value for record in group]),
        value_schema=first.value_schema,
        keys=_keys(group),
        key_schema=first.key_schema,
        headers=[record.headers for record in group] if any(r.headers for r in group) else None,
        timestamps=pa.array([r.timestamp for r in group], pa.int64()) if stamped else None,
    )


def _keys(group: Sequence[SourceRecord]) -> pa.Array | None:
    if group[0].key is None and group[0].key_schema is None:
        return None
    return _column(group[0].key_schema, [record.key for record in group])


def _offsets(offsets: Sequence[SourceOffset | None]) -> BatchOffsets | None:
    first = offsets[0]
    if first is None:
        return None
    moving = [key for key, value in first.items() if _moves(value)]
    columns = {
        key: pa.array([offset[key] for offset in offsets if offset is not None], pa.int64())
        for key in moving
    }
    constant = {key: value for key, value in first.items() if key not in columns}
    return BatchOffsets(constant=constant, columns=columns)


def _column(schema: Schema | None, values: Sequence[Any]) -> pa.Array:
    try:
        if schema is not None:
            return pa.array(values, arrow_type(schema))
        if any(isinstance(value, Mapping | list | tuple) for value in values):
            documents = pa.array([_document(value) for value in values])
            return pa.ExtensionArray.from_storage(JSON_DOCUMENT, documents)
        return pa.array(values)
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise RecordError(
            f"A value does not fit {schema or 'any type that can be sent'}: {error}"
        ) from error


def _document(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
