"""SIGKILL to the broker at random moments, then started again: nothing lost, nothing twice."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from end_to_end.scene import Scene, is_claim, pause
from headrace.broker import Broker
from headrace.observe.events import Event, MicroBatchEnded, Waiting
from headrace.testing.process_engine import ProcessEngine

pytestmark = [pytest.mark.broker, pytest.mark.kill]


def waits_or_ends(event: Event) -> bool:
    """Whether a slot waits for the broker, or all have ended without it."""
    return isinstance(event, Waiting | MicroBatchEnded)


@pytest.mark.timeout(180)
@pytest.mark.parametrize("seed", range(4))
def test_a_killed_broker_loses_nothing_and_doubles_nothing(
    broker: Broker, tmp_path: Path, processes: ProcessEngine, seed: int
) -> None:
    """The connector waits for it and goes on by itself."""
    chance = random.Random(seed)
    scene = Scene(broker.bootstrap, tmp_path, f"broker-kill-{seed}-{os.getpid()}")
    expected = scene.write()

    with scene.running(processes) as wait:
        scene.witness.wait_for(is_claim)
        pause(chance)
        heard = len(scene.witness.events)
        broker.kill()
        told = scene.witness.wait_for(waits_or_ends, since=heard)
        pause(chance)
        broker.start()
        failures = wait()

    assert isinstance(told, Waiting), "the work was over before the kill"
    assert {} == failures
    verdict = scene.verdict(expected)
    assert verdict.exactly_once, verdict
