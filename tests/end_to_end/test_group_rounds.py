"""One group of three workers lives through round after round of disturbances, drawn from all of them, with 20 connectors at work."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from end_to_end.group_rounds import Rounds, rounds_of

pytestmark = [
    pytest.mark.broker,
    pytest.mark.kill,
    pytest.mark.slow,
    pytest.mark.timeout(600),
]
ROUNDS = range(int(os.environ.get("HEADRACE_GROUP_ROUNDS", "40")))


@pytest.fixture(scope="module")
def rounds(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rounds]:
    """A group that is the same for all rounds, as the one before has left it."""
    with rounds_of(tmp_path_factory.mktemp("rounds"), names=20) as begun:
        yield begun


@pytest.mark.sampled(2)
@pytest.mark.parametrize("number", ROUNDS)
def test_all_records_are_there_once_and_connectors_are_as_asked_for(
    rounds: Rounds, number: int
) -> None:
    """All that were ever written, after each round; a connector is where the last request that was answered put it."""
    rounds.play(number)
