"""Structs as their fields, one by one and as columns, with defaults in the place of nulls where that is wanted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headrace.connect.columns import column_of
from headrace.connect.errors import RecordError
from headrace.connect.schema import Field, Schema, SchemaType, arrow_type


def read_field(value: Mapping[str, Any], field: Field, *, defaults: bool) -> Any:  # noqa: ANN401 (whatever a field holds)
    """What *field* of a struct holds: with *defaults* its default where it holds nothing. Pure."""
    held = value.get(field.name)
    return field.schema.default if held is None and defaults else held


def read_struct(value: Mapping[str, Any], schema: Schema, *, defaults: bool) -> dict[str, Any]:
    """All fields of a struct, in their order. Pure."""
    return {each.name: read_field(value, each, defaults=defaults) for each in schema.fields}


def read_columns(column: pa.StructArray, schema: Schema, *, defaults: bool) -> list[pa.Array]:
    """The columns of all fields of structs, null where the struct is. Pure."""
    columns = column.flatten()
    if not defaults:
        return columns
    return [
        _with_default(each, field.schema)
        for each, field in zip(columns, schema.fields, strict=True)
    ]


def struct_column(
    schema: Schema, columns: Sequence[pa.Array], rows: int, valid: pa.BooleanArray | None = None
) -> pa.StructArray:
    """*columns* as structs of *schema*, those null that are not *valid*; also where there are no columns. Pure."""
    # A copy without an offset, as its bits become those of the structs.
    bits = None if valid is None else pc.take(valid, pa.array(np.arange(rows))).buffers()[1]
    return pa.Array.from_buffers(arrow_type(schema), rows, [bits], children=list(columns))


def like_struct(schema: Schema, fields: Sequence[Field]) -> Schema:
    """A struct of *fields* with what *schema* says besides its own; neither optional nor with a default. Pure.

    Raises :class:`~headrace.connect.errors.RecordError` for two fields of one name, or one without.
    """
    seen = set[str]()
    for each in fields:
        if not each.name:
            raise RecordError("fieldName cannot be null.")
        if each.name in seen:
            raise RecordError(f"Cannot create field because of field name duplication {each.name}")
        seen.add(each.name)
    return Schema(
        type=SchemaType.STRUCT,
        name=schema.name,
        version=schema.version,
        doc=schema.doc,
        parameters=schema.parameters,
        fields=tuple(fields),
    )


def _with_default(column: pa.Array, schema: Schema) -> pa.Array:
    if schema.default is None or not column.null_count:
        return column
    default = column_of(schema, [schema.default])
    if not pa.types.is_nested(column.type):
        return column.fill_null(default[0])
    # Arrow fills no nested columns: rows are taken from the column, or from behind its end.
    rows = pa.array(np.arange(len(column)))
    chosen = pc.if_else(column.is_valid(), rows, len(column))
    return pa.concat_arrays([column, default]).take(chosen)
