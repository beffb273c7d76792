"""Records for hypothesis to draw, the parts of which have the names that the settings of transformations say."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as some

from headrace.connect.partition import SourcePartition
from headrace.connect.record import Header, SourceRecord
from headrace.connect.schema import INT64, STRING, Schema
from judges.answered import with_plain_defaults
from judges.comparing import column_of
from judges.drawn_operands import leaves, loose, seldom_null, structs
from judges.told import Told, record_told, untyped


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
    kind = draw(
        some.sampled_from(["struct", "struct", "struct", "struct", "loose", "loose", "leaf"])
    )
    has_schema = kind != "loose"
    schema, values = draw({"struct": structs(), "loose": loose(), "leaf": leaves()}[kind])
    values = values if has_schema else seldom_null(values)
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


def _held(told: Told) -> Any:  # noqa: ANN401 (whatever its schema says)
    return column_of([told])[0].as_py(maps_as_pydicts="strict")


def _schema(told: Told) -> Schema | None:
    return told.schema and with_plain_defaults(told.schema)
