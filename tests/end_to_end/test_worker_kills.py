"""SIGKILL to the whole worker at random moments, then the same command again."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from end_to_end.scene import Scene, pause
from headrace.testing.judge import committed_count
from headrace.testing.waiting import until

pytestmark = [pytest.mark.broker, pytest.mark.kill, pytest.mark.spark]


def command(scene: Scene) -> list[str]:
    """What a person types."""
    return [sys.executable, "-m", "headrace", "run", "--once", *scene.write_configs()]


def has_records(scene: Scene) -> bool:
    """Whether something was committed."""
    return bool(committed_count(scene.bootstrap, scene.topic))


@pytest.mark.timeout(420)
@pytest.mark.parametrize("seed", range(4))
def test_a_killed_worker_loses_nothing_and_doubles_nothing(
    bootstrap: str, tmp_path: Path, seed: int
) -> None:
    """Its slots, orphans now, may go on for a while; the second worker fences them."""
    chance = random.Random(seed)
    scene = Scene(bootstrap, tmp_path, f"worker-kill-{seed}-{os.getpid()}")
    scene.connector["headrace.max.records.per.second"] = "4000"
    expected = scene.write()
    with subprocess.Popen(command(scene), stderr=subprocess.DEVNULL) as first:
        try:
            until(lambda: has_records(scene), seconds=180)
            pause(chance, seconds=4.0)
        finally:
            first.kill()
    committed = committed_count(bootstrap, scene.topic)

    again = subprocess.run(command(scene), check=False, capture_output=True)

    assert -signal.SIGKILL == first.returncode
    assert committed < len(expected), "the work was over before the kill"
    assert 0 == again.returncode, again.stderr.decode()
    verdict = scene.verdict(expected)
    assert verdict.exactly_once, verdict
