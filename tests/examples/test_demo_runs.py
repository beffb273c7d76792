"""The demonstration as a person runs it, in a clone of its own with a space in its path."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from leaving import descendants
from settings import ROOT

import headrace
from headrace.broker import Broker
from headrace.pids import identity_of

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.kill]


@pytest.fixture
def demonstration(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """It runs; what it says is to be read."""
    clone = tmp_path / "a clone"
    shutil.copytree(ROOT / "examples", clone / "examples")
    (clone / ".venv").symlink_to(sys.prefix)
    source = Path(headrace.__file__).parents[1]
    with subprocess.Popen(
        [sys.executable, str(clone / "examples" / "demo")],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "PYTHONPATH": str(source)},
        start_new_session=True,
    ) as child:
        yield child
        child.kill()


@pytest.mark.slow
@pytest.mark.timeout(360)
def test_to_its_end(demonstration: subprocess.Popen[str], tmp_path: Path):
    """It kills a task, finds every record once, and ends well; the commands that it prints do what it says."""
    said, _ = demonstration.communicate(timeout=240)

    assert 0 == demonstration.returncode, said
    assert "kill -9, on purpose." in said
    assert "all                             64,969      64,969       0       0" in said
    assert [] == [line for line in said.splitlines() if len(line) > 80]
    typed = re.findall(r"^    (?! )(.+)$", said.partition("Where to look next:")[2], re.MULTILINE)
    assert 4 == len(typed), said
    clone = tmp_path / "a clone"
    try:
        shown = subprocess.run(
            ["bash", "-e", "-c", "\n".join(typed)],
            cwd=clone,
            env={**os.environ, "PATH": "/usr/bin:/bin"},
            capture_output=True,
            text=True,
            timeout=100,
        )
    finally:
        Broker(clone / ".cache" / "demo" / "broker").stop()
    assert 0 == shown.returncode, shown.stderr
    assert 3 == sum('"tailnum"' in line for line in shown.stdout.splitlines())


@pytest.mark.slow
def test_interrupted(demonstration: subprocess.Popen[str]):
    """After Ctrl-C in the middle nothing is left behind, and the exit code says that it was one."""
    assert demonstration.stdout is not None
    for line in demonstration.stdout:
        if line.startswith("Sending"):
            break
    started = [(pid, identity_of(pid)) for pid in descendants(demonstration.pid)]

    os.killpg(demonstration.pid, signal.SIGINT)
    said, _ = demonstration.communicate(timeout=60)

    assert 130 == demonstration.returncode, said
    assert started
    # What was dead by then has no identity.
    assert [] == [pid for pid, identity in started if identity and identity == identity_of(pid)]
