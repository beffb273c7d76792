"""Connect's schema for an Avro type, as Confluent's ``AvroData`` derives it with its default settings.

Unlike there, docs are kept where Connect has a place for them (``Schema.doc``), and no parameters are
added to remember them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Final, cast

from headrace.connect.schema import (
    BOOLEAN,
    BYTES,
    DATE,
    FLOAT64,
    INT32,
    INT64,
    STRING,
    TIME,
    TIMESTAMP,
    Field,
    Schema,
    SchemaType,
)
from headrace.connect.schema import decimal as decimal_schema
from headrace.formats.avro.defaults import default_value
from headrace.formats.avro.types import (
    CONFLUENT,
    AvroField,
    AvroType,
    branch_name,
    entry_fields,
    is_map_entry,
    nullable_of,
    refused,
)

UNION: Final = f"{CONFLUENT}Union"
ENUM: Final = f"{CONFLUENT}Enum"
FIXED_SIZE: Final = "connect.fixed.size"
_NAMELESS = f"{CONFLUENT}ConnectDefault"
_NULL = "A type is null alone, for which Connect has none."
_PRECISION = "connect.decimal.precision"
_USUAL_PRECISION = 64
_PLAIN = {
    "boolean": BOOLEAN,
    "int": INT32,
    "long": INT64,
    "float": Schema(type=SchemaType.FLOAT32),
    "double": FLOAT64,
    "bytes": BYTES,
    "string": STRING,
}
_LOGICAL = {
    ("int", "date"): DATE,
    ("int", "time-millis"): TIME,
    ("long", "timestamp-millis"): TIMESTAMP,
}
_SMALL = {"int8": SchemaType.INT8, "int16": SchemaType.INT16}
_BASES: Mapping[str | None, SchemaType] = {
    each.name: each.type for each in (DATE, TIME, TIMESTAMP, decimal_schema(0))
}


def connect_schema(kind: AvroType) -> Schema:
    """The schema of values of *kind*. Pure; called once per object.

    Raises :class:`~headrace.formats.avro.types.SchemaRefusedError`, without a place, for what
    Connect has no schema for.
    """
    try:
        return _schema(kind)
    except ValueError as error:
        raise refused(str(error)) from error


def _schema(kind: AvroType, *, default: object = None, doc: str | None = None) -> Schema:
    inner = nullable_of(kind)
    if inner is not None:
        # As in AvroData a default stays behind here: it would otherwise stand in for every null.
        found = _schema(inner, doc=doc)
        return found.as_optional() if len(kind.branches) > 1 else found
    bare = _annotated(kind, _bare(kind))
    known = doc or kind.doc or kind.properties.get("connect.doc")
    told = default if default is not None else kind.properties.get("connect.default")
    return dataclasses.replace(
        bare, doc=str(known) if known else None, default=default_value(kind, bare, told)
    )


def _bare(kind: AvroType) -> Schema:
    """The schema of *kind* without what annotates it."""
    if kind.kind == "null":
        raise refused(_NULL)
    return _BARE.get(kind.kind, _number_or_text)(kind)


def _struct(kind: AvroType) -> Schema:
    return Schema(type=SchemaType.STRUCT, fields=tuple(map(_field, kind.fields)))


def _field(each: AvroField) -> Field:
    return Field(each.name, _schema(each.type, default=each.default, doc=each.doc))


def _union(kind: AvroType) -> Schema:
    others = [each for each in kind.branches if each.kind != "null"]
    if not others:
        raise refused(_NULL)
    return Schema(
        type=SchemaType.STRUCT,
        name=UNION,
        optional=len(others) < len(kind.branches),
        fields=tuple(Field(branch_name(each), _schema(each).as_optional()) for each in others),
    )


def _enum(kind: AvroType) -> Schema:
    symbols = {f"{ENUM}.{symbol}": symbol for symbol in kind.symbols}
    return Schema(type=SchemaType.STRING, parameters={ENUM: kind.name or "", **symbols})


def _array(kind: AvroType) -> Schema:
    if not is_map_entry(kind.element):
        return Schema(type=SchemaType.ARRAY, value_schema=_schema(kind.element))
    key, value = entry_fields(kind.element)
    return Schema(type=SchemaType.MAP, key_schema=_schema(key), value_schema=_schema(value))


def _map(kind: AvroType) -> Schema:
    return Schema(type=SchemaType.MAP, key_schema=STRING, value_schema=_schema(kind.element))


def _bytes(kind: AvroType) -> Schema:
    found = BYTES
    parameters = dict[str, str]()
    if kind.logical == "decimal":
        scale, precision = kind.properties.get("scale", 0), kind.properties.get("precision")
        found = decimal_schema(scale if isinstance(scale, int) else 0)
        if isinstance(precision, int) and precision != _USUAL_PRECISION:
            parameters[_PRECISION] = str(precision)
    if kind.kind == "fixed":
        parameters[FIXED_SIZE] = str(kind.size)
    return dataclasses.replace(found, parameters={**found.parameters, **parameters})


def _number_or_text(kind: AvroType) -> Schema:
    small = kind.properties.get("connect.type")
    if kind.kind == "int" and not kind.logical and small in _SMALL:
        return Schema(type=_SMALL[str(small)])
    return _LOGICAL.get((kind.kind, kind.logical), _PLAIN[kind.kind])


_BARE: Mapping[str, Callable[[AvroType], Schema]] = {
    "record": _struct,
    "union": _union,
    "enum": _enum,
    "array": _array,
    "map": _map,
    "bytes": _bytes,
    "fixed": _bytes,
}


def _annotated(kind: AvroType, bare: Schema) -> Schema:
    """*bare* with the name, version and parameters that *kind* has for Connect."""
    told = kind.properties
    version = told.get("connect.version")
    name = told.get("connect.name", kind.name)
    known = isinstance(name, str) and bare.name is None and not name.startswith(_NAMELESS)
    made = dataclasses.replace(
        bare,
        name=str(name) if known else bare.name,
        version=version if isinstance(version, int) else bare.version,
        parameters={**bare.parameters, **_parameters(told)},
    )
    _check_logical(made)
    return made


def _parameters(told: Mapping[str, object]) -> Mapping[str, str]:
    given = told.get("connect.parameters")
    connect = cast("dict[str, object]", given) if isinstance(given, dict) else {}
    avro = {key: each for key, each in told.items() if key.startswith("avro")}
    return {key: str(each) for key, each in {**connect, **avro}.items()}


def _check_logical(schema: Schema) -> None:
    """A name that means a logical type must stand on that type's base."""
    base = _BASES.get(schema.name)
    if base is None:
        return
    scale = schema.parameters.get("scale", "" if base is SchemaType.BYTES else "0")
    if schema.type is not base or not scale.lstrip("-").isdecimal():
        raise refused(f"A type of {schema.type} has the name {schema.name}.")
