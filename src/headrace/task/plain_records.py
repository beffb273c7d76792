"""Rows of batches as plain records, as authors' transformations and hooks get them; pure."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any, Final

import pyarrow as pa

from headrace.connect.batch import SourceBatch
from headrace.connect.errors import RecordError
from headrace.connect.json_document import JSON_NULL
from headrace.connect.record import SourceRecord
from headrace.connect.schema import JSON_DOCUMENT

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
