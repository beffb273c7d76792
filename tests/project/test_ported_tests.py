"""The page of Kafka Connect's own tests: each row says where its cases are here, or why they are not."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
_, *SECTIONS = re.split(r"^## ", (ROOT / "docs/ported-tests.md").read_text(), flags=re.MULTILINE)
ROWS = {
    f"{section.splitlines()[0]}: {case}": here
    for section in SECTIONS
    for case, here in re.findall(r"^\| (?!case \|)([^|]+) \| ([^|]+) \|$", section, re.MULTILINE)
}
TESTS = {
    name
    for folder in ("tests", "src/headrace/testing")
    for path in (ROOT / folder).rglob("*.py")
    for name in re.findall(r"^ *def (test_\w+)\(", path.read_text(), re.MULTILINE)
}


@pytest.mark.parametrize("case", ROWS)
def test_the_tests_of_a_case_are_there(case: str) -> None:
    """Or it was left out, with a reason."""
    named = re.findall(r"`(test_\w+)`", ROWS[case])

    assert [] == [each for each in named if each not in TESTS]
    assert named or re.match("left out: .", ROWS[case])
