"""The report of single figures."""

from __future__ import annotations

import pytest
from benchmarks.figure import Figure
from benchmarks.figure_report import figure_section


@pytest.mark.parametrize(
    ("value", "unit", "most", "shown"),
    [
        (0.25, "s", 0.5, "| a |  0.25 s | ≤ 0.50 s | reached |"),
        (0.75, "s", 0.5, "| a |  0.75 s | ≤ 0.50 s |  missed |"),
        (1234.5, "s", None, "| a | 1,234 s |        |     |"),
        (2, "", 0, "| a | 2 | ≤ 0 | missed |"),
    ],
)
def test_a_figure_is_judged_by_its_goal(value: float, unit: str, most: float | None, shown: str):
    """Where there is one."""
    section = figure_section("T", {"k": [Figure(title="a", value=value, unit=unit, most=most)]})
    cells = [[cell.strip() for cell in line.split("|")] for line in section.splitlines()]
    assert [cell.strip() for cell in shown.split("|")] in cells


def test_there_is_no_section_without_figures():
    """A run of other rows does not mention it."""
    assert not figure_section("T", {})
