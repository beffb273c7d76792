"""Schemas, values and records for hypothesis to draw, and the check that both ways of a transformation agree."""

from __future__ import annotations

import dataclasses
import datetime as dt
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa
from hypothesis import strategies as some

from headrace.connect.batch import SourceBatch
from headrace.connect.columns import column_of
from headrace.connect.errors import RecordError
from headrace.connect.partition import SourcePartition
from headrace.connect.record import SourceRecord
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
from headrace.connect.transforming import ColumnarTransform
from headrace.slot.batching import batches_of
from headrace.slot.plain_rows import plain_row

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
    return schema, (some.none() | values) if schema.optional else values


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


@some.composite
def records(draw: some.DrawFn, of: some.SearchStrategy[Typed]) -> Sequence[SourceRecord]:
    """Some records of one schema, with the same for keys and for values, null where it may be."""
    schema, values = draw(of)
    schema = dataclasses.replace(schema, optional=draw(some.booleans()))
    drawn = draw(
        some.lists((some.none() | values) if schema.optional else values, min_size=1, max_size=4)
    )
    return [record(value, schema, key=value, key_schema=schema) for value in drawn]


def record(value: object, schema: Schema | None = None, **more: Any) -> SourceRecord:  # noqa: ANN401 (fields of a record)
    """A record with a value."""
    return SourceRecord(
        topic="t",
        value=value,
        value_schema=schema,
        source_partition=SourcePartition(file="f"),
        source_offset={"line": 1},
        **more,
    )


def check_both_ways(transform: ColumnarTransform, given: Sequence[SourceRecord]) -> None:
    """Fails unless ``apply_batch`` gives for a batch of *given* what ``apply`` gives for each of its rows."""
    for batch, _ in batches_of(given):
        _check_batch(transform, batch)
        if len(batch) > 1:
            # Columns that begin within others, too.
            _check_batch(transform, batch.slice(1, len(batch) - 1))


def _check_batch(transform: ColumnarTransform, batch: SourceBatch) -> None:
    try:
        expected = [_sendable(transform.apply(plain_row(batch, row))) for row in range(len(batch))]
    except RecordError:
        assert _refused(transform, batch)
        return
    changed = transform.apply_batch(batch)
    if changed is None:
        return
    assert sum(map(len, changed)) == len(batch)
    rows = iter(expected)
    for each in changed:
        same = [next(rows) for _ in range(len(each))]
        assert _columns(same) == _shown(each)
        assert {_schemas(row) for row in same} == {_schemas(each)}


def _sendable(changed: SourceRecord | None) -> SourceRecord:
    """*changed*, which fits a column; raises :class:`~headrace.connect.errors.RecordError` otherwise."""
    assert changed is not None
    _columns([changed])
    return changed


def _refused(transform: ColumnarTransform, batch: SourceBatch) -> bool:
    try:
        return transform.apply_batch(batch) is None
    except RecordError:
        return True


def _schemas(of: SourceRecord | SourceBatch) -> str:
    return repr((of.value_schema, of.key_schema))


def _columns(rows: Sequence[SourceRecord]) -> str:
    """*rows* as the columns that they would be sent as; text, in which each number is like itself only."""
    first = rows[0]
    values = column_of(first.value_schema, [row.value for row in rows])
    keys = column_of(first.key_schema, [row.key for row in rows])
    return _told(values, keys)


def _shown(batch: SourceBatch) -> str:
    keys = pa.nulls(len(batch)) if batch.keys is None else batch.keys
    return _told(batch.values, keys)


def _told(values: pa.Array, keys: pa.Array) -> str:
    return repr([(str(each.type), each.to_pylist()) for each in (values, keys)])
