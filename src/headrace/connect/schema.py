"""Connect's schema model, and the Arrow form of each type.

A record without schema has ``None`` where its schema would be. Values without schema are strings, bytes,
numbers, booleans, or JSON documents: text that is passed on as it is, marked by the Arrow type
:data:`JSON_DOCUMENT`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

import pyarrow as pa

JSON_DOCUMENT = pa.json_(pa.utf8())
"""Arrow type of a column in which each value is the text of exactly one JSON document."""


class SchemaType(StrEnum):
    """Connect's types, by the names that its JSON converter writes."""

    INT8 = "int8"
    INT16 = "int16"
    INT32 = "int32"
    INT64 = "int64"
    FLOAT32 = "float"
    FLOAT64 = "double"
    BOOLEAN = "boolean"
    STRING = "string"
    BYTES = "bytes"
    ARRAY = "array"
    MAP = "map"
    STRUCT = "struct"


@dataclass(frozen=True, slots=True)
class Field:
    """A named member of a struct."""

    name: str
    schema: Schema


@dataclass(frozen=True, slots=True, kw_only=True)
class Schema:
    """The type of a key, a value or a header; equal when every attribute is equal, deeply.

    ``name`` with ``version`` makes a logical type, such as ``org.apache.kafka.connect.data.Timestamp``.
    Raises ``ValueError`` when a struct has two fields of one name, or a container lacks its element.
    """

    type: SchemaType
    optional: bool = False
    name: str | None = None
    version: int | None = None
    doc: str | None = None
    default: object = None
    parameters: Mapping[str, str] = field(default_factory=dict[str, str])
    fields: tuple[Field, ...] = ()
    key_schema: Schema | None = None
    value_schema: Schema | None = None

    def __post_init__(self) -> None:
        names = [each.name for each in self.fields]
        if len(set(names)) != len(names):
            raise ValueError(f"A struct has two fields of one name: {', '.join(names)}")
        if self.type in (SchemaType.ARRAY, SchemaType.MAP) and self.value_schema is None:
            raise ValueError(f"A schema of type {self.type} needs a value schema.")
        if self.type is SchemaType.MAP and self.key_schema is None:
            raise ValueError("A schema of type map needs a key schema.")

    def as_optional(self) -> Schema:
        """The same schema with null allowed."""
        return dataclasses.replace(self, optional=True)


STRING = Schema(type=SchemaType.STRING)
BYTES = Schema(type=SchemaType.BYTES)
BOOLEAN = Schema(type=SchemaType.BOOLEAN)
INT32 = Schema(type=SchemaType.INT32)
INT64 = Schema(type=SchemaType.INT64)
FLOAT64 = Schema(type=SchemaType.FLOAT64)
OPTIONAL_STRING = STRING.as_optional()
OPTIONAL_BYTES = BYTES.as_optional()

_LOGICAL = "org.apache.kafka.connect.data."
DATE = Schema(type=SchemaType.INT32, name=f"{_LOGICAL}Date", version=1)
TIME = Schema(type=SchemaType.INT32, name=f"{_LOGICAL}Time", version=1)
TIMESTAMP = Schema(type=SchemaType.INT64, name=f"{_LOGICAL}Timestamp", version=1)

_DECIMAL_DIGITS = 38

_PLAIN_ARROW = {
    SchemaType.INT8: pa.int8(),
    SchemaType.INT16: pa.int16(),
    SchemaType.INT32: pa.int32(),
    SchemaType.INT64: pa.int64(),
    SchemaType.FLOAT32: pa.float32(),
    SchemaType.FLOAT64: pa.float64(),
    SchemaType.BOOLEAN: pa.bool_(),
    SchemaType.STRING: pa.utf8(),
    SchemaType.BYTES: pa.binary(),
}
# A name alone does not make a logical type: a cast keeps the name while it changes the type.
_LOGICAL_ARROW = {
    (DATE.type, DATE.name): pa.date32(),
    (TIME.type, TIME.name): pa.time32("ms"),
    (TIMESTAMP.type, TIMESTAMP.name): pa.timestamp("ms", tz="UTC"),
}


def decimal(scale: int) -> Schema:
    """The schema of Connect's Decimal with *scale* digits after the point."""
    return Schema(
        type=SchemaType.BYTES,
        name=f"{_LOGICAL}Decimal",
        version=1,
        parameters={"scale": str(scale)},
    )


def arrow_type(schema: Schema) -> pa.DataType:
    """The Arrow type of a column of values of *schema*. Pure; called once per schema by extractors."""
    if (schema.type, schema.name) in _LOGICAL_ARROW:
        return _LOGICAL_ARROW[schema.type, schema.name]
    if (schema.type, schema.name) == (SchemaType.BYTES, f"{_LOGICAL}Decimal"):
        return pa.decimal128(_DECIMAL_DIGITS, int(schema.parameters["scale"]))
    if schema.type is SchemaType.STRUCT:
        return pa.struct([_arrow_field(each.name, each.schema) for each in schema.fields])
    if schema.type is SchemaType.ARRAY and schema.value_schema:
        return pa.list_(_arrow_field("item", schema.value_schema))
    if schema.type is SchemaType.MAP and schema.key_schema and schema.value_schema:
        return pa.map_(arrow_type(schema.key_schema), _arrow_field("value", schema.value_schema))
    return _PLAIN_ARROW[schema.type]


def _arrow_field(name: str, schema: Schema) -> pa.Field:
    return pa.field(name, arrow_type(schema), nullable=schema.optional)
