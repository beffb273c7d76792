"""What a transformation needs an operand to be, and how Kafka Connect says that it is something else."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from headrace.connect.errors import RecordError
from headrace.connect.json_document import JSON_NULL
from headrace.connect.schema import Schema, SchemaType


def required_struct(schema: Schema, value: object, purpose: str) -> Mapping[str, Any]:
    """*value* as a struct; raises :class:`~headrace.connect.errors.RecordError` for anything else."""
    if schema.type is SchemaType.STRUCT and isinstance(value, Mapping):
        return value
    raise RecordError(
        f"Only Struct objects supported for [{purpose}], found: {java_class(value, schema)}"
    )


def required_map(value: object, purpose: str) -> Mapping[Any, Any]:
    """*value* without schema as a map; raises :class:`~headrace.connect.errors.RecordError` for anything else."""
    if isinstance(value, Mapping):
        return value
    raise RecordError(
        f"Only Map objects supported in absence of schema for [{purpose}], found: {java_class(value)}"
    )


def required_name(key: object) -> str:
    """*key* of a map without schema; raises :class:`~headrace.connect.errors.RecordError` for what is no string."""
    if isinstance(key, str):
        return key
    raise RecordError(f"A key of a map has to be a string, found: {java_class(key)}")


_CLASSES: tuple[tuple[tuple[type, ...], str], ...] = (
    ((bool,), "java.lang.Boolean"),
    ((int,), "java.lang.Long"),
    ((float,), "java.lang.Double"),
    ((str,), "java.lang.String"),
    ((bytes,), "[B"),
    ((Decimal,), "java.math.BigDecimal"),
    ((dt.date, dt.time), "java.util.Date"),
    ((Mapping,), "java.util.HashMap"),
    ((list, tuple), "java.util.ArrayList"),
)


def java_class(value: object, schema: Schema | None = None) -> str:
    """What Java calls the class of *value*, which may have a *schema*; ``null`` for no value. Pure."""
    if value is None or value is JSON_NULL:
        return "null"
    if schema is not None and schema.type is SchemaType.STRUCT:
        return "org.apache.kafka.connect.data.Struct"
    if schema is not None and schema.name is None and schema.type in _NARROW:
        return _NARROW[schema.type]
    return next(
        (name for kinds, name in _CLASSES if isinstance(value, kinds)), type(value).__name__
    )


_NARROW = {
    SchemaType.INT8: "java.lang.Byte",
    SchemaType.INT16: "java.lang.Short",
    SchemaType.INT32: "java.lang.Integer",
    SchemaType.FLOAT32: "java.lang.Float",
}
