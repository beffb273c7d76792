"""Connect's JSON of one value at a time, written without columns: what the fast way is held against."""

from __future__ import annotations

import base64
import datetime as dt
from collections.abc import Mapping
from typing import Any

from headrace.connect.json_document import json_quoted
from headrace.connect.schema import Schema, SchemaType
from headrace.java.numbers import java_double, java_float

_DECIMAL = "org.apache.kafka.connect.data.Decimal"
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


def plain_json(schema: Schema, value: Any, *, numeric: bool = False) -> str:  # noqa: ANN401
    """The JSON of *value*; null has its default, where there is one."""
    if value is None:
        value = schema.default
    if value is None:
        assert schema.optional
        return "null"
    if schema.name is not None and schema.name != _DECIMAL:
        return str(_logical(value))
    if schema.name == _DECIMAL:
        return str(value) if numeric else f'"{_base64(_unscaled(value))}"'
    if schema.type is SchemaType.STRUCT:
        members = (
            f"{json_quoted(each.name)}:{plain_json(each.schema, value[each.name], numeric=numeric)}"
            for each in schema.fields
        )
        return f"{{{','.join(members)}}}"
    if schema.type is SchemaType.ARRAY:
        items = (plain_json(schema.value_schema, each, numeric=numeric) for each in value)  # pyright: ignore[reportArgumentType]
        return f"[{','.join(items)}]"
    return (
        _map(schema, value, numeric=numeric)
        if schema.type is SchemaType.MAP
        else _leaf(schema, value)
    )


def _map(schema: Schema, value: list[tuple[Any, Any]], *, numeric: bool) -> str:
    key_schema, value_schema = schema.key_schema, schema.value_schema
    assert key_schema is not None
    assert value_schema is not None
    as_object = key_schema.type is SchemaType.STRING
    entries: Mapping[Any, Any] | list[tuple[Any, Any]] = dict(value) if as_object else value
    pairs = entries.items() if isinstance(entries, dict) else entries
    written = [
        (plain_json(key_schema, key), plain_json(value_schema, each, numeric=numeric))
        for key, each in pairs
    ]
    if as_object:
        return f"{{{','.join(f'{key}:{each}' for key, each in written)}}}"
    return f"[{','.join(f'[{key},{each}]' for key, each in written)}]"


def _leaf(schema: Schema, value: Any) -> str:  # noqa: ANN401
    match schema.type:
        case SchemaType.STRING:
            return json_quoted(value)
        case SchemaType.BYTES:
            return f'"{_base64(value)}"'
        case SchemaType.BOOLEAN:
            return str(value).lower()
        case SchemaType.FLOAT32 | SchemaType.FLOAT64:
            write = java_float if schema.type is SchemaType.FLOAT32 else java_double
            written = write(value)
            return written if written[-1].isdigit() else f'"{written}"'
        case _:
            return str(value)


def _logical(value: dt.datetime | dt.date | dt.time) -> int:
    if isinstance(value, dt.datetime):
        return (value - _EPOCH) // dt.timedelta(milliseconds=1)
    if isinstance(value, dt.date):
        return (value - _EPOCH.date()).days
    of_day = dt.timedelta(
        hours=value.hour, minutes=value.minute, seconds=value.second, microseconds=value.microsecond
    )
    return of_day // dt.timedelta(milliseconds=1)


def _unscaled(value: Any) -> bytes:  # noqa: ANN401
    sign, digits, _ = value.as_tuple()
    number = int("".join(map(str, digits))) * (-1 if sign else 1)
    # Java keeps a sign bit, and -128 still fits one byte.
    length = (number if number >= 0 else ~number).bit_length() // 8 + 1
    return number.to_bytes(length, "big", signed=True)


def _base64(octets: bytes) -> str:
    return base64.b64encode(octets).decode()
