"""Slots on Spark that reach their worker over TLS."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from end_to_end.scene import Scene
from headrace.runtime.engine import Engine

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.kill, pytest.mark.timeout(300)]


@pytest.mark.slow
def test_over_an_encrypted_channel_a_killed_slot_loses_nothing_and_doubles_nothing(
    bootstrap: str, tmp_path: Path, spark_engine: Engine
) -> None:
    """Tokens, heartbeats and reports are the same; on this machine it is encrypted only by a setting."""
    scene = Scene(bootstrap, tmp_path, f"encrypted-{os.getpid()}")
    scene.worker = {"headrace.channel.security.protocol": "SSL"}

    failures, verdict = scene.killed_slot_round(spark_engine, random.Random(1))

    assert {} == failures
    assert scene.witness.replanned()
    assert verdict.exactly_once, verdict
