"""Converts plain records to batches; pure."""

from __future__ import annotations

import bisect
import itertools
from collections.abc import Iterator, Mapping, Sequence

import pyarrow as pa

from headrace.connect.batch import BatchOffsets, SourceBatch
from headrace.connect.columns import column_of
from headrace.connect.errors import RecordError
from headrace.connect.json_document import document
from headrace.connect.partition import OffsetValue, SourceOffset, checked_values
from headrace.connect.record import BadRecord, SourceRecord
from headrace.connect.schema import Schema
from headrace.task.record_origin import position_text, source_name


def batches_of(records: Sequence[SourceRecord]) -> Iterator[tuple[SourceBatch, list[SourceRecord]]]:
    """The batches of *records*, in order, each with the records it was made from.

    Raises :class:`~headrace.connect.errors.RecordError` for a record that does not fit its schema, with its
    index, source partition and offset, after yielding the batches of all records before it.
    """
    done = 0
    for _, neighbours in itertools.groupby(records, _batch_key):
        group = list(neighbours)
        try:
            batch = _batch(group)
        except RecordError:
            good = _good_count(group)
            if good:
                yield _batch(group[:good]), group[:good]
            raise _error_of_last(group[: good + 1], done + good) from None
        yield batch, group
        done += len(group)


def without_value(record: SourceRecord) -> SourceBatch:
    """*record* as a batch of one row without key and value: the record may not fit any column."""
    offset = record.source_offset
    return SourceBatch(
        topic=record.topic,
        partition=record.partition,
        source_partition=record.source_partition,
        offsets=None if offset is None else BatchOffsets(constant=offset),
        values=column_of(None, [None]),
        headers=[record.headers] if record.headers else None,
    )


def _good_count(group: Sequence[SourceRecord]) -> int:
    """How many records precede the first one that does not fit into a batch with the others."""

    def fails(count: int) -> int:
        try:
            _batch(group[:count])
        except RecordError:
            return 1
        return 0

    return bisect.bisect_left(range(1, len(group) + 1), 1, key=fails)


def _error_of_last(group: Sequence[SourceRecord], row: int) -> RecordError:
    """The error of the last record of *group*, with its source position and its index *row*."""
    record = group[-1]
    try:
        _batch(group)
    except RecordError as error:
        return RecordError(
            error.reason,
            native_key=source_name(record.source_partition),
            position=position_text(record.source_offset),
            row=row,
            advice=error.advice,
            bad=_bad(record),
        )
    raise RuntimeError("A record was refused with its neighbours but accepted on the second try.")


def _bad(record: SourceRecord) -> BadRecord | None:
    """*record* as one that can be skipped; ``None`` if its offset cannot be stored, so that it cannot be skipped."""
    try:
        checked_values(record.source_offset or {}, "source offset")
    except (TypeError, ValueError):
        return None
    return BadRecord(
        source_partition=record.source_partition,
        source_offset=record.source_offset,
        topic=record.topic,
        raw=_raw(record.value),
    )


def _raw(value: object) -> bytes | None:
    """*value* as bytes for a dead letter: unchanged, or as JSON; ``None`` if neither is possible."""
    if isinstance(value, bytes):
        return value
    try:
        text = value if isinstance(value, str) else document(value)
        return None if value is None else text.encode()
    except (TypeError, ValueError, RecursionError):
        return None


def _batch_key(record: SourceRecord) -> tuple[object, ...]:
    """What neighbouring records must have in common to be in one batch."""
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
        values=column_of(first.value_schema, [record.value for record in group]),
        value_schema=first.value_schema,
        keys=_keys(group),
        key_schema=first.key_schema,
        headers=[record.headers for record in group] if any(r.headers for r in group) else None,
        timestamps=_int64([r.timestamp for r in group], "timestamp") if stamped else None,
    )


def _keys(group: Sequence[SourceRecord]) -> pa.Array | None:
    if group[0].key is None and group[0].key_schema is None:
        return None
    return column_of(group[0].key_schema, [record.key for record in group])


def _offsets(offsets: Sequence[SourceOffset | None]) -> BatchOffsets | None:
    first = offsets[0]
    if first is None:
        return None
    moving = [key for key, value in first.items() if _moves(value)]
    columns = {
        key: _int64(
            [offset[key] for offset in offsets if offset is not None], f"source offset {key!r}"
        )
        for key in moving
    }
    constant = {key: value for key, value in first.items() if key not in columns}
    return BatchOffsets(constant=constant, columns=columns)


def _int64(values: Sequence[object], noun: str) -> pa.Int64Array:
    try:
        return pa.array(values, pa.int64())
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise RecordError(f"The {noun} does not fit 64 bits: {error}") from error
