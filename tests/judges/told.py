"""Schemas, values and records as JSON that loses nothing: how they are told to the Java judge."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from headrace.connect.schema import Schema, SchemaType

_LOGICAL = "org.apache.kafka.connect.data."
_DECIMAL = f"{_LOGICAL}Decimal"
_NO_NUMBERS = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}
LOOSE_MAP = "judges.LooseMap"
"""The name of a struct that is told as the members of a map: they may be of several types."""
_NUMBERED = frozenset(f"{_LOGICAL}{name}" for name in ("Date", "Time", "Timestamp"))


@dataclass(frozen=True, slots=True)
class Told:
    """A value that is built *of* a schema, and the schema that it is said to have: none, or another.

    Dates, times and timestamps are the numbers that they are in Arrow; maps are lists of pairs.
    """

    of: Schema
    value: Any
    schema: Schema | None


def typed(schema: Schema, value: object) -> Told:
    """A value with the schema that it is built of."""
    return Told(schema, value, schema)


def untyped(schema: Schema, value: object) -> Told:
    """A value without schema; *schema* only says of which class it is."""
    return Told(schema, value, None)


def schema_told(schema: Schema) -> dict[str, Any]:
    """Every attribute of *schema*."""
    told: dict[str, Any] = {
        "type": schema.type.name,
        "optional": schema.optional,
        "parameters": dict(schema.parameters),
    }
    if schema.type is SchemaType.STRUCT:
        told["fields"] = [[each.name, schema_told(each.schema)] for each in schema.fields]
    for name in ("name", "version", "doc"):
        if getattr(schema, name) is not None:
            told[name] = getattr(schema, name)
    if schema.default is not None:
        told["default"] = value_told(schema, schema.default)
    if schema.key_schema:
        told["keys"] = schema_told(schema.key_schema)
    if schema.value_schema:
        told["values"] = schema_told(schema.value_schema)
    return told


def value_told(schema: Schema, value: Any) -> Any:  # noqa: ANN401
    """A value of *schema*; floating-point numbers and decimals are text, since JSON has no NaN."""
    if value is None or schema.name in _NUMBERED:
        return value
    if schema.name == _DECIMAL:
        return str(value)
    tell = _TELLING.get(schema.type)
    return tell(schema, value) if tell else value


def _array_told(schema: Schema, value: Any) -> Any:  # noqa: ANN401
    return [value_told(_some(schema.value_schema), each) for each in value]


def _map_told(schema: Schema, value: Any) -> Any:  # noqa: ANN401
    keys, values = _some(schema.key_schema), _some(schema.value_schema)
    return [[value_told(keys, key), value_told(values, each)] for key, each in value]


def _struct_told(schema: Schema, value: Any) -> Any:  # noqa: ANN401
    return [value_told(each.schema, value[each.name]) for each in schema.fields]


def _float_told(schema: Schema, value: float) -> str:
    return _NO_NUMBERS.get(repr(value), repr(value))


_TELLING = {
    SchemaType.ARRAY: _array_told,
    SchemaType.MAP: _map_told,
    SchemaType.STRUCT: _struct_told,
    SchemaType.FLOAT32: _float_told,
    SchemaType.FLOAT64: _float_told,
    SchemaType.BYTES: lambda _, value: base64.b64encode(value).decode(),
}


def record_told(
    topic: str,
    value: Told,
    *,
    key: Told | None = None,
    headers: Sequence[tuple[str, Told]] = (),
    partition: int | None = None,
    timestamp: int | None = None,
) -> dict[str, Any]:
    """A source record; one without *key* has a null without schema."""
    return {
        "topic": topic,
        "partition": partition,
        "timestamp": timestamp,
        "key": _part(key or untyped(Schema(type=SchemaType.STRING), None)),
        "value": _part(value),
        "headers": [{"name": name, **_part(each)} for name, each in headers],
    }


def _part(told: Told) -> dict[str, Any]:
    return {
        "schema": told.schema and schema_told(told.schema),
        "of": schema_told(told.of),
        "value": value_told(told.of, told.value),
    }


def _some(schema: Schema | None) -> Schema:
    assert schema is not None
    return schema
