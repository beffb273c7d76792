"""Schemas of structs that are made anew."""

from __future__ import annotations

from collections.abc import Sequence

from headrace.connect.errors import RecordError
from headrace.connect.schema import Field, Schema, SchemaType


def struct_like(schema: Schema, fields: Sequence[Field]) -> Schema:
    """A struct with *fields* that has from *schema* what Kafka Connect copies: all but optional and default.

    Raises :class:`~headrace.connect.errors.RecordError` when two of *fields* have one name, or one has none.
    """
    _check_names(fields)
    return Schema(
        type=SchemaType.STRUCT,
        name=schema.name,
        version=schema.version,
        doc=schema.doc,
        parameters=schema.parameters,
        fields=tuple(fields),
    )


def _check_names(fields: Sequence[Field]) -> None:
    seen = set[str]()
    for field in fields:
        if not field.name:
            raise RecordError("fieldName cannot be null.")
        if field.name in seen:
            raise RecordError(f"Cannot create field because of field name duplication {field.name}")
        seen.add(field.name)
