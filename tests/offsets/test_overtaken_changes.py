"""Changes of offsets that were interrupted, and overtaken by another worker before they were settled."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from headrace.connect.errors import ConnectorFencedError
from headrace.herder.errors import ServerError
from offsets.changing import STORED, A, B, KilledError, Stage, change, memory_stage
from runtime.coordinators import MemoryCoordinator

MOVED = {A: {"position": 1000}, B: {"position": 1000}}


@pytest.fixture
def stage() -> Stage:
    """A connector with offsets of two files."""
    made = memory_stage()
    made.put({A: {"position": 1}, B: {"position": 5}})
    made.configs.put_connector(STORED)
    return made


@pytest.mark.parametrize("at", ["after begin", "before finish"])
def test_a_killed_change_does_not_set_back_what_another_worker_has_done_since(
    stage: Stage, at: str
) -> None:
    """All that it delivered would be sent again."""
    stage.faults.at = at
    with pytest.raises(KilledError):
        stage.changes().alter(stage.spec, [change(A, {"position": 2})], who=None)
    stage.put(MOVED)
    stage.restarted()

    assert MOVED == stage.known()


def test_a_change_that_lost_the_guard_is_not_taken_back_later(stage: Stage) -> None:
    """Its connector is restarted here a day after another worker has run it."""
    coordinator = MemoryCoordinator()
    stage.coordinator = coordinator

    def taken_meanwhile(_: Mapping[str, str], __: object) -> bool:
        coordinator.take("g-c-driver", deadline=None)  # type: ignore[arg-type]
        return True

    stage.connector.alter_offsets = taken_meanwhile  # type: ignore[method-assign]
    with pytest.raises(ServerError, match="has taken over connector c") as caught:
        stage.changes().alter(stage.spec, [change(A, {"position": 2})], who=None)
    stage.put(MOVED)
    stage.changes().settle(stage.spec)

    assert isinstance(caught.value.__cause__, ConnectorFencedError)
    assert MOVED == stage.known()
