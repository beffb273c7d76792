"""A row that cannot be converted or sent, as bytes for its dead letter; pure."""

from __future__ import annotations

import pyarrow as pa

from headrace.connect.batch import SourceBatch
from headrace.connect.errors import RecordError
from headrace.converters import make_converter


def raw_value(batch: SourceBatch) -> bytes | None:
    """The first row's value: as it is when it is text or bytes, otherwise as JSON; ``None`` for no bytes."""
    found = _bytes_of(batch.values)
    return found if found is not None else _json_of(batch)


def raw_key(batch: SourceBatch) -> bytes | None:
    """The first row's key when it is text or bytes."""
    return None if batch.keys is None else _bytes_of(batch.keys)


def _bytes_of(column: pa.Array) -> bytes | None:
    first = column.slice(0, 1)
    if pa.types.is_string(first.type) or pa.types.is_large_string(first.type):
        # Not by way of a Python string: what is refused may be no UTF-8.
        first = first.cast(pa.large_binary())
    if not (pa.types.is_binary(first.type) or pa.types.is_large_binary(first.type)):
        return None
    return first[0].as_py()


def _json_of(batch: SourceBatch) -> bytes | None:
    if not batch.values[0].is_valid:
        return None
    converter = make_converter("json", {"schemas.enable": "false"}, is_key=False)
    try:
        encoded = converter.encode(batch.topic, batch.value_schema, batch.values.slice(0, 1))
    except (RecordError, ValueError, OverflowError):
        # It is told by its place then; a date beyond the year 9999 has no text in Python, for example.
        return None
    return encoded[0].as_py()
