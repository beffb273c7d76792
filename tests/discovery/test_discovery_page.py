"""The page of partition discovery: a row for each case, with tests that are there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ROWS = dict(
    re.findall(
        r"^\| E(\d\d) \|.*\| ([^|]*) \|$", (ROOT / "docs/discovery.md").read_text(), re.MULTILINE
    )
)
TESTS = {
    name
    for path in (ROOT / "tests").rglob("test_*.py")
    for name in re.findall(r"^def (test_e\d\d_\w+)\(", path.read_text(), re.MULTILINE)
}


def test_every_case_has_its_row():
    """In order."""
    assert [f"{number:02}" for number in range(1, 68)] == list(ROWS)


@pytest.mark.parametrize("number", ROWS)
def test_the_tests_of_a_case_are_there(number: str):
    """Their names have its number."""
    named = re.findall(r"`(test_\w+)`", ROWS[number])

    assert [] == [each for each in named if each not in TESTS or f"e{number}_" not in each]
    assert named
