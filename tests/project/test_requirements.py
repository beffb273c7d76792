"""The pinned requirement files."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

REQUIREMENTS = Path(__file__).parents[2] / "requirements"


def pins_in(name: str) -> set[str]:
    """``package==version`` of each pin in one of the files."""
    text = (REQUIREMENTS / f"{name}.txt").read_text()
    return set(re.findall(r"^([\w.\[\]-]+==[\w.]+)", text, re.MULTILINE))


def test_the_demo_has_the_pins_of_the_tests():
    """What the demo runs on is what the tests ran on."""
    assert pins_in("run") <= pins_in("check")


@pytest.mark.parametrize("name", ["build", "run", "check"])
def test_hashes_only(name: str):
    """Every pin has hashes, and no index is named: that is the user's own setting."""
    text = (REQUIREMENTS / f"{name}.txt").read_text()
    pins = re.split(r"\n(?=[a-z])", text)

    assert [] == [pin for pin in pins if "==" in pin and "--hash=sha256:" not in pin]
    assert "://" not in text
