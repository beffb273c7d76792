"""Parquet's enumerations, which are texts, and which Arrow reads as bytes."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.parquet as pq


def with_enum_texts(fields: pa.Schema, stored: pq.ParquetSchema) -> pa.Schema:
    """*fields* with strings where *stored* says that a column of bytes is an enumeration. Pure."""
    kinds = [stored.column(index).logical_type.type for index in range(len(stored))]
    if "ENUM" not in kinds:
        return fields
    enums = iter([kind == "ENUM" for kind in kinds])
    return pa.schema([_field(each, enums) for each in fields])


def _field(field: pa.Field, enums: Iterator[bool]) -> pa.Field:
    return field.with_type(_type(field.type, enums))


def _type(kind: pa.DataType, enums: Iterator[bool]) -> pa.DataType:
    """*kind* with its leaves taken from *enums*, in which they have the same order as in the file."""
    if pa.types.is_struct(kind):
        return pa.struct([_field(each, enums) for each in kind])
    if pa.types.is_map(kind):
        return pa.map_(_type(kind.key_type, enums), _field(kind.item_field, enums))
    if isinstance(kind, pa.BaseExtensionType):
        _type(kind.storage_type, enums)
        return kind
    if pa.types.is_nested(kind):
        return pa.list_(_field(kind.value_field, enums))
    return pa.utf8() if next(enums) else kind
