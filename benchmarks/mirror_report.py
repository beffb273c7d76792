"""The report's section about mirrors. Pure."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from benchmarks.mirror import COST, HEADRACE, MIRROR_MAKER, Copied, Delayed, MirrorCase
from benchmarks.report import MIB, markdown_table

TITLE: Final = "Copying topics"
MOST_MEMORY, MOST_SLOT_MIB, MOST_COST = 0.6, 200, 0.05
"""What is wanted: memory of the whole worker, of MirrorMaker's; one slot's; the share of the rate that exactly-once costs."""

_Runs = Sequence[Copied]


def mirror_section(measured: Sequence[Copied | Delayed]) -> str:
    """A section for what was measured, ratios first; empty without anything."""
    copied = [one for one in measured if isinstance(one, Copied)]
    delayed = [one for one in measured if isinstance(one, Delayed)]
    parts = [
        _ratios(copied),
        _cost(copied),
        _figures(copied),
        _delays(delayed),
    ]
    found = [part for part in parts if part]
    return f"\n\n## {TITLE}\n\n" + "\n\n".join(found) if found else ""


def told(one: Copied | Delayed) -> str:
    """A line for one run."""
    if isinstance(one, Delayed):
        return (
            f"{one.maker}: {one.median:.2f} s, p99 {one.p99:.2f} s, {one.percent:.0f} % of a core, {one.after_kill:.1f} s "
            "from the kill to a new record"
        )
    return (
        f"{_named(one)}: {one.rate:,.0f} records/s, {one.cpu_per_million:.2f} CPU s per million, {one.rss_bytes / MIB:,.0f} "
        f"MiB (a slot {one.slot_rss_bytes / MIB:,.0f}), over {one.records:,} records in {one.seconds:.1f} s after "
        f"{one.start_seconds:.1f} s of start"
    )


def _ratios(copied: Sequence[Copied]) -> str:
    rows = [
        (
            case.title,
            f"{_median(theirs, _cpu) / _median(ours, _cpu):.1f}",
            *_verdict(_median(theirs, _cpu) / _median(ours, _cpu), case.wanted),
            f"{_median(ours, _rate) / _median(theirs, _rate):.1f}",
            f"{_peak(ours, _rss) / _peak(theirs, _rss):.2f}",
            "reached" if _peak(ours, _rss) <= MOST_MEMORY * _peak(theirs, _rss) else "missed",
            f"{_peak(ours, _slot_rss) / MIB:.0f}",
            "reached" if _peak(ours, _slot_rss) < MOST_SLOT_MIB * MIB else "missed",
        )
        for case, ours, theirs in _compared(copied)
    ]
    if not rows:
        return ""
    head = (
        "headrace, times MirrorMaker 2",
        "records per CPU second",
        "wanted",
        "",
        "records/s",
        f"memory (≤ {MOST_MEMORY:g})",
        "",
        f"one slot, MiB (< {MOST_SLOT_MIB})",
        "",
    )
    return markdown_table(head, rows)


def _verdict(value: float, wanted: float | None) -> tuple[str, str]:
    if wanted is None:
        return "", ""
    return f"≥ {wanted:g}", "reached" if value >= wanted else "missed"


def _figures(copied: Sequence[Copied]) -> str:
    rows = [
        (
            f"{case.title}: {_named(runs[0])}",
            f"{_median(runs, _rate):,.0f}",
            f"{_median(runs, _cpu):.2f}",
            f"{_peak(runs, _rss) / MIB:,.0f}",
            f"{_peak(runs, _slot_rss) / MIB:,.0f}" if runs[0].slot_rss_bytes else "",
            f"{_median(runs, lambda one: one.start_seconds):.1f}",
            f"{_median(runs, lambda one: one.start_cpu_seconds):.1f}",
            str(len(runs)),
        )
        for case, groups in _by_case(copied)
        for runs in groups
    ]
    head = (
        "",
        "records/s",
        "CPU s per million",
        "memory, MiB",
        "one slot, MiB",
        "start, s",
        "start, CPU s",
        "runs",
    )
    return markdown_table(head, rows) if rows else ""


def _delays(delayed: Sequence[Delayed]) -> str:
    rows = [
        (
            one.maker,
            f"{one.median:.2f}",
            f"{one.p99:.2f}",
            f"{one.percent:.0f}",
            f"{one.after_kill:.1f}",
        )
        for one in delayed
    ]
    head = ("at 1,000 records/s", "delay, s", "p99, s", "% of a core", "kill -9 to a new record, s")
    return markdown_table(head, rows) if rows else ""


def _cost(copied: Sequence[Copied]) -> str:
    runs = [one for one in copied if one.case.key == COST]
    exactly = [one for one in runs if one.exactly_once]
    at_least = [one for one in runs if not one.exactly_once]
    if not exactly or not at_least:
        return ""
    rate = _median(exactly, _rate) / _median(at_least, _rate)
    cpu = _median(exactly, _cpu) / _median(at_least, _cpu)
    verdict = "reached" if rate >= 1 - MOST_COST else "missed"
    return (
        f"Exactly once, of at least once: {rate:.2f} times the rate, with {cpu:.2f} times the CPU (medians of {len(exactly)} "
        f"runs). Wanted: at least {1 - MOST_COST:.2f} times the rate; {verdict}."
    )


def _compared(copied: Sequence[Copied]) -> Iterator[tuple[MirrorCase, _Runs, _Runs]]:
    for case, groups in _by_case(copied):
        by_maker = {runs[0].maker: runs for runs in groups if runs[0].exactly_once}
        if HEADRACE.title in by_maker and MIRROR_MAKER.title in by_maker:
            yield case, by_maker[HEADRACE.title], by_maker[MIRROR_MAKER.title]


def _by_case(copied: Sequence[Copied]) -> Iterator[tuple[MirrorCase, list[_Runs]]]:
    """The runs of each case, in the order of the first ones, by who ran."""
    found: dict[str, dict[str, list[Copied]]] = {}
    for one in copied:
        found.setdefault(one.case.key, {}).setdefault(_named(one), []).append(one)
    for groups in found.values():
        runs = list[_Runs](groups.values())
        yield runs[0][0].case, runs


def _named(one: Copied) -> str:
    return one.maker if one.exactly_once else f"{one.maker}, at least once"


def _median(runs: _Runs, of: Callable[[Copied], float]) -> float:
    return statistics.median(map(of, runs))


def _peak(runs: _Runs, of: Callable[[Copied], int]) -> int:
    return max(map(of, runs))


def _rate(one: Copied) -> float:
    return one.rate


def _cpu(one: Copied) -> float:
    return one.cpu_per_million


def _rss(one: Copied) -> int:
    return one.rss_bytes


def _slot_rss(one: Copied) -> int:
    return one.slot_rss_bytes
