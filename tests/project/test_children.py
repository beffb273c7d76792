"""Programs that `./check` starts end with it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from headrace.pids import identity_of
from waiting import until

BIN = Path(__file__).parents[2] / "bin"

# Stands for ./check; the child stands for the tests, and its own child for a service they started.
PROGRAM = """
import sys
from pathlib import Path

sys.path.insert(0, sys.argv[1])
from children import catch_signals, run

catch_signals()
run([sys.executable, "-c", sys.argv[2]], cwd=Path.cwd())
"""
CHILD = """
import os, signal, subprocess, sys, time

signal.signal(signal.SIGINT, signal.default_int_handler)
service = subprocess.Popen(["sleep", "100"])
try:
    print(os.getpid(), service.pid, flush=True)
    time.sleep(100)
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""


@pytest.mark.parametrize(
    ("number", "code"),
    [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)],
    ids=["int", "term", "hup"],
)
def test_an_interrupted_check_leaves_no_process(
    tmp_path: Path, number: signal.Signals, code: int
) -> None:
    """Its child is interrupted as by Ctrl-C, all of the child's group is gone, the code is a shell's."""
    check = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(BIN), CHILD],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=tmp_path,
        text=True,
    )
    child = service = 0
    try:
        assert check.stdout
        child, service = map(int, check.stdout.readline().split())
        check.send_signal(number)
        said, told = check.communicate(timeout=30)
        assert (code, "interrupted\n", "") == (check.returncode, said, told)
        until(lambda: identity_of(child) is None and identity_of(service) is None, seconds=10)
    finally:
        check.kill()
        for pid in filter(None, (child, service)):
            if identity_of(pid) is not None:
                os.kill(pid, signal.SIGKILL)
