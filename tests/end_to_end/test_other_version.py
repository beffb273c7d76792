"""Slots whose Python has another version of headrace than the worker, as while a cluster's machines are upgraded."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

import headrace
from end_to_end.scene import Scene
from headrace import __version__
from waiting import until

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(400)]
OTHER = "0.0.1"


def other_environment(folder: Path, lacks: str | None) -> Path:
    """A Python that finds another version of headrace, which *lacks* a module, as long as *folder* has one."""
    own = Path(headrace.__file__).parent
    shutil.copytree(own, folder / "headrace", ignore=shutil.ignore_patterns("__pycache__"))
    module = folder / "headrace" / "__init__.py"
    module.write_text(module.read_text().replace(f'"{__version__}"', f'"{OTHER}"'))
    if lacks:
        (folder / "headrace" / lacks).unlink()
    python = folder / "python"
    # Found beside it, so that the folder may be moved.
    python.write_text(
        f'#!/bin/sh\nPYTHONPATH=$(cd "$(dirname "$0")" && pwd):$PYTHONPATH exec {sys.executable} "$@"\n'
    )
    python.chmod(0o755)
    return python


@contextmanager
def worker(scene: Scene, log: Path) -> Generator[httpx.Client]:
    """`headrace run` as a process that ends as it should; who asks it."""
    found = re.compile(r"Requests are answered at (http://\S+)/ ")
    command = [sys.executable, "-m", "headrace", "run", *scene.write_configs()]
    with log.open("wb") as output:
        process = subprocess.Popen(command, stderr=output, cwd=scene.folder)
    try:
        until(lambda: found.search(log.read_text()))
        url = found.search(log.read_text())
        assert url is not None
        with httpx.Client(base_url=url[1], timeout=60) as http:
            yield http
    finally:
        process.terminate()
        ended = process.wait(60)
    assert 143 == ended


@pytest.mark.parametrize("lacks", [None, "task/worker_task.py"])
def test_a_connector_waits_for_executors_with_the_right_version(
    bootstrap: str, tmp_path: Path, lacks: str | None
) -> None:
    """The worker says what is wrong and is unhealthy, nothing fails, and once they have it each record comes once.

    Also if the other version has other modules, so that nothing of a slot runs there.
    """
    scene = Scene(bootstrap, tmp_path, f"other-version-{os.getpid()}-{lacks is None}")
    scene.worker = {
        "spark.pyspark.python": str(other_environment(tmp_path / "other", lacks)),
        # Each slot is a process of its own, so that the next one finds what has been installed meanwhile.
        "spark.python.use.daemon": "false",
        "spark.python.worker.reuse": "false",
    }
    expected = scene.write(records=2_000)
    log, sentence = tmp_path / "log", f"have headrace {OTHER}, but this worker has {__version__}"
    with worker(scene, log) as http:

        def status() -> Any:  # noqa: ANN401 (what REST answers)
            return http.get(f"/connectors/{scene.topic}/status").json()

        until(lambda: 500 == http.get("/health").status_code, seconds=180)
        health = http.get("/health").json()
        until(lambda: status()["tasks"][0].get("trace"))
        waiting = status()
        until(lambda: sentence in log.read_text())
        shutil.rmtree(tmp_path / "other" / "headrace")
        until(lambda: scene.verdict(expected).exactly_once, seconds=120)
        until(lambda: 200 == http.get("/health").status_code)
        until(lambda: "RUNNING" == status()["tasks"][0]["state"])

    assert "unhealthy" == health["status"]
    assert sentence in health["message"]
    assert "RUNNING" == waiting["connector"]["state"]
    assert "UNASSIGNED" == waiting["tasks"][0]["state"]
    assert sentence in waiting["tasks"][0]["trace"]
    assert "has failed" not in log.read_text()
