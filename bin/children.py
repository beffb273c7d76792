"""Runs programs that never outlive the one who started them, whichever signal ends it."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path
from types import FrameType
from typing import IO, NoReturn

# What a test run needs to stop the services it started.
ENDING_SECONDS = 40.0


def catch_signals() -> None:
    """Turn what ends this program into an exception, so that `run` can end its child first."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _leave)


def run(command: Sequence[str], *, cwd: Path, output: IO[str] | int | None = None) -> int:
    """The exit code of *command*, which has a process group of its own.

    When this program is asked to end meanwhile, the command is interrupted as by Ctrl-C, and after a
    while killed with all its group.
    """
    child = subprocess.Popen(
        command, cwd=cwd, stdout=output, stderr=subprocess.STDOUT, start_new_session=True
    )
    try:
        return child.wait()
    except BaseException:
        _end(child)
        raise


def _end(child: subprocess.Popen[bytes]) -> None:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    child.send_signal(signal.SIGINT)
    try:
        child.wait(timeout=ENDING_SECONDS)
    except subprocess.TimeoutExpired:
        print("It does not end by itself, so it is killed.")
    finally:
        _kill_group(child.pid)
        child.wait()


def _kill_group(group: int) -> None:
    try:
        os.killpg(group, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        return


def _leave(number: int, _frame: FrameType | None) -> NoReturn:
    raise SystemExit(128 + number)
