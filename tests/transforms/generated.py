"""Schemas, values and batches for hypothesis to draw."""

from __future__ import annotations

import dataclasses
import datetime as dt
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from hypothesis import strategies as some

from headrace.connect.batch import SourceBatch
from headrace.connect.partition import SourcePartition
from headrace.connect.record import Header, SourceRecord
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
from headrace.task.batching import batches_of

Typed = tuple[Schema, some.SearchStrategy[Any]]
"""A schema and its values."""

NAMES = ["a", "b", "c", "a.b"]
"""What fields are called: few names, so that what a transformation names is often there."""

INT8, INT16 = Schema(type=SchemaType.INT8), Schema(type=SchemaType.INT16)
FLOAT32 = Schema(type=SchemaType.FLOAT32)
TEXTS = ["", "x", "é\u2028", "12", "-3", "+1", " 1", "300", "1.5", "1e3", "NaN", "TRUE", "9" * 20]
_FLOATS = [0.0, -0.0, 0.5, -1.9, 300.7, 2.0**31, -(2.0**63), 1e20, 1e39, 5e-324]
_MIDNIGHT = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


def _instant(millis: int) -> dt.datetime:
    return _MIDNIGHT + dt.timedelta(milliseconds=millis)


def _integers(schema: Schema, bits: int) -> Typed:
    return schema, some.integers(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) | some.integers(-3, 3)


_DAY_MS = 86_400_000
_INSTANTS = some.integers(-62_135_596_800_000, 253_402_300_799_999)
LEAVES: list[Typed] = [
    _integers(INT8, 8),
    _integers(INT16, 16),
    _integers(INT32, 32),
    _integers(INT64, 64),
    (FLOAT32, some.floats(width=32)),
    (FLOAT64, some.floats() | some.sampled_from(_FLOATS)),
    (BOOLEAN, some.booleans()),
    (STRING, some.sampled_from(TEXTS)),
    (BYTES, some.binary(max_size=4)),
    (DATE, some.dates()),
    (TIME, some.integers(0, _DAY_MS - 1).map(lambda millis: _instant(millis).time())),
    (TIMESTAMP, (_INSTANTS | some.integers(0, 9).map(lambda day: day * _DAY_MS)).map(_instant)),
    *(
        (
            decimal(scale),
            some.integers(-(10**30), 10**30).map(
                lambda n, s=scale: Decimal((int(n < 0), tuple(map(int, str(abs(n)))), -s))
            ),
        )
        for scale in (0, 2, 9)
    ),
]


@some.composite
def typed(draw: some.DrawFn, depth: int = 2) -> Typed:
    """A schema with everything that a schema has, and its values, nulls among them where they may be."""
    kinds = ["leaf", "leaf", "struct", "array", "map"] if depth else ["leaf"]
    schema, values = draw(_of_kind(draw(some.sampled_from(kinds)), depth - 1))
    schema = dataclasses.replace(
        schema,
        optional=draw(some.booleans()),
        doc=draw(some.sampled_from([None, "d"])),
        default=draw(some.none() | values),
    )
    # Nothing keeps a connector from leaving out what is required.
    has_nulls = schema.optional or draw(some.sampled_from([False, False, True]))
    return schema, (some.none() | values) if has_nulls else values


@some.composite
def structs(draw: some.DrawFn, depth: int = 2) -> Typed:
    """A struct, and its values."""
    names = draw(some.lists(some.sampled_from(NAMES), max_size=3, unique=True))
    members = {name: draw(typed(depth)) for name in names}
    fields = tuple(Field(name, schema) for name, (schema, _) in members.items())
    values = some.fixed_dictionaries({name: each for name, (_, each) in members.items()})
    named = draw(some.sampled_from([None, "n"]))
    return Schema(type=SchemaType.STRUCT, fields=fields, name=named, version=3), values


def _of_kind(kind: str, depth: int) -> some.SearchStrategy[Typed]:
    match kind:
        case "struct":
            return structs(depth)
        case "array":
            return typed(depth).map(_array)
        case "map":
            return typed(depth).map(_map)
        case _:
            return some.sampled_from(LEAVES)


def _array(items: Typed) -> Typed:
    schema, values = items
    return Schema(type=SchemaType.ARRAY, value_schema=schema), some.lists(values, max_size=2)


def _map(items: Typed) -> Typed:
    schema, values = items
    made = Schema(type=SchemaType.MAP, key_schema=STRING, value_schema=schema)
    return made, some.dictionaries(some.sampled_from(NAMES), values, max_size=2)


_TOP = some.sampled_from(TEXTS) | some.integers(-3, 2**40) | some.floats() | some.booleans()
_SCALARS = _TOP | some.none() | some.binary(max_size=4)
_FREE_KEYS = some.sampled_from(NAMES) | some.integers(-3, 3)


def _nested(held: some.SearchStrategy[Any]) -> some.SearchStrategy[Any]:
    named = some.dictionaries(some.sampled_from(NAMES), held, max_size=3)
    return named | some.dictionaries(_FREE_KEYS, held, max_size=2) | some.lists(held, max_size=2)


LOOSE = some.dictionaries(
    some.sampled_from(NAMES), some.recursive(_SCALARS, _nested, max_leaves=6), max_size=4
)
"""Mappings without schema; in them are bytes, numbers that are none, and keys that are no strings, too."""


@some.composite
def batches(draw: some.DrawFn, of: some.SearchStrategy[Typed] | None = None) -> SourceBatch:
    """A batch of some rows with values of one schema, and keys of the same; null where they may be."""
    schema, values = draw(structs() if of is None else of)
    schema = dataclasses.replace(schema, optional=draw(some.booleans()))
    values = (some.none() | values) if schema.optional else values
    stamps = draw(some.sampled_from([some.integers(-1, 4_000_000_000_000), some.none()]))
    more = {
        "partition": draw(some.none() | some.just(3)),
        "headers": draw(some.sampled_from([(), (Header("h", "v", STRING), Header("i", 5, INT64))])),
        "key_schema": schema,
    }
    rows = draw(some.lists(some.tuples(values, values, stamps), min_size=1, max_size=4))
    records = [
        record(value, schema, key=key, timestamp=stamp, **more) for value, key, stamp in rows
    ]
    ((batch, _),) = batches_of(records)
    if batch.timestamps is not None and draw(some.booleans()):
        batch = dataclasses.replace(batch, timestamps=draw(stamps))
    return batch


def batch_of(values: Sequence[Any], schema: Schema | None = None) -> SourceBatch:
    """A batch of *values*."""
    ((batch, _),) = batches_of([record(each, schema) for each in values])
    return batch


UNTYPED = some.lists(LOOSE, min_size=1, max_size=4).map(batch_of)
"""Batches of mappings without schema."""
ANY = batches() | batches(typed()) | UNTYPED
"""Batches of structs, of anything with a schema, and of mappings without one."""


def record(value: object, schema: Schema | None = None, **more: Any) -> SourceRecord:  # noqa: ANN401 (fields of a record)
    """A record with a value."""
    return SourceRecord(
        topic="top",
        value=value,
        value_schema=schema,
        source_partition=SourcePartition(file="f"),
        source_offset={"line": 1},
        **more,
    )
