"""Arrow's types as Connect's: the other direction of :func:`~headrace.connect.schema.arrow_type`.

What Connect has no type for becomes the nearest one that holds every value exactly: unsigned integers the
next wider signed type (64 bits: a Decimal of scale 0), times and timestamps finer than milliseconds the
INT64 that they are stored as, UUIDs their text. Timestamps without a zone are taken as UTC.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable
from typing import Final

import pyarrow as pa

from headrace.connect.schema import (
    BOOLEAN,
    BYTES,
    DATE,
    FLOAT64,
    INT32,
    INT64,
    STRING,
    TIME,
    TIMESTAMP,
    Field,
    Schema,
    SchemaType,
    decimal,
)

PRECISION: Final = "connect.decimal.precision"
"""The parameter in which Connect's Avro converter and its database connectors keep a Decimal's precision."""

_INT8 = Schema(type=SchemaType.INT8)
_INT16 = Schema(type=SchemaType.INT16)
_FLOAT32 = Schema(type=SchemaType.FLOAT32)
_UINT64_DIGITS = 20
# What Connect's Avro converter takes for granted, and therefore leaves out.
_USUAL_PRECISION = 64
_MILLIS = frozenset({"s", "ms"})

_Is = Callable[[pa.DataType], bool]
_PLAIN: tuple[tuple[_Is, Schema], ...] = (
    (pa.types.is_boolean, BOOLEAN),
    (pa.types.is_int8, _INT8),
    (pa.types.is_int16, _INT16),
    (pa.types.is_uint8, _INT16),
    (pa.types.is_int32, INT32),
    (pa.types.is_uint16, INT32),
    (pa.types.is_int64, INT64),
    (pa.types.is_uint32, INT64),
    (pa.types.is_float16, _FLOAT32),
    (pa.types.is_float32, _FLOAT32),
    (pa.types.is_float64, FLOAT64),
    (pa.types.is_string, STRING),
    (pa.types.is_large_string, STRING),
    (pa.types.is_string_view, STRING),
    (pa.types.is_binary, BYTES),
    (pa.types.is_large_binary, BYTES),
    (pa.types.is_binary_view, BYTES),
    (pa.types.is_fixed_size_binary, BYTES),
    (pa.types.is_date, DATE),
    (pa.types.is_duration, INT64),
)
_LISTS: tuple[_Is, ...] = (
    pa.types.is_list,
    pa.types.is_large_list,
    pa.types.is_fixed_size_list,
    pa.types.is_list_view,
    pa.types.is_large_list_view,
)


def struct_schema(fields: Iterable[pa.Field]) -> Schema:
    """The schema of records with *fields*, without a name, not optional.

    Pure; called once per object. Raises ``TypeError``, naming the field, for a type that Connect cannot
    hold, and ``ValueError`` for two fields of one name.
    """
    return Schema(type=SchemaType.STRUCT, fields=tuple(map(_field, fields)))


def schema_of(kind: pa.DataType) -> Schema:
    """The schema of values of the Arrow type *kind*, not optional except for Arrow's type of nulls.

    Raises as :func:`struct_schema` does.
    """
    if isinstance(kind, pa.BaseExtensionType):
        return STRING if kind.extension_name == "arrow.uuid" else schema_of(kind.storage_type)
    if pa.types.is_dictionary(kind):
        return schema_of(kind.value_type)
    for belongs, schema in _PLAIN:
        if belongs(kind):
            return schema
    return _of_number(kind) or _of_time(kind) or _of_nested(kind)


def _field(field: pa.Field) -> Field:
    try:
        schema = schema_of(field.type)
    except TypeError as error:
        raise TypeError(f"{field.name}: {error}") from error
    return Field(field.name, schema.as_optional() if field.nullable else schema)


def _of_number(kind: pa.DataType) -> Schema | None:
    if pa.types.is_uint64(kind):
        return _precise(_UINT64_DIGITS, 0)
    return _precise(kind.precision, kind.scale) if pa.types.is_decimal(kind) else None


def _precise(precision: int, scale: int) -> Schema:
    plain = decimal(scale)
    if precision == _USUAL_PRECISION:
        return plain
    return dataclasses.replace(plain, parameters={**plain.parameters, PRECISION: str(precision)})


def _of_time(kind: pa.DataType) -> Schema | None:
    if pa.types.is_time(kind):
        return TIME if kind.unit in _MILLIS else INT64
    if pa.types.is_timestamp(kind):
        return TIMESTAMP if kind.unit in _MILLIS else INT64
    return None


def _of_nested(kind: pa.DataType) -> Schema:
    if pa.types.is_null(kind):
        return STRING.as_optional()
    if pa.types.is_struct(kind):
        return struct_schema(kind)
    if any(belongs(kind) for belongs in _LISTS):
        return Schema(type=SchemaType.ARRAY, value_schema=_field(kind.value_field).schema)
    if pa.types.is_map(kind):
        return Schema(
            type=SchemaType.MAP,
            key_schema=schema_of(kind.key_type),
            value_schema=_field(kind.item_field).schema,
        )
    raise TypeError(f"Kafka Connect has no type for values of Arrow's type {kind}.")
