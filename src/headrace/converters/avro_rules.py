"""What a converter's settings say about Avro, for its schemas and for its bytes alike."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from headrace.connect.schema import Schema, SchemaType

CONFLUENT: Final = "io.confluent.connect.avro"
_ENUM = f"{CONFLUENT}.Enum"
_UNION = f"{CONFLUENT}.Union"
_FIXED_SIZE = "connect.fixed.size"


@dataclass(frozen=True, slots=True, kw_only=True)
class AvroRules:
    """*enums*: strings that were enums become enums again. *defaults*: they are written in place of nulls."""

    meta_data: bool = True
    enums: bool = False
    scrub: bool = False
    defaults: bool = True


def is_union(schema: Schema) -> bool:
    """Whether structs of *schema* are unions: each holds a value in one of its fields."""
    return schema.type is SchemaType.STRUCT and schema.name == _UNION


def is_null_first(schema: Schema) -> bool:
    """Whether null is the first branch of an optional *schema*; a default is always of the first."""
    return schema.default is None


def fixed_size(schema: Schema) -> int | None:
    """How many bytes each value of *schema* has, if it was one of Avro's fixed types."""
    if schema.type is not SchemaType.BYTES:
        return None
    size = schema.parameters.get(_FIXED_SIZE)
    return None if size is None else int(size)


def enum_name(schema: Schema, rules: AvroRules) -> str | None:
    """The name of the enum that values of *schema* are symbols of, if they are written as such."""
    if not rules.enums or schema.type is not SchemaType.STRING:
        return None
    return schema.parameters.get(_ENUM)


def enum_symbols(schema: Schema) -> list[str]:
    """The symbols of an enum, in order."""
    prefix = f"{_ENUM}."
    return [value for key, value in schema.parameters.items() if key.startswith(prefix)]
