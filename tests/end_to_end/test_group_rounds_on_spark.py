"""As :mod:`end_to_end.test_group_rounds`, with slots in processes of Spark."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from end_to_end.group_rounds import Rounds, rounds_of

pytestmark = [
    pytest.mark.broker,
    pytest.mark.kill,
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.timeout(600),
]


@pytest.fixture(scope="module")
def rounds(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rounds]:
    """Three workers, each with a Spark of its own, and few connectors."""
    folder = tmp_path_factory.mktemp("rounds-on-spark")
    with rounds_of(folder, names=4, on_spark=True) as begun:
        yield begun


@pytest.mark.sampled(1)
@pytest.mark.parametrize("number", range(8))
def test_all_records_are_there_once_and_connectors_are_as_asked_for(
    rounds: Rounds, number: int
) -> None:
    """Whatever happens to drivers, their JVMs and their tasks."""
    rounds.play(number)
