"""SIGKILL to a slot's Python process at random moments: nothing lost, nothing twice."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from end_to_end.scene import Scene
from headrace.testing.process_engine import ProcessEngine

pytestmark = [pytest.mark.broker, pytest.mark.kill]


@pytest.mark.parametrize("seed", range(8))
def test_a_killed_slot_loses_nothing_and_doubles_nothing(
    bootstrap: str, tmp_path: Path, processes: ProcessEngine, seed: int
) -> None:
    """The slot dies at a random moment; its work is planned again from what was committed."""
    chance = random.Random(seed)
    scene = Scene(bootstrap, tmp_path, f"slot-kill-{seed}-{os.getpid()}")

    failures, verdict = scene.killed_slot_round(processes, chance)

    assert {} == failures
    assert scene.witness.replanned()
    assert verdict.exactly_once, verdict
