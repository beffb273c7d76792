"""`headrace run` when it is told to stop: what was read is committed, and a second run goes on."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from end_to_end.scene import Scene
from headrace.testing.judge import committed_count
from headrace.testing.thread_engine import ThreadEngine
from headrace.testing.waiting import until

pytestmark = [pytest.mark.broker, pytest.mark.spark]


@pytest.mark.timeout(180)
@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)], ids=["term", "int"]
)
def test_a_signal_stops_the_worker_with_everything_committed(
    bootstrap: str, tmp_path: Path, number: signal.Signals, code: int
) -> None:
    """Sent to the whole group, as a terminal does; the exit code says which one it was."""
    scene = Scene(bootstrap, tmp_path, f"signal-{number.name}-{os.getpid()}".lower())
    scene.connector |= {
        "headrace.max.records.per.second": "4000",
        "transaction.boundary.interval.ms": "1000",
    }
    expected = scene.write(records=20_000)
    command = [sys.executable, "-m", "headrace", "run", *scene.write_configs()]
    first = subprocess.Popen(
        command, stderr=subprocess.PIPE, start_new_session=True, cwd=tmp_path, text=True
    )
    until(lambda: committed_count(bootstrap, scene.topic), seconds=90)
    # Ctrl-C reaches every process of a terminal; SIGTERM only the one that it is sent to.
    if number is signal.SIGINT:
        os.killpg(first.pid, number)
    else:
        first.send_signal(number)
    _, told = first.communicate(timeout=60)

    assert code == first.returncode, told
    assert "Traceback" not in told, told
    assert "planned again" not in told, told
    part = scene.verdict(expected)
    assert 0 < part.found < part.expected
    assert (0, 0) == (part.twice, part.foreign)
    scene.connector["headrace.max.records.per.second"] = "1000000"
    assert {} == scene.run_once(ThreadEngine())
    verdict = scene.verdict(expected)
    assert verdict.exactly_once, verdict
