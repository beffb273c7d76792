"""Keys and values of records for hypothesis to draw: structs of a few named fields, and maps without schema."""

from __future__ import annotations

import dataclasses
from typing import Any

from hypothesis import strategies as some

from headrace.connect.schema import (
    BOOLEAN,
    BYTES,
    DATE,
    FLOAT64,
    INT64,
    STRING,
    TIME,
    TIMESTAMP,
    Field,
    Schema,
    SchemaType,
    decimal,
)
from judges.drawn import LEAVES, Typed, described
from judges.told import LOOSE_MAP

NAMES = ["a", "b", "c", "d", "a.b"]
"""What fields are called: few names, so that what a transformation names is often there."""

_WORDS = ["", "7", "-3", "1.5", "1e3", "TRUE", "300", "2020-01-02", "2020-01-02T03:04:05", "x"]
_SPOKEN: Typed = (STRING, some.sampled_from(_WORDS))
_SMALL: Typed = (INT64, some.integers(-3, 10**12))
# What Python has without a schema: one kind of whole numbers, and one of others.
_FREE = [STRING, BYTES, BOOLEAN, INT64, FLOAT64, DATE, TIME, TIMESTAMP, decimal(3)]
_LOOSE_LEAVES = [_SPOKEN, _SMALL, *(each for each in LEAVES if each[0] in _FREE)]
_KINDS = ["leaf", "leaf", "leaf", "struct", "struct", "array", "map"]
_LOOSE_KINDS = ["leaf", "leaf", "map", "map", "entries", "pairs", "array"]
_KEYS: list[Typed] = [(STRING, some.sampled_from(NAMES)), (INT64, some.integers(-3, 3))]


def seldom_null(values: some.SearchStrategy[Any]) -> some.SearchStrategy[Any]:
    """*values*, and a null once in eight."""
    return some.integers(0, 7).flatmap(lambda drawn: values if drawn < 7 else some.none())


@some.composite
def structs(draw: some.DrawFn, depth: int = 2) -> Typed:
    """A struct of up to five fields, *depth* levels of structs within it, and its values."""
    names = draw(some.permutations(NAMES))[: draw(some.sampled_from([2, 1, 3, 4, 5, 0]))]
    members = {name: draw(_fields(depth)) for name in names}
    fields = tuple(Field(name, each) for name, (each, _) in members.items())
    values = some.fixed_dictionaries({name: values for name, (_, values) in members.items()})
    schema = draw(described(Schema(type=SchemaType.STRUCT, fields=fields)))
    return draw(_attributed((schema, values), has_place=depth < 2))


@some.composite
def leaves(draw: some.DrawFn) -> Typed:
    """What is not nested: texts and numbers that something can be made of, and everything else."""
    return draw(_attributed(draw(some.sampled_from([_SPOKEN, _SPOKEN, _SMALL, *LEAVES]))))


@some.composite
def loose(draw: some.DrawFn, depth: int = 3) -> Typed:
    """Values without schema: *depth* levels of maps and lists, whose members may be of several types."""
    kind = draw(some.sampled_from(_LOOSE_KINDS if depth else ["leaf"]))
    if kind == "leaf":
        return draw(some.sampled_from(_LOOSE_LEAVES))
    if kind == "map":
        return _loose_map({name: draw(loose(depth - 1)) for name in draw(_SOME_NAMES)})
    schema, values = draw(loose(depth - 1))
    held = (schema.as_optional(), seldom_null(values))
    if kind == "array":
        return _array(held)
    return _entries(held, _KEYS[0 if kind == "entries" else 1])


_SOME_NAMES = some.lists(some.sampled_from(NAMES), max_size=4, unique=True)


@some.composite
def _fields(draw: some.DrawFn, depth: int) -> Typed:
    match draw(some.sampled_from(_KINDS if depth else ["leaf"])):
        case "struct":
            return draw(structs(depth - 1))
        case "array":
            return draw(_attributed(_array(draw(_items(depth - 1)))))
        case "map":
            return draw(_attributed(_entries(draw(_items(depth - 1)))))
        case _:
            return draw(leaves())


@some.composite
def _items(draw: some.DrawFn, depth: int) -> Typed:
    """What arrays and maps hold, where a null never stands for a default."""
    schema, values = draw(_fields(depth))
    plain = dataclasses.replace(schema, default=None)
    return (
        (plain, values)
        if schema.optional
        else (plain, values.filter(lambda each: each is not None))
    )


@some.composite
def _attributed(draw: some.DrawFn, found: Typed, *, has_place: bool = True) -> Typed:
    """The same with a default, as optional, both or neither; with nulls where they may be."""
    schema, values = found
    default = draw(some.none() | values) if has_place else None
    schema = dataclasses.replace(schema, optional=draw(some.booleans()), default=default)
    return schema, seldom_null(values) if schema.optional or default is not None else values


def _array(items: Typed) -> Typed:
    schema, values = items
    return Schema(type=SchemaType.ARRAY, value_schema=schema), some.lists(values, max_size=3)


def _entries(items: Typed, keys: Typed = _KEYS[0]) -> Typed:
    schema, values = items
    made = Schema(type=SchemaType.MAP, key_schema=keys[0], value_schema=schema)
    entries = some.tuples(keys[1], values)
    return made, some.lists(entries, max_size=3, unique_by=lambda pair: pair[0])


def _loose_map(members: dict[str, Typed]) -> Typed:
    fields = tuple(Field(name, each.as_optional()) for name, (each, _) in members.items())
    schema = Schema(type=SchemaType.STRUCT, fields=fields, name=LOOSE_MAP)
    return schema, some.fixed_dictionaries(
        {name: seldom_null(values) for name, (_, values) in members.items()}
    )
