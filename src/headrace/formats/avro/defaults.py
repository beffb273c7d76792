"""The defaults of Avro fields, from JSON to what Connect has for them."""

from __future__ import annotations

import decimal
from collections.abc import Callable, Mapping
from typing import Any, cast

from headrace.connect.schema import DATE, Schema
from headrace.formats.avro.types import (
    AvroType,
    branch_name,
    is_map_entry,
    nullable_of,
)

_DECIMAL = f"{str(DATE.name).rpartition('.')[0]}.Decimal"
_MISFIT = (TypeError, ValueError, AttributeError, KeyError, ArithmeticError)


def default_value(kind: AvroType, schema: Schema, told: object) -> object:
    """What *told*, a default in JSON, is as a value of *schema*; ``None`` for one that does not fit.

    Bytes are bytes, decimals are decimals, structs and maps are dictionaries; dates and times are the
    integers that Avro writes. Pure.
    """
    try:
        return None if told is None else _value(kind, schema, told)
    except _MISFIT:
        return None


def _value(kind: AvroType, schema: Schema, told: object) -> object:
    inner = nullable_of(kind)
    if inner is not None:
        return None if told is None else _value(inner, schema, told)
    return _READERS.get(kind.kind, _plain)(kind, schema, told)


def _union(kind: AvroType, schema: Schema, told: object) -> object:
    """A default is of the first branch."""
    first = kind.branches[0]
    return {branch_name(first): _value(first, schema.fields[0].schema, told)}


def _struct(kind: AvroType, schema: Schema, told: Any) -> object:  # noqa: ANN401
    return {
        each.name: _value(each.type, member.schema, told.get(each.name, each.default))
        for each, member in zip(kind.fields, schema.fields, strict=True)
    }


def _container(kind: AvroType, schema: Schema, told: Any) -> object:  # noqa: ANN401
    element = schema.value_schema
    if element is None or (kind.kind == "array" and is_map_entry(kind.element)):
        raise ValueError("a default of this form is not read")
    if kind.kind == "array":
        return [_value(kind.element, element, each) for each in told]
    return {key: _value(kind.element, element, each) for key, each in told.items()}


def _bytes(_kind: AvroType, schema: Schema, told: Any) -> object:  # noqa: ANN401
    found = told.encode("latin-1")
    if schema.name != _DECIMAL:
        return found
    unscaled = int.from_bytes(found, "big", signed=True)
    digits = tuple(int(digit) for digit in str(abs(unscaled)))
    return decimal.Decimal((int(unscaled < 0), digits, -int(schema.parameters["scale"])))


def _plain(kind: AvroType, _schema: Schema, told: object) -> object:
    whole = isinstance(told, int) and not isinstance(told, bool)
    fits = {
        "boolean": isinstance(told, bool),
        "int": whole,
        "long": whole,
        "float": whole or isinstance(told, float),
        "double": whole or isinstance(told, float),
    }
    if not fits.get(kind.kind, isinstance(told, str)):
        raise ValueError(f"{told!r} is no value of {kind.kind}")
    return float(cast("float", told)) if kind.kind in ("float", "double") else told


_READERS: Mapping[str, Callable[[AvroType, Schema, object], object]] = {
    "union": _union,
    "record": _struct,
    "array": _container,
    "map": _container,
    "bytes": _bytes,
    "fixed": _bytes,
}
