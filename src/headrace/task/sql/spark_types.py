"""The Arrow types that Spark has for the values of records, and the conversion of values and schemas to and from them; pure."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from headrace.connect.arrow_types import schema_of
from headrace.connect.columns import opened
from headrace.connect.schema import TIME, TIMESTAMP, Field, Schema, SchemaType

MICROSECONDS: Final = pa.timestamp("us", tz="UTC")

_Is = Callable[[pa.DataType], bool]
_PLAIN: tuple[tuple[_Is, pa.DataType], ...] = (
    (pa.types.is_null, pa.utf8()),
    (pa.types.is_large_string, pa.utf8()),
    (pa.types.is_string_view, pa.utf8()),
    (pa.types.is_large_binary, pa.binary()),
    (pa.types.is_binary_view, pa.binary()),
    (pa.types.is_fixed_size_binary, pa.binary()),
    (pa.types.is_float16, pa.float32()),
    (pa.types.is_uint8, pa.int16()),
    (pa.types.is_uint16, pa.int32()),
    (pa.types.is_uint32, pa.int64()),
    (pa.types.is_uint64, pa.decimal128(20, 0)),
    # Spark's type for times of day has to be enabled by a setting.
    (pa.types.is_time32, pa.int32()),
    (pa.types.is_time64, pa.int64()),
)


def spark_type(kind: pa.DataType, *, as_required: bool = False) -> pa.DataType:
    """The type that values of *kind* have in Spark: every field nullable, instants in microseconds.

    A type of Spark's is mapped to itself, whatever Spark calls its parts. A time of day is a number. *as_required*
    keeps fields that are not nullable; such a type must not be declared to Spark, which would read a null there as
    a value.
    """
    if isinstance(kind, pa.BaseExtensionType):
        return spark_type(kind.storage_type, as_required=as_required)
    if pa.types.is_timestamp(kind):
        return MICROSECONDS if kind.tz else pa.timestamp("us")

    def part(name: str, of: pa.Field) -> pa.Field:
        nullable = of.nullable or not as_required
        return pa.field(name, spark_type(of.type, as_required=as_required), nullable=nullable)

    if pa.types.is_struct(kind):
        return pa.struct([part(each.name, each) for each in kind])
    if pa.types.is_map(kind):
        key = spark_type(kind.key_type, as_required=as_required)
        return pa.map_(key, part("value", kind.item_field))
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        return pa.list_(part("item", kind.value_field))
    return next((spark for belongs, spark in _PLAIN if belongs(kind)), kind)


def has_times(kind: pa.DataType) -> bool:
    """Whether there are times of day in *kind*; values on their way to Spark have none."""
    return pa.types.is_time(kind) or any(
        has_times(kind.field(index).type) for index in range(kind.num_fields)
    )


def converted(values: pa.Array, wanted: pa.DataType) -> pa.Array:
    """*values* converted to the type *wanted*; the two differ as Spark's types differ from Connect's.

    Equal types are not copied. Raises ``pyarrow.ArrowInvalid`` for a value that *wanted* cannot hold.
    """
    if values.type.equals(wanted, check_metadata=True):
        return values
    if isinstance(values, pa.ExtensionArray):
        return converted(values.storage, wanted)
    if isinstance(wanted, pa.BaseExtensionType):
        return pa.ExtensionArray.from_storage(wanted, converted(values, wanted.storage_type))
    for belongs, convert in _CONVERSIONS:
        if belongs(values.type) and belongs(wanted):
            return convert(values, wanted)
    return pa.nulls(len(values)) if pa.types.is_null(wanted) else values.cast(wanted)


def schema_of_spark_type(kind: pa.DataType) -> Schema:
    """Connect's schema for values of type *kind* that Spark returned; instants are its Timestamp, times of day its Time.

    Raises ``TypeError`` for a type that Connect does not have.
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
            key_schema=schema_of_spark_type(kind.key_type),
            value_schema=schema_of_spark_type(kind.item_type).as_optional(),
        )
    if pa.types.is_list(kind):
        return Schema(
            type=SchemaType.ARRAY, value_schema=schema_of_spark_type(kind.value_type).as_optional()
        )
    return schema_of(kind)


def _field(field: pa.Field) -> Field:
    try:
        return Field(field.name, schema_of_spark_type(field.type).as_optional())
    except TypeError as error:
        raise TypeError(f"{field.name}: {error}") from error


def _structs(values: Any, wanted: Any) -> pa.StructArray:  # noqa: ANN401 (a struct's array and type)
    fields = list[pa.Field](wanted)
    children = [converted(values.field(index), each.type) for index, each in enumerate(fields)]
    if not children:
        return values
    return pa.StructArray.from_arrays(children, fields=fields, mask=_nulls(values))


def _lists(values: pa.Array, wanted: Any) -> pa.ListArray:  # noqa: ANN401 (a list's type)
    borders, items = opened(values)
    items = converted(items, wanted.value_type)
    return pa.ListArray.from_arrays(pa.array(borders), items, type=wanted, mask=_nulls(values))


def _maps(values: pa.Array, wanted: Any) -> pa.MapArray:  # noqa: ANN401 (a map's type)
    borders, entries = opened(values)
    keys = converted(entries.field(0), wanted.key_type)
    items = converted(entries.field(1), wanted.item_type)
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


_CONVERSIONS: tuple[
    tuple[Callable[[pa.DataType], bool], Callable[[pa.Array, Any], pa.Array]], ...
] = (
    (pa.types.is_struct, _structs),
    (pa.types.is_map, _maps),
    (_is_list, _lists),
    (pa.types.is_timestamp, _instants),
    (pa.types.is_time, _times),
)


def nullable_schema(schema: Schema, left: pa.DataType) -> Schema:
    """*schema* with null allowed where *left*, the type of its values after a step, allows it.

    Names, versions, defaults and everything else stay. Returns the schema itself when nothing changes.
    """
    match schema.type:
        case SchemaType.STRUCT:
            return _struct(schema, left)
        case SchemaType.ARRAY:
            return _element(schema, left.value_field)
        case SchemaType.MAP:
            return _element(schema, left.item_field)
        case _:
            return schema


def _struct(schema: Schema, left: Any) -> Schema:  # noqa: ANN401 (a struct's type)
    fields = tuple(
        dataclasses.replace(each, schema=_nullable_part(each.schema, part))
        for each, part in zip(schema.fields, left, strict=True)
    )
    return schema if fields == schema.fields else dataclasses.replace(schema, fields=fields)


def _element(schema: Schema, part: pa.Field) -> Schema:
    assert schema.value_schema is not None, "of an array or a map"
    value = _nullable_part(schema.value_schema, part)
    return (
        schema if value == schema.value_schema else dataclasses.replace(schema, value_schema=value)
    )


def _nullable_part(schema: Schema, part: pa.Field) -> Schema:
    found = nullable_schema(schema, part.type)
    return found.as_optional() if part.nullable and not found.optional else found
