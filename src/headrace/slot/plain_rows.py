"""Rows of a batch as the records that transformations get; pure."""

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
    """One row of *batch*: structs and maps as dictionaries, a JSON document as what it stands for.

    *original* is the record that the row was made from, if there is one: what JSON has no words for, such as
    bytes, comes from there. Raises :class:`~headrace.connect.errors.RecordError` for a value that Python has
    no form of.
    """
    stamps, headers = batch.timestamps, batch.headers
    return SourceRecord(
        topic=batch.topic,
        partition=batch.partition,
        source_partition=batch.source_partition,
        source_offset=batch.offset_at(row),
        value=_held(batch.values, row, original and original.value),
        value_schema=batch.value_schema,
        key=None if batch.keys is None else _held(batch.keys, row, original and original.key),
        key_schema=batch.key_schema,
        headers=() if headers is None else headers[row],
        timestamp=stamps if isinstance(stamps, int | None) else stamps[row].as_py(),
    )


def _held(column: pa.Array, row: int, original: object) -> Any:  # noqa: ANN401 (whatever the column holds)
    if original is not None and column.type == JSON_DOCUMENT:
        return JSON_NULL if original is JSON_NULL else _plain(original)
    return _value(column, row)


def _plain(value: Any) -> Any:  # noqa: ANN401 (whatever a connector returns)
    """A copy of *value*, which has a form as JSON, with containers and scalars of Python's own types."""
    kind = type(value)
    if kind in _PLAIN:
        return value
    if kind is dict or isinstance(value, Mapping):
        return {key: _plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if value is JSON_NULL:
        return None
    return next(own(value) for kind, own in _OWN.items() if isinstance(value, kind))


# What an enumeration is worth, and not what it is called.
_OWN: Final[Mapping[type[Any], Callable[[Any], Any]]] = {
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
    except (ValueError, OverflowError, RecursionError) as error:
        raise RecordError(
            f"A value has no form that can be transformed: {error}", row=row
        ) from error


def _parsed(text: str | None) -> Any:  # noqa: ANN401 (whatever JSON holds)
    if text is None:
        return None
    value = json.loads(text, parse_float=_number)
    return JSON_NULL if value is None else value


def _number(text: str) -> float | Decimal:
    """A double where it holds the number exactly as written, as Kafka Connect has it; otherwise every digit."""
    exact, double = Decimal(text), float(text)
    return double if Decimal(repr(double)) == exact else exact
