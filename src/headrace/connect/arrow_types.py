"""Connect's schemas for Arrow's types and columns: the reverse of :func:`~headrace.connect.schema.arrow_type`."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headrace.connect.columns import opened
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
    arrow_type,
    decimal,
)

PRECISION: Final = "connect.decimal.precision"
"""The parameter in which Connect's Avro converter and its database connectors keep a Decimal's precision."""

_INT8 = Schema(type=SchemaType.INT8)
_INT16 = Schema(type=SchemaType.INT16)
_FLOAT32 = Schema(type=SchemaType.FLOAT32)
_UINT64_DIGITS = 20
# The precision that Connect's Avro converter assumes, and therefore leaves out.
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
_UUID_BYTES = 16
_UUID_TEXT = 36
_DASHES = (8, 13, 18, 23)
_DIGITS = np.frombuffer(b"0123456789abcdef", np.uint8)


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


def conformed(values: pa.Array, schema: Schema) -> pa.Array:
    """*values* with the Arrow type of *schema*, which is what ``schema_of`` says of their type.

    Not copied where the types are the same. Pure; called once per column of a batch. Raises
    ``pyarrow.ArrowInvalid`` for a value that the schema's type cannot hold.
    """
    wanted = arrow_type(schema)
    values = _unwrapped(values)
    if values.type == wanted:
        return values
    if pa.types.is_timestamp(wanted):
        # Only the unit may change: the same instant, and UTC where no zone is given.
        millis = values.cast(pa.timestamp("ms", tz=values.type.tz))
        return millis.view(pa.int64()).view(wanted)
    rebuild = _NESTED.get(schema.type)
    return rebuild(values, schema, wanted) if rebuild else values.cast(wanted)


def _unwrapped(values: pa.Array) -> pa.Array:
    """*values* without extension types and dictionaries, which only annotate or pack them."""
    if isinstance(values, pa.ExtensionArray):
        is_uuid = values.type.extension_name == "arrow.uuid"
        return _uuid_texts(values.storage) if is_uuid else _unwrapped(values.storage)
    if isinstance(values, pa.DictionaryArray):
        return _unwrapped(values.dictionary_decode())
    return values


def _structs(values: pa.StructArray, schema: Schema, wanted: pa.DataType) -> pa.StructArray:
    children = [
        conformed(values.field(index), each.schema) for index, each in enumerate(schema.fields)
    ]
    if not children:
        return values
    mask = values.is_null() if values.null_count else None
    return pa.StructArray.from_arrays(children, fields=list(wanted), mask=mask)


def _lists(values: pa.Array, schema: Schema, wanted: pa.DataType) -> pa.ListArray:
    assert schema.value_schema is not None
    borders, items = opened(values)
    return pa.ListArray.from_arrays(
        pa.array(borders),
        conformed(items, schema.value_schema),
        type=wanted,
        mask=values.is_null() if values.null_count else None,
    )


def _maps(values: pa.MapArray, schema: Schema, wanted: pa.DataType) -> pa.MapArray:
    assert schema.key_schema is not None
    assert schema.value_schema is not None
    borders, entries = opened(values)
    return pa.MapArray.from_arrays(
        pa.array(borders),
        conformed(entries.field(0), schema.key_schema),
        conformed(entries.field(1), schema.value_schema),
        type=wanted,
        mask=values.is_null() if values.null_count else None,
    )


def _uuid_texts(values: pa.FixedSizeBinaryArray) -> pa.StringArray:
    """UUIDs as text in the usual form of 36 characters."""
    start = values.offset * _UUID_BYTES
    stored = np.frombuffer(values.buffers()[1] or b"", np.uint8)
    octets = stored[start : start + len(values) * _UUID_BYTES].reshape(-1, _UUID_BYTES)
    digits = np.stack([_DIGITS[octets >> 4], _DIGITS[octets & 15]], axis=2)
    text = np.full((len(values), _UUID_TEXT), ord("-"), np.uint8)
    text[:, np.delete(np.arange(_UUID_TEXT), _DASHES)] = digits.reshape(len(values), -1)
    borders = np.arange(len(values) + 1, dtype=np.int32) * _UUID_TEXT
    column = pa.Array.from_buffers(
        pa.utf8(), len(values), [None, pa.py_buffer(borders), pa.py_buffer(text)]
    )
    return pc.if_else(values.is_valid(), column, None) if values.null_count else column


_NESTED: Mapping[SchemaType, Callable[[Any, Schema, Any], pa.Array]] = {
    SchemaType.STRUCT: _structs,
    SchemaType.ARRAY: _lists,
    SchemaType.MAP: _maps,
}
