"""Warnings that are told once."""

from __future__ import annotations

import logging

import pytest

from headrace.sources.told_once import ToldOnce


def told(caplog: pytest.LogCaptureFixture) -> list[str]:
    """What was logged since the last call."""
    found = caplog.messages[:]
    caplog.clear()
    return found


def test_a_sentence_is_told_once_and_another_one_as_well(caplog: pytest.LogCaptureFixture):
    """And nothing where there is nothing to tell."""
    once = ToldOnce(logging.getLogger("x"))

    for sentence in ("one", "one", None, "two", "one"):
        once.tell("a", sentence)

    assert ["a: one", "a: two", "a: one"] == told(caplog)


def test_what_was_told_last_is_remembered_and_no_more(caplog: pytest.LogCaptureFixture):
    """Names come and go for as long as a connector runs; what is told at each look stays."""
    once = ToldOnce(logging.getLogger("x"), most=3)

    for number in range(50):
        once.tell("always", "It is so.")
        once.tell(str(number), "It was so.")

    assert 1 == sum(each.startswith("always") for each in told(caplog))
    assert 3 == len(once._told)
