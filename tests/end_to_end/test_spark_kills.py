"""SIGKILL to Spark's Python processes and to its JVM at random moments: nothing lost, nothing twice."""

from __future__ import annotations

import os
import random
import signal
from pathlib import Path

import pytest
from pyspark import SparkContext

from end_to_end.scene import Scene, is_claim, pause
from headrace.spark.engine import SparkEngine

pytestmark = [pytest.mark.broker, pytest.mark.kill, pytest.mark.spark]


def jvm_pid() -> int:
    """The process of the session's JVM."""
    gateway = SparkContext._gateway
    assert gateway is not None
    return gateway.proc.pid


@pytest.mark.parametrize("seed", range(8))
def test_a_killed_python_process_of_spark_loses_nothing_and_doubles_nothing(
    bootstrap: str, tmp_path: Path, spark_engine: SparkEngine, seed: int
) -> None:
    """The job fails, the other slot is told to go, and the rest is planned again."""
    chance = random.Random(seed)
    scene = Scene(bootstrap, tmp_path, f"spark-slot-{seed}-{os.getpid()}")

    failures, verdict = scene.killed_slot_round(spark_engine, chance)

    assert {} == failures
    assert scene.witness.replanned()
    assert verdict.exactly_once, verdict


@pytest.mark.timeout(240)
@pytest.mark.parametrize("seed", range(2))
def test_a_killed_jvm_loses_nothing_and_doubles_nothing(
    bootstrap: str, tmp_path: Path, spark_engine: SparkEngine, seed: int
) -> None:
    """The engine opens another session, and the work goes on from what was committed."""
    chance = random.Random(seed)
    scene = Scene(bootstrap, tmp_path, f"spark-jvm-{seed}-{os.getpid()}")
    expected = scene.write()

    with scene.running(spark_engine) as wait:
        scene.witness.wait_for(is_claim)
        pause(chance)
        killed = jvm_pid()
        os.kill(killed, signal.SIGKILL)
        failures = wait()

    assert {} == failures
    assert killed != jvm_pid()
    assert scene.witness.replanned()
    verdict = scene.verdict(expected)
    assert verdict.exactly_once, verdict
