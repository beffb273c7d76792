"""Fields of structs, read from one struct and from a column of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from headrace.connect.columns import column_of
from headrace.connect.schema import Field, Schema

NULLS_DOC: Final = "Put the default of a field that has one where the field is null."
"""What ``replace.null.with.default`` means (KIP-1040)."""


@dataclass(frozen=True, slots=True)
class FieldReader:
    """Reads one field of structs of one schema; *default* stands for its nulls where that is wanted. Pure."""

    index: int
    field: Field
    default: pa.Scalar | None

    @property
    def name(self) -> str:
        """The field's name."""
        return self.field.name

    @property
    def schema(self) -> Schema:
        """The field's schema."""
        return self.field.schema

    def value(self, struct: Mapping[str, Any]) -> Any:  # noqa: ANN401 (whatever the field holds)
        """The field's value in *struct*."""
        value = struct.get(self.field.name)
        if value is None and self.default is not None:
            return plain_value(self.default)
        return value

    def column(self, structs: pa.StructArray) -> pa.Array:
        """The field's values in *structs*; what is in a null struct is null, whatever the default."""
        column = pc.struct_field(structs, [self.index])
        if self.default is None or not column.null_count:
            return column
        filled = pc.coalesce(column, self.default)
        return pc.if_else(structs.is_valid(), filled, None) if structs.null_count else filled


def field_readers(schema: Schema, *, defaults: bool) -> Iterator[FieldReader]:
    """Readers of all fields of *schema*, in order; *defaults* is what ``replace.null.with.default`` says."""
    for index, field in enumerate(schema.fields):
        yield FieldReader(index, field, default_of(field.schema) if defaults else None)


def default_of(schema: Schema) -> pa.Scalar | None:
    """The default of *schema* as its columns hold it; ``None`` when it has none.

    Raises :class:`~headrace.connect.errors.RecordError` for one that does not fit its schema.
    """
    return None if schema.default is None else column_of(schema, [schema.default])[0]


def plain_value(held: pa.Scalar) -> Any:  # noqa: ANN401 (whatever a column holds)
    """What *held* is in a single record."""
    return held.as_py(maps_as_pydicts="strict")
