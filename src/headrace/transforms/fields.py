"""Fields of structs: where they are (KIP-821), read from one struct and from a column of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

import pyarrow as pa
import pyarrow.compute as pc

from headrace.connect.columns import column_of
from headrace.connect.schema import Field, Schema

NULLS_DOC: Final = "Replace a null by the default of the field, if it has one."
"""The documentation of ``replace.null.with.default`` (KIP-1040)."""


@dataclass(frozen=True, slots=True)
class FieldReader:
    """Reads one field of structs of one schema; *default* replaces its nulls where that is wanted. Pure."""

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
        """The field's values in *structs*; null for a null struct, whatever the default."""
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
    """The value *held* by a column, in the form of single records."""
    return held.as_py(maps_as_pydicts="strict")


Version = Literal["V1", "V2"]
TICK: Final = "`"
_ESCAPED_TICK: Final = "\\`"


def parsed_path(text: str, version: str) -> tuple[str, ...]:
    """The path of names to the field *text*, from the outside in.

    In V1 *text* is one name. In V2 dots are between names; a name within backticks may have dots of its own,
    and backticks, with a backslash where a dot follows. The version counts in either case. Raises
    ``ValueError`` for a backtick at the start of a name that none ends.
    """
    if version.upper() == "V1":
        return (text,)
    return tuple(_names(text)) if text else ()


def _names(text: str) -> Iterator[str]:
    start: int | None = 0
    while start is not None:
        if text.startswith(TICK, start):
            end = _closing(text, start)
            yield text[start + 1 : end].replace(f"{_ESCAPED_TICK}.", f"{TICK}.")
            end += 1
        else:
            dot = text.find(".", start)
            end = len(text) if dot < 0 else dot
            yield text[start:end]
        start = end + 1 if end < len(text) else None


def _closing(text: str, opening: int) -> int:
    """The place of the backtick that ends the name begun by *opening*: the first one before a dot or the end."""
    place = text.find(TICK, opening + 1)
    while place >= 0:
        ends = place + 1 == len(text) or text[place + 1] == "."
        if ends and text[place - 1] != "\\":
            return place
        place = text.find(TICK, place + 1)
    raise ValueError(
        f"Incomplete backtick pair in path: [{text}], consider adding a backslash before backtick at "
        f"position {opening} to escape it"
    )


@dataclass(frozen=True, slots=True)
class FieldAccessor:
    """Reads a field in nested structs, by one reader for each level; null where one of them is null. Pure."""

    readers: Sequence[FieldReader]

    def value(self, struct: Mapping[str, Any] | None) -> Any:  # noqa: ANN401 (whatever the field holds)
        """The field's value in *struct*."""
        value: Any = struct
        for reader in self.readers:
            if value is None:
                return None
            value = reader.value(value)
        return value

    def column(self, structs: pa.StructArray) -> pa.Array:
        """The field's values in *structs*, which may be null."""
        column: Any = structs
        for reader in self.readers:
            column = reader.column(column)
        return column
