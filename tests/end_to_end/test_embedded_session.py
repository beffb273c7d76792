"""``headrace.run`` on a real session of the program's own."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import headrace
from end_to_end.scene import Scene
from headrace.spark.engine import SparkEngine

pytestmark = [pytest.mark.broker, pytest.mark.spark]


def test_it_sends_everything_on_a_session_given_to_it_and_leaves_that_open(
    bootstrap: str, tmp_path: Path, spark_engine: SparkEngine
) -> None:
    """Also a second time, when it reads what is new only; and the program goes on with its session."""
    session = spark_engine.session()
    scene = Scene(bootstrap, tmp_path, f"embedded-{os.getpid()}")
    state_file = tmp_path / "state.db"
    first = scene.write(records=3_000)

    headrace.run(
        scene.worker_props(), [scene.connector_props()], state_file=state_file, spark=session
    )

    verdict = scene.verdict(first)
    assert verdict.exactly_once, verdict
    assert 10 == session.range(10).count()

    new = [b'{"new":%d}' % number for number in range(1_000)]
    (scene.files / "part-new.jsonl").write_bytes(b"\n".join(new) + b"\n")
    headrace.run(
        scene.worker_props(), [scene.connector_props()], state_file=state_file, spark=session
    )

    verdict = scene.verdict([*first, *new])
    assert verdict.exactly_once, verdict
    assert session is spark_engine.session()
    assert 10 == session.range(10).count()
