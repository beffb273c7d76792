"""Records for hypothesis to draw, the parts of which have the names that the settings of transformations say."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as some

from headrace.connect.partition import SourcePartition
from headrace.connect.record import Header, SourceRecord
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
from judges.answered import with_plain_defaults
from judges.comparing import column_of
from judges.drawn import LEAVES, Typed, described, typed
from judges.told import Told, record_told, untyped

NAMES = ["a", "b", "c", "a.b"]
_WORDS = ["", "7", "-3", "1.5", "1e3", "TRUE", "300", "2020-01-02", "2020-01-02T03:04:05", "x"]
_SPOKEN: Typed = (STRING, some.sampled_from(_WORDS))
_SMALL: Typed = (INT64, some.integers(-3, 10**12))
# What Python has without a schema: one kind of whole numbers, and one of others.
_FREE = [STRING, BYTES, BOOLEAN, INT64, FLOAT64, DATE, TIME, TIMESTAMP, decimal(3)]
_LOOSE_LEAVES = [_SPOKEN, _SMALL, *(each for each in LEAVES if each[0] in _FREE)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawn:
    """A record, to be told to the judge and to be made ours."""

    key: Told
    value: Told
    headers: tuple[tuple[str, Told], ...]
    partition: int | None
    timestamp: int | None

    def told(self) -> dict[str, Any]:
        """The record for the judge."""
        return record_told(
            "top",
            self.value,
            key=self.key,
            headers=self.headers,
            partition=self.partition,
            timestamp=self.timestamp,
        )

    def ours(self) -> SourceRecord:
        """The record as our transformations get it."""
        return SourceRecord(
            topic="top",
            partition=self.partition,
            source_partition=SourcePartition(),
            source_offset=None,
            key=_held(self.key),
            key_schema=_schema(self.key),
            value=_held(self.value),
            value_schema=_schema(self.value),
            headers=tuple(Header(name, _held(each), _schema(each)) for name, each in self.headers),
            timestamp=self.timestamp,
        )


@some.composite
def records(draw: some.DrawFn) -> list[Drawn]:
    """A few records with keys and values of one schema, or without."""
    has_schema = draw(some.booleans() | some.just(value=True))
    schema, values = draw((structs() | structs() | _named_leaf()) if has_schema else _loose())
    parts = values.map(lambda value: Told(schema, value, schema if has_schema else None))
    headers = some.lists(some.tuples(some.sampled_from(["h", "i"]), _HEADERS), max_size=2)
    record = some.builds(
        Drawn,
        key=parts,
        value=parts,
        headers=headers.map(tuple),
        partition=some.none() | some.just(3),
        timestamp=some.none() | some.integers(0, 4_000_000_000_000),
    )
    return draw(some.lists(record, min_size=1, max_size=4))


_HEADERS = some.sampled_from([Told(STRING, "x", STRING), untyped(INT64, 5)])


@some.composite
def structs(draw: some.DrawFn, depth: int = 2) -> Typed:
    """A struct, and its values; null where it may be."""
    names = draw(some.lists(some.sampled_from(NAMES), max_size=3, unique=True))
    inner = _named_leaf(has_place=True) | typed(1) | (structs(depth - 1) if depth else typed(0))
    members = {name: draw(inner) for name in names}
    fields = tuple(Field(name, each) for name, (each, _) in members.items())
    values = some.fixed_dictionaries({name: values for name, (_, values) in members.items()})
    schema = draw(described(Schema(type=SchemaType.STRUCT, fields=fields)))
    optional = draw(some.booleans())
    schema = dataclasses.replace(schema, optional=optional)
    return schema, (some.none() | values) if optional else values


@some.composite
def _named_leaf(draw: some.DrawFn, *, has_place: bool = False) -> Typed:
    """Texts and numbers that something can be made of, and everything else that is not nested."""
    schema, values = draw(some.sampled_from([_SPOKEN, _SPOKEN, _SMALL, *LEAVES]))
    default = draw(some.none() | values)
    optional = draw(some.booleans())
    schema = dataclasses.replace(schema, optional=optional, default=default)
    may_be_null = optional or (has_place and default is not None)
    return schema, (some.none() | values) if may_be_null else values


@some.composite
def _loose(draw: some.DrawFn) -> Typed:
    """Values of one type, alone, in a map or in a map of maps: the judge knows no other maps."""
    schema, values = draw(some.sampled_from(_LOOSE_LEAVES))
    for _ in range(draw(some.sampled_from([0, 1, 1, 2]))):
        optional = schema.as_optional()
        schema = Schema(type=SchemaType.MAP, key_schema=STRING, value_schema=optional)
        entries = some.tuples(some.sampled_from(NAMES), some.none() | values)
        values = some.lists(entries, max_size=3, unique_by=lambda pair: pair[0])
    return schema, some.none() | values


def _held(told: Told) -> Any:  # noqa: ANN401 (whatever its schema says)
    return column_of([told])[0].as_py(maps_as_pydicts="strict")


def _schema(told: Told) -> Schema | None:
    return told.schema and with_plain_defaults(told.schema)
