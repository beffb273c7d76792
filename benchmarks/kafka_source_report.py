"""The report's section about reading Kafka. Pure."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

from benchmarks.kafka_source import (
    ALONE,
    CONSUME,
    HEADRACE,
    HEADRACE_WHOLE,
    SPARK,
    START,
    Case,
    Measured,
)
from benchmarks.report import markdown_table

TITLE: Final = "Reading Kafka"
LEAST_RATE, MOST_CPU = 1.0, 0.5
"""What is wanted: records a second, times Spark's own source; CPU seconds up to the hand-over, of the client's."""

_BESIDE_SPARK: Final = (HEADRACE, SPARK)
_BESIDE_CLIENT: Final = (ALONE, CONSUME)
# The least that is told apart.
_TICK: Final = 0.01
_WANTED: Final = (
    "Wanted: at least as many records a second as Spark's own source, and at most half of `consume`'s CPU seconds up to "
    "the hand-over"
)


def rate(run: Measured) -> float:
    """Records a second."""
    return run.records / run.seconds


def cpu_per_million(run: Measured) -> float:
    """CPU seconds of all processes per million records."""
    return run.cpu_seconds / run.records * 1e6


def told(run: Measured) -> str:
    """One run in a line."""
    case = run.case
    return f"{run.seconds:.2f} s, {run.cpu_seconds:.2f} CPU s: {_place(case)}, {case.work}, {case.reader}"


def kafka_source_section(measured: Sequence[Measured]) -> str:
    """Ratios first; empty without figures."""
    if not measured:
        return ""
    runs: dict[Case, list[Measured]] = {}
    for each in measured:
        runs.setdefault(each.case, []).append(each)
    found = _Medians(runs)
    head = ["", *found.places]
    drawn = [
        ("Ratios", head, found.ratios()),
        ("Thousand records/s", head, found.figures(lambda run: f"{rate(run) / 1000:,.0f}")),
        ("CPU s per million records", head, found.figures(lambda run: f"{cpu_per_million(run):.2f}")),
        ("Start, which is left out above", ("", "s", "CPU s"), found.starts()),
    ]  # fmt: skip
    tables = (f"### {title}\n\n{markdown_table(head, list(rows))}" for title, head, rows in drawn)
    missed = ", ".join(found.missed())
    number = min(map(len, runs.values()))
    words = (
        f"Medians of {number} run{'s' * (number > 1)}, contenders in turns. {_WANTED}; "
        f"{f'missed: {missed}' if missed else 'reached everywhere'}."
    )
    return "\n\n".join(["", f"## {TITLE}", words, *tables])


def _place(case: Case) -> str:
    return f"{case.shape}; {case.tasks} task{'s' * (case.tasks > 1)}"


_Figure = Callable[[Measured], float]
_Pair = tuple[str, str]


@dataclass(frozen=True)
class _Medians:
    runs: Mapping[Case, Sequence[Measured]]

    @cached_property
    def places(self) -> Sequence[str]:
        """The columns of the tables: what is read by how many tasks."""
        return list(dict.fromkeys(_place(case) for case in self.runs if case.shape != START.title))

    @cached_property
    def _medians(self) -> Mapping[Case, Measured]:
        return {
            case: Measured(
                case=case,
                records=each[0].records,
                seconds=statistics.median(run.seconds for run in each),
                cpu_seconds=statistics.median(run.cpu_seconds for run in each),
            )
            for case, each in self.runs.items()
        }

    @cached_property
    def _found(self) -> Mapping[tuple[str, str, str], Measured]:
        """By work, reader and place, without the start."""
        return {
            (case.work, case.reader, _place(case)): self._after_start(run)
            for case, run in self._medians.items()
            if case.shape != START.title
        }

    def _after_start(self, run: Measured) -> Measured:
        start = self._medians.get(replace(run.case, shape=START.title, tasks=1))
        if start is None:
            return run
        return replace(
            run,
            seconds=max(_TICK, run.seconds - start.seconds),
            cpu_seconds=max(_TICK, run.cpu_seconds - start.cpu_seconds),
        )

    def starts(self) -> Iterator[Sequence[str]]:
        """The rows of a table of what it takes to begin."""
        for case, run in self._medians.items():
            if case.shape == START.title:
                title = f"{case.work}: {case.reader}"
                yield title, f"{run.seconds:.2f}", f"{run.cpu_seconds:.2f}"

    def figures(self, written: Callable[[Measured], str]) -> Iterator[Sequence[str]]:
        """The rows of a table of what *written* says of each."""
        found = self._found
        for work, reader in dict.fromkeys((work, reader) for work, reader, _ in found):
            keys = [(work, reader, place) for place in self.places]
            cells = (written(found[key]) if key in found else "" for key in keys)
            yield [f"{work}: {reader}", *cells]

    def ratios(self) -> Iterator[Sequence[str]]:
        """The rows of a table of ratios."""
        works = list(dict.fromkeys(work for work, _, _ in self._found))
        for title, pair, figure in (
            ("records/s, times Spark's own", _BESIDE_SPARK, rate),
            ("records/s without `columns`, times Spark's own", (HEADRACE_WHOLE, SPARK), rate),
            ("CPU, of Spark's own", _BESIDE_SPARK, cpu_per_million),
            ("CPU, of `consume`'s", _BESIDE_CLIENT, cpu_per_million),
        ):
            for work in works:
                row = [self._ratio((work, place), pair, figure) for place in self.places]
                if any(each is not None for each in row):
                    cells = ("" if each is None else f"{each:.2f}" for each in row)
                    yield [f"{title}: {work}", *cells]

    def missed(self) -> Iterator[str]:
        """Where a goal is missed."""
        for work, place in dict.fromkeys((work, place) for work, _, place in self._found):
            speed = self._ratio((work, place), _BESIDE_SPARK, rate)
            cost = self._ratio((work, place), _BESIDE_CLIENT, cpu_per_million)
            if (speed or LEAST_RATE) < LEAST_RATE or (cost or MOST_CPU) > MOST_CPU:
                yield f"{work} ({place})"

    def _ratio(self, what: _Pair, readers: _Pair, figure: _Figure) -> float | None:
        work, place = what
        pair = [self._found.get((work, reader, place)) for reader in readers]
        own, other = (None if each is None else figure(each) for each in pair)
        return None if own is None or other is None else own / other
