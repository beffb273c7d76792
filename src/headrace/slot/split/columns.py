"""Columns in the types in which Spark carries them, and back in those that Connect has; pure."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from headrace.connect.arrow_lists import opened
from headrace.connect.arrow_schema import schema_of
from headrace.connect.schema import TIME, TIMESTAMP, Field, Schema, SchemaType


def reshaped(values: pa.Array, wanted: pa.DataType) -> pa.Array:
    """*values* in the type *wanted*, which differs from theirs as carried types differ from Connect's.

    Not copied where they are alike. Raises ``pyarrow.ArrowInvalid`` for a value that *wanted* cannot hold.
    """
    if values.type.equals(wanted, check_metadata=True):
        return values
    if isinstance(values, pa.ExtensionArray):
        return reshaped(values.storage, wanted)
    if isinstance(wanted, pa.BaseExtensionType):
        return pa.ExtensionArray.from_storage(wanted, reshaped(values, wanted.storage_type))
    for belongs, reshape in _SHAPES:
        if belongs(values.type) and belongs(wanted):
            return reshape(values, wanted)
    return pa.nulls(len(values)) if pa.types.is_null(wanted) else values.cast(wanted)


def schema_of_carried(kind: pa.DataType) -> Schema:
    """Connect's schema of values that Spark has made, whose type is *kind*; instants are Connect's Timestamp, times of day its Time.

    Raises ``TypeError`` for a type that Connect cannot hold.
    """
    if pa.types.is_timestamp(kind):
        return TIMESTAMP
    if pa.types.is_time(kind):
        return TIME
    if pa.types.is_struct(kind):
        return Schema(type=SchemaType.STRUCT, fields=tuple(_field(each) for each in kind))
    if pa.types.is_map(kind):
        return Schema(
            type=SchemaType.MAP,
            key_schema=schema_of_carried(kind.key_type),
            value_schema=schema_of_carried(kind.item_type).as_optional(),
        )
    if pa.types.is_list(kind):
        return Schema(
            type=SchemaType.ARRAY, value_schema=schema_of_carried(kind.value_type).as_optional()
        )
    return schema_of(kind)


def _field(field: pa.Field) -> Field:
    try:
        return Field(field.name, schema_of_carried(field.type).as_optional())
    except TypeError as error:
        raise TypeError(f"{field.name}: {error}") from error


def _structs(values: Any, wanted: Any) -> pa.StructArray:  # noqa: ANN401 (a struct's array and type)
    fields = list[pa.Field](wanted)
    children = [reshaped(values.field(index), each.type) for index, each in enumerate(fields)]
    if not children:
        return values
    return pa.StructArray.from_arrays(children, fields=fields, mask=_nulls(values))


def _lists(values: pa.Array, wanted: Any) -> pa.ListArray:  # noqa: ANN401 (a list's type)
    borders, items = opened(values)
    items = reshaped(items, wanted.value_type)
    return pa.ListArray.from_arrays(pa.array(borders), items, type=wanted, mask=_nulls(values))


def _maps(values: pa.Array, wanted: Any) -> pa.MapArray:  # noqa: ANN401 (a map's type)
    borders, entries = opened(values)
    keys = reshaped(entries.field(0), wanted.key_type)
    items = reshaped(entries.field(1), wanted.item_type)
    return pa.MapArray.from_arrays(pa.array(borders), keys, items, type=wanted, mask=_nulls(values))


def _instants(values: pa.Array, wanted: Any) -> pa.Array:  # noqa: ANN401 (a timestamp's type)
    # Numbers since 1970, whatever the zone is called: only the unit may change.
    numbers = values.view(pa.int64()).view(pa.timestamp(values.type.unit))
    if (values.type.unit, wanted.unit) == ("us", "ms"):
        numbers = pc.floor_temporal(numbers, unit="millisecond")
    return numbers.cast(pa.timestamp(wanted.unit)).view(pa.int64()).view(wanted)


def _times(values: pa.Array, wanted: pa.DataType) -> pa.Array:
    # Finer ones are rounded down, as instants are.
    return pc.floor_temporal(values, unit="millisecond").cast(wanted)


def _is_list(kind: pa.DataType) -> bool:
    return (
        pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)
    )


def _nulls(values: pa.Array) -> pa.Array | None:
    return values.is_null() if values.null_count else None


_SHAPES: tuple[tuple[Callable[[pa.DataType], bool], Callable[[pa.Array, Any], pa.Array]], ...] = (
    (pa.types.is_struct, _structs),
    (pa.types.is_map, _maps),
    (_is_list, _lists),
    (pa.types.is_timestamp, _instants),
    (pa.types.is_time, _times),
)
