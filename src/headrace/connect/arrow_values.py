"""Columns of Arrow's types as columns of the types that Connect's schemas have."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headrace.connect.arrow_lists import opened
from headrace.connect.schema import Schema, SchemaType, arrow_type

_UUID_BYTES = 16
_UUID_TEXT = 36
_DASHES = (8, 13, 18, 23)
_DIGITS = np.frombuffer(b"0123456789abcdef", np.uint8)


def conformed(values: pa.Array, schema: Schema) -> pa.Array:
    """*values* with the Arrow type of *schema*, which is what ``schema_of`` says of their type.

    Not copied where the types are alike. Pure; called once per column of a batch. Raises
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
    """*values* without what only annotates or packs them: extension types, dictionaries."""
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
    """UUIDs as 36 characters, as everybody writes them."""
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
