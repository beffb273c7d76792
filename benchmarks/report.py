"""The report in Markdown. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from benchmarks.order_statistics import WANTED_COVERAGE, MedianInterval
from benchmarks.results import Ratio, Results, ratios
from benchmarks.rows import ROWS

MIB = 1024 * 1024
MOST_SLOT_MIB = 300
# What an allocator may keep over a longer run, and what ten samples a second can miss.
MOST_GROWTH = 1.1
MOST_COST = 0.05


def markdown_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table whose first column is text and whose others are figures, aligned for plain readers, too."""
    lines = [head, *rows]
    # A rule of one or two characters would make no table.
    widths = [max(3, *(len(line[column]) for line in lines)) for column in range(len(head))]

    def drawn(cells: Sequence[str]) -> str:
        first, *others = zip(cells, widths, strict=True)
        padded = [first[0].ljust(first[1]), *(cell.rjust(width) for cell, width in others)]
        return f"| {' | '.join(padded)} |"

    rule = ["-" * widths[0], *("-" * (width - 1) + ":" for width in widths[1:])]
    return "\n".join([drawn(head), drawn(rule), *map(drawn, rows)])


def report(results: Results) -> str:
    """All sections for which there are figures."""
    sections = [_table(results), _ratios(results), _cost(results), _memory(results)]
    return "\n\n".join(filter(None, sections))


def _table(results: Results) -> str:
    head = (
        "",
        "slots",
        "records/s",
        "CPU s per million",
        "memory, MiB",
        "one slot, MiB",
        "start, s",
        "start, CPU s",
        "runs",
    )
    rows = list(_rows(results))
    return "## Figures\n\n" + markdown_table(head, rows) if rows else "Nothing was measured."


def _rows(results: Results) -> Iterator[Sequence[str]]:
    for row in ROWS:
        if row.key not in results:
            continue
        slot = results.peak_slot_rss_bytes(row.key)
        yield (
            row.title,
            str(row.slots),
            f"{results.rate(row.key):,.0f}",
            f"{results.cpu_per_million(row.key):.2f}",
            f"{results.peak_rss_bytes(row.key) / MIB:,.0f}",
            f"{slot / MIB:,.0f}" if slot else "",
            f"{results.start_seconds(row.key):.1f}",
            f"{results.start_cpu_seconds(row.key):.1f}",
            str(len(results.runs[row.key])),
        )


def _ratios(results: Results) -> str:
    rows = [_ratio(each) for each in ratios(results)]
    if not rows:
        return ""
    return "## Ratios\n\n" + markdown_table(("", "measured", "wanted", ""), rows)


def _ratio(ratio: Ratio) -> Sequence[str]:
    if ratio.wanted is None:
        return ratio.title, f"{ratio.value:.2f}", "", ""
    sign = "≥" if ratio.at_least else "≤"
    reached = "reached" if ratio.reached else "missed"
    return ratio.title, f"{ratio.value:.2f}", f"{sign} {ratio.wanted:.2f}", reached


def _cost(results: Results) -> str:
    found = results.cost_of_exactly_once()
    if found is None:
        return ""
    pairs = min(len(results.runs[key]) for key in ("jsonl-eos-1", "jsonl-alo-1"))
    verdict = _settled(found)
    return (
        "## The cost of exactly-once\n\n"
        f"Exactly-once ran at **{found.median:.3f}** times the rate of at-least-once: the median of "
        f"{pairs} interleaved pairs, between {found.low:.3f} and {found.high:.3f} "
        f"({found.coverage:.1%} interval, from order statistics). Wanted: at least {1 - MOST_COST:.2f}; "
        f"{verdict}."
    )


def _settled(found: MedianInterval) -> str:
    """The verdict of the whole interval, not only of its median."""
    if found.coverage < WANTED_COVERAGE:
        return "too few pairs to say"
    if found.low >= 1 - MOST_COST:
        return "reached"
    return "missed" if found.high < 1 - MOST_COST else "the interval does not settle it"


def _memory(results: Results) -> str:
    small, large = "jsonl-eos-1-small", "jsonl-eos-1"
    if small not in results or large not in results:
        return ""
    few, many = (results.runs[key][0].records for key in (small, large))
    before, after = (results.usual_slot_rss_bytes(key) / MIB for key in (small, large))
    fits = after < MOST_SLOT_MIB and after < MOST_GROWTH * before
    verdict = "reached" if fits else "missed"
    return (
        "## A slot's memory and the file's size\n\n"
        f"A slot's process had at most {before:.0f} MiB with a file of {few:,} records and "
        f"{after:.0f} MiB with one of {many:,}. Wanted: "
        f"less than {MOST_GROWTH - 1:.0%} more, and under {MOST_SLOT_MIB} MiB; {verdict}."
    )
