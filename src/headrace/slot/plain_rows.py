"""Rows of a batch as the records that transformations get; pure."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pyarrow as pa

from headrace.connect.batch import SourceBatch
from headrace.connect.errors import RecordError
from headrace.connect.json_document import JSON_NULL
from headrace.connect.record import SourceRecord
from headrace.connect.schema import JSON_DOCUMENT


def plain_row(batch: SourceBatch, row: int) -> SourceRecord:
    """One row of *batch*: structs and maps as dictionaries, a JSON document as what it stands for.

    Raises :class:`~headrace.connect.errors.RecordError` for a value that Python has no form of.
    """
    stamps, headers = batch.timestamps, batch.headers
    return SourceRecord(
        topic=batch.topic,
        partition=batch.partition,
        source_partition=batch.source_partition,
        source_offset=batch.offset_at(row),
        value=_value(batch.values, row),
        value_schema=batch.value_schema,
        key=None if batch.keys is None else _value(batch.keys, row),
        key_schema=batch.key_schema,
        headers=() if headers is None else headers[row],
        timestamp=stamps if isinstance(stamps, int | None) else stamps[row].as_py(),
    )


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
