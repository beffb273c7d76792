"""Converts plain records to batches, and rows of batches to the plain records that authors' code gets; pure."""

from __future__ import annotations

import bisect
import itertools
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any, Final

import pyarrow as pa

from headrace.connect.batch import BatchOffsets, SourceBatch
from headrace.connect.columns import column_of
from headrace.connect.errors import RecordError
from headrace.connect.json_document import JSON_NULL, document
from headrace.connect.partition import OffsetValue, SourceOffset, checked_values
from headrace.connect.record import BadRecord, SourceRecord
from headrace.connect.schema import JSON_DOCUMENT, Schema
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


_PLAIN: Final = frozenset((str, int, float, bool, bytes, Decimal, type(None)))


def plain_row(batch: SourceBatch, row: int, original: SourceRecord | None = None) -> SourceRecord:
    """One row of *batch*, for a transformation or ``commit_record``: structs and maps as dictionaries, JSON parsed.

    *original* is the record that the row was made from, if there is one: values that JSON cannot express, such
    as bytes, are taken from it. Raises :class:`~headrace.connect.errors.RecordError` for a value that Python
    cannot represent.
    """
    stamps, headers = batch.timestamps, batch.headers
    return SourceRecord(
        topic=batch.topic,
        partition=batch.partition,
        source_partition=batch.source_partition,
        source_offset=batch.offset_at(row),
        value=_value_at(batch.values, row, original and original.value),
        value_schema=batch.value_schema,
        key=None if batch.keys is None else _value_at(batch.keys, row, original and original.key),
        key_schema=batch.key_schema,
        headers=() if headers is None else headers[row],
        timestamp=stamps if isinstance(stamps, int | None) else stamps[row].as_py(),
    )


def _value_at(column: pa.Array, row: int, original: object) -> Any:  # noqa: ANN401 (whatever the column holds)
    if original is not None and column.type == JSON_DOCUMENT:
        return JSON_NULL if original is JSON_NULL else _plain(original)
    return _value(column, row)


def _plain(value: Any) -> Any:  # noqa: ANN401 (whatever a connector returns)
    """A copy of *value*, which can be written as JSON, with containers and scalars of Python's own types."""
    kind = type(value)
    if kind in _PLAIN:
        return value
    if kind is dict or isinstance(value, Mapping):
        return {key: _plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if value is JSON_NULL:
        return None
    return next(convert(value) for kind, convert in _TO_PLAIN.items() if isinstance(value, kind))


# str.__str__ gives an enumeration member's value; str() would give its name.
_TO_PLAIN: Final[Mapping[type[Any], Callable[[Any], Any]]] = {
    str: str.__str__,
    int: int,
    float: float,
    bytes: bytes,
    Decimal: Decimal,
}


def _value(column: pa.Array, row: int) -> Any:  # noqa: ANN401 (whatever the column holds)
    try:
        if column.type == JSON_DOCUMENT:
            return _parsed(column.storage[row].as_py())
        return column[row].as_py(maps_as_pydicts="strict")
    except (KeyError, ValueError, OverflowError, RecursionError) as error:
        raise RecordError(f"A value cannot be represented in Python: {error}", row=row) from error


def _parsed(text: str | None) -> Any:  # noqa: ANN401 (whatever JSON holds)
    if text is None:
        return None
    value = json.loads(text, parse_float=_number)
    return JSON_NULL if value is None else value


def _number(text: str) -> float | Decimal:
    """A float if it represents the number exactly as written, as in Kafka Connect; otherwise a Decimal."""
    exact, double = Decimal(text), float(text)
    return double if Decimal(repr(double)) == exact else exact
