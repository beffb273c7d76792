"""Schemas and values for hypothesis to draw: all types, nested, with every attribute that a schema has."""

from __future__ import annotations

import dataclasses
import math
from decimal import Decimal
from typing import Any

from hypothesis import strategies as some

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
    decimal,
)

INT8, INT16 = Schema(type=SchemaType.INT8), Schema(type=SchemaType.INT16)
FLOAT32 = Schema(type=SchemaType.FLOAT32)
Typed = tuple[Schema, some.SearchStrategy[Any]]
"""A schema and its values, dates and times as their numbers."""

TEXT = some.text(some.characters(exclude_categories=["Cs"]), max_size=5) | some.sampled_from(
    ["", "\x00\x1f\x7f", '"\\/', "\u2028\ue000\ufeff", "😀\U0010ffff", "\u0085é\uffff", "null"]
)
_EDGES = [0.0, -0.0, 1e-3, 9.999e-4, 1e7, 9999999.0, 1e22, 2e-3, 5e-324, 2.0**-1022, 123456789.0]
_WHOLE = some.integers(-9, 9).map(float)
_NO_NUMBERS = [math.nan, math.inf, -math.inf]
_DAY_MS = 86_400_000
# What Python has dates for: the years from 1 to 9999.
_DAYS = (-719_162, 2_932_896)
_SCALES = (0, 3, 10, 38, -2)


def _decimals(scale: int) -> Typed:
    # Arrow reads a negative scale by way of all the digits that it stands for.
    most = 10 ** (38 + min(scale, 0)) - 1
    digits = some.integers(-most, most) | some.integers(-300, 300)
    return decimal(scale), digits.map(lambda n: _scaled(n, scale))


def _scaled(number: int, scale: int) -> Decimal:
    return Decimal((int(number < 0), tuple(map(int, str(abs(number)))), -scale))


def _integers(schema: Schema, bits: int) -> Typed:
    return schema, some.integers(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


LEAVES: list[Typed] = [
    _integers(INT8, 8),
    _integers(INT16, 16),
    _integers(INT32, 32),
    _integers(INT64, 64),
    (FLOAT64, some.floats() | some.sampled_from(_EDGES + _NO_NUMBERS) | _WHOLE),
    (FLOAT32, some.floats(width=32) | some.sampled_from([*_NO_NUMBERS, 0.5**149]) | _WHOLE),
    (BOOLEAN, some.booleans()),
    (STRING, TEXT),
    (BYTES, some.binary(max_size=7)),
    (DATE, some.integers(*_DAYS)),
    (TIME, some.integers(0, 86_399_999)),
    (TIMESTAMP, some.integers(*(_DAY_MS * day for day in _DAYS))),
    *map(_decimals, _SCALES),
]


def one_of_each() -> list[tuple[Schema, Any]]:
    """Each plain type with a value of it, and the nested ones."""
    plain = [5, 300, 70_000, 2**40, 1.5, 0.1, True, "a", b"a", 1, 1000, 86_400_001]
    row = Schema(type=SchemaType.STRUCT, fields=(Field("a", STRING),))
    return [
        *zip([schema for schema, _ in LEAVES], plain, strict=False),
        (decimal(2), Decimal("1.50")),
        (Schema(type=SchemaType.ARRAY, value_schema=INT32), [1]),
        (Schema(type=SchemaType.MAP, key_schema=STRING, value_schema=INT32), [("a", 1)]),
        (Schema(type=SchemaType.MAP, key_schema=INT32, value_schema=INT32), [(1, 1)]),
        (row, {"a": "x"}),
    ]


@some.composite
def typed(draw: some.DrawFn, depth: int = 2, *, has_place: bool = True) -> Typed:
    """A schema and its values.

    Without a place, in arrays and maps, a null never stands for a default: Connect's own structs
    refuse such a null before a converter sees it.
    """
    kinds = ["leaf", "struct", "array", "map", "pairs"] if depth else ["leaf"]
    schema, values = draw(_of_kind(draw(some.sampled_from(kinds)), depth))
    if draw(some.booleans()):
        schema = draw(described(schema))
    # Connect takes two structs for different when only one schema has a default: no struct can be one.
    has_default = schema.type is not SchemaType.STRUCT and draw(some.booleans())
    if has_default:
        schema = dataclasses.replace(schema, default=draw(values))
    if draw(some.booleans()):
        schema = schema.as_optional()
    if schema.optional or (has_default and has_place):
        values = some.none() | values
    return schema, values


@some.composite
def described(draw: some.DrawFn, schema: Schema) -> Schema:
    """The same with a name, a version, a doc and parameters, where it has none of its own."""
    more = draw(some.dictionaries(TEXT, TEXT, max_size=2))
    return dataclasses.replace(
        schema,
        name=schema.name or draw(some.none() | TEXT),
        version=schema.version or draw(some.none() | some.integers(-(2**31), 2**31 - 1)),
        doc=draw(some.none() | TEXT),
        # What is there already, a decimal's scale, is not to be replaced.
        parameters={**more, **schema.parameters},
    )


def _of_kind(kind: str, depth: int) -> some.SearchStrategy[Typed]:
    match kind:
        case "struct":
            return _structs(depth)
        case "array":
            return typed(depth - 1, has_place=False).map(_array)
        case "map":
            return typed(depth - 1, has_place=False).map(lambda found: _map((STRING, TEXT), found))
        case "pairs":
            keys = some.sampled_from([each for each in LEAVES if each[0] not in (STRING, BYTES)])
            return some.tuples(keys, typed(depth - 1, has_place=False)).map(lambda kv: _map(*kv))
        case _:
            return some.sampled_from(LEAVES)


def _array(items: Typed) -> Typed:
    schema, values = items
    return Schema(type=SchemaType.ARRAY, value_schema=schema), some.lists(values, max_size=3)


def _map(keys: Typed, items: Typed) -> Typed:
    schema = Schema(type=SchemaType.MAP, key_schema=keys[0], value_schema=items[0])
    entries = some.tuples(keys[1], items[1])
    return schema, some.lists(entries, max_size=3, unique_by=lambda pair: repr(pair[0]))


@some.composite
def _structs(draw: some.DrawFn, depth: int) -> Typed:
    names = draw(some.lists(TEXT.filter(bool), max_size=3, unique=True))
    members = {name: draw(typed(depth - 1)) for name in names}
    fields = tuple(Field(name, each) for name, (each, _) in members.items())
    values = some.fixed_dictionaries({name: values for name, (_, values) in members.items()})
    return Schema(type=SchemaType.STRUCT, fields=fields), values
