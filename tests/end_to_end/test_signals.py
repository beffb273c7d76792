"""`headrace run` when it is told to stop: what was read is committed, and a second run goes on."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from doubles.thread_engine import ThreadEngine
from end_to_end.scene import Scene
from headrace.testing.judge import committed_ends
from waiting import until

pytestmark = [pytest.mark.broker, pytest.mark.spark]


@pytest.mark.slow
@pytest.mark.timeout(360)
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
        # What a poll has returned is sent to its end.
        "files.batch.max.rows": "2000",
        "transaction.boundary.interval.ms": "1000",
    }
    expected = scene.write(records=20_000)
    command = [sys.executable, "-m", "headrace", "run", *scene.write_configs()]
    first = subprocess.Popen(
        command, stderr=subprocess.PIPE, start_new_session=True, cwd=tmp_path, text=True
    )
    try:
        with committed_ends(bootstrap) as end:
            until(lambda: end(scene.topic), seconds=180)
        # Ctrl-C reaches every process of a terminal; SIGTERM only the one that it is sent to.
        if number is signal.SIGINT:
            os.killpg(first.pid, number)
        else:
            first.send_signal(number)
        _, told = first.communicate(timeout=60)
    finally:
        first.kill()

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


@pytest.mark.timeout(120)
def test_a_signal_ends_the_worker_while_spark_is_being_opened(
    bootstrap: str, tmp_path: Path
) -> None:
    """A Spark Connect server that takes connections and says nothing is asked for many minutes."""
    scene = Scene(bootstrap, tmp_path, f"signal-opening-{os.getpid()}")
    scene.worker["task.shutdown.graceful.timeout.ms"] = "500"
    scene.write(records=10)
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        silent.settimeout(60)
        scene.worker["spark.remote"] = f"sc://127.0.0.1:{silent.getsockname()[1]}"
        command = [sys.executable, "-m", "headrace", "run", *scene.write_configs()]
        worker = subprocess.Popen(command, stderr=subprocess.PIPE, cwd=tmp_path, text=True)
        connection, _ = silent.accept()
        worker.send_signal(signal.SIGTERM)
        try:
            _, told = worker.communicate(timeout=40)
        finally:
            connection.close()
            worker.kill()

    assert 143 == worker.returncode, told
    assert "Traceback" not in told, told
