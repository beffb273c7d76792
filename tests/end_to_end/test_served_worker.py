"""A worker that answers requests: killed and started again with the same command, and asked over HTTP."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from end_to_end.scene import Scene
from headrace.testing.judge import committed_ends
from waiting import until

pytestmark = [pytest.mark.broker, pytest.mark.spark]


@contextmanager
def _worker(command: Sequence[str], log: Path) -> Iterator[subprocess.Popen[bytes]]:
    with log.open("w") as stream:
        process = subprocess.Popen(command, stderr=stream, start_new_session=True, cwd=log.parent)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def _url(log: Path) -> str:
    found = re.compile(r"Requests are answered at (http://\S+)/ ")
    until(lambda: found.search(log.read_text()), seconds=60)
    match = found.search(log.read_text())
    assert match is not None
    return match[1]


def _ask_for_offsets(connector: str, topic: str) -> None:
    """Stop the connector, look at its offsets, and reset them."""
    assert {"topics": [topic]} == httpx.get(f"{connector}/topics").json()[topic]
    assert 204 == httpx.put(f"{connector}/stop").status_code
    assert 2 == len(httpx.get(f"{connector}/offsets").json()["offsets"])
    reset = httpx.delete(f"{connector}/offsets", timeout=60)
    assert 200 == reset.status_code, reset.text
    assert [] == httpx.get(f"{connector}/offsets").json()["offsets"]


@pytest.mark.slow
@pytest.mark.timeout(420)
def test_the_same_command_after_a_kill_sends_each_record_once(
    bootstrap: str, tmp_path: Path
) -> None:
    """The connector is stored by then; stopped over HTTP, its offsets are there, and can be reset."""
    scene = Scene(bootstrap, tmp_path, f"served-{os.getpid()}")
    scene.connector["headrace.max.records.per.second"] = "4000"
    expected = scene.write(records=20_000)
    command = [sys.executable, "-m", "headrace", "run", *scene.write_configs()]
    log = tmp_path / "log"
    with _worker(command, log) as first, committed_ends(bootstrap) as end:
        until(lambda: end(scene.topic), seconds=180)
        os.killpg(first.pid, signal.SIGKILL)
    scene.connector["headrace.max.records.per.second"] = "1000000"
    scene.write_configs()
    with _worker(command, log) as second:
        until(lambda: scene.verdict(expected).exactly_once, seconds=120)
        _ask_for_offsets(f"{_url(log)}/connectors/{scene.topic}", scene.topic)
        second.terminate()
        assert 143 == second.wait(60)
    assert "Traceback" not in log.read_text()
    verdict = scene.verdict(expected)
    assert verdict.exactly_once, verdict
