"""Compares what is in Kafka with what was in the files, record by record."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from reading import canonical

from headrace.testing.judge import committed_records


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A file's line in the table; numbers of records."""

    name: str
    read: int
    found: int
    lost: int
    twice: int

    def is_right(self) -> bool:
        """Whether every record is there once."""
        return self.read == self.found and not self.lost and not self.twice


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """A line for each file, and how many records no file has."""

    lines: tuple[Line, ...]
    foreign: int

    def total(self) -> Line:
        """All lines together."""
        return Line(
            name="all",
            read=sum(line.read for line in self.lines),
            found=sum(line.found for line in self.lines),
            lost=sum(line.lost for line in self.lines),
            twice=sum(line.twice for line in self.lines),
        )

    def is_right(self) -> bool:
        """Whether every record is there once, and nothing else."""
        return not self.foreign and all(line.is_right() for line in self.lines)


def in_kafka(bootstrap: str, topics: Iterable[str]) -> Counter[str]:
    """Every committed record, read from the beginning by another client library."""
    return Counter(
        canonical(json.loads(record.value))
        for topic in topics
        for record in committed_records(bootstrap, topic)
    )


def compared(files: Mapping[str, Counter[str]], found: Counter[str]) -> Comparison:
    """What became of each file; pure. No two files have the same record."""
    known = Counter[str]()
    for wanted in files.values():
        known.update(wanted)
    lines = tuple(_line(name, wanted, found) for name, wanted in files.items())
    return Comparison(
        lines=lines, foreign=sum(count for record, count in found.items() if record not in known)
    )


def _line(name: str, wanted: Counter[str], found: Counter[str]) -> Line:
    here = Counter({record: found[record] for record in wanted if record in found})
    return Line(
        name=name,
        read=wanted.total(),
        found=here.total(),
        lost=(wanted - here).total(),
        twice=(here - wanted).total(),
    )


def table(comparison: Comparison) -> Iterator[str]:
    """The comparison as lines of text."""
    yield f"  {'file':<24}{'records read':>14}{'in Kafka':>12}{'lost':>8}{'twice':>8}"
    for line in (*comparison.lines, comparison.total()):
        yield (f"  {line.name:<24}{line.read:>14,}{line.found:>12,}{line.lost:>8,}{line.twice:>8,}")
    if comparison.foreign:
        yield f"  Records that no file has: {comparison.foreign:,}"
