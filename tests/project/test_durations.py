"""Tests that take long are marked, and none takes too long."""

from __future__ import annotations

from pathlib import Path

import pytest

from project import durations

TESTS = Path(__file__).parents[1]
CONFTEST = """
from project import durations

def pytest_configure(config):
    config.addinivalue_line("markers", "slow: x")
    config.pluginmanager.register(durations.Durations({limit}, slow_seconds=0.2))
"""
LONG = """
import pytest, time

@pytest.fixture
def service():
    time.sleep(0.3)

def test_quick(service):
    pass

def test_long():
    time.sleep(0.3)

@pytest.mark.slow
def test_marked():
    time.sleep(0.3)
"""


@pytest.fixture
def said(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> str:
    """What pytest says with that limit."""
    monkeypatch.syspath_prepend(str(TESTS))
    monkeypatch.setattr(durations, "crowding", lambda: 1.0)
    pytester.makeconftest(CONFTEST.format(limit=request.param))
    pytester.makepyfile(test_them=LONG)
    return pytester.runpytest_inprocess("-p", "no:randomly").stdout.str()


@pytest.mark.parametrize("said", [None], indirect=True)
def test_a_long_test_that_is_not_marked_is_listed(said: str) -> None:
    """And no other: what a fixture takes is not the test's."""
    _, _, listed = said.partition("not marked slow")
    assert "s test_them.py::test_long\n" in listed
    assert "test_marked" not in listed
    assert "test_quick" not in listed


@pytest.mark.parametrize("said", [0.2], indirect=True)
def test_a_test_above_the_limit_fails_though_it_passed(said: str) -> None:
    """Marked or not."""
    assert "2 failed, 1 passed" in said
    assert "It passed, but took" in said
