"""Schemas of values in which a step may have made required fields null; pure."""

from __future__ import annotations

import dataclasses
from typing import Any

import pyarrow as pa

from headrace.connect.schema import Schema, SchemaType


def loosened(schema: Schema, left: pa.DataType) -> Schema:
    """*schema* with null allowed where it is in *left*, which is the type of its values behind a step.

    Names, versions, defaults and all else stay. The schema itself when nothing changes.
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
        dataclasses.replace(each, schema=_part(each.schema, part))
        for each, part in zip(schema.fields, left, strict=True)
    )
    return schema if fields == schema.fields else dataclasses.replace(schema, fields=fields)


def _element(schema: Schema, part: pa.Field) -> Schema:
    assert schema.value_schema is not None, "of an array or a map"
    value = _part(schema.value_schema, part)
    return (
        schema if value == schema.value_schema else dataclasses.replace(schema, value_schema=value)
    )


def _part(schema: Schema, part: pa.Field) -> Schema:
    found = loosened(schema, part.type)
    return found.as_optional() if part.nullable and not found.optional else found
