"""The report's sections of single figures. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from benchmarks.figure import Figure
from benchmarks.report import markdown_table


def figure_section(title: str, figures: Mapping[str, Sequence[Figure]]) -> str:
    """A section for *figures*, by the cases' keys; empty without any."""
    rows = [_row(each) for found in figures.values() for each in found]
    if not rows:
        return ""
    return f"\n\n## {title}\n\n{markdown_table(('', 'measured', 'wanted', ''), rows)}"


def _row(figure: Figure) -> Sequence[str]:
    wanted = "" if figure.most is None else f"≤ {_told(figure.most, figure.unit)}"
    return figure.title, _told(figure.value, figure.unit), wanted, figure.verdict


def _told(value: float, unit: str) -> str:
    if not unit:
        return f"{value:,.0f}"
    # Two digits are as many as such a run gives again.
    return f"{value:,.0f} {unit}" if value >= 100 else f"{value:.2f} {unit}"
