"""Runs programs that never outlive the one who started them, whichever signal ends it."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
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
    """The exit code of *command*, which ends with this program."""
    with ending_together() as children:
        children.append(start(command, cwd=cwd, output=output))
        return children[0].wait()


def start(
    command: Sequence[str],
    *,
    cwd: Path,
    output: IO[str] | int | None = None,
    env: Mapping[str, str] | None = None,
    nice: int = 0,
) -> subprocess.Popen[bytes]:
    """Start *command* in a process group of its own; whoever starts it has to end it."""
    child = subprocess.Popen(
        command,
        cwd=cwd,
        stdout=output,
        stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL if output is not None else None,
        start_new_session=True,
        env={**os.environ, **(env or {})},
    )
    if nice:
        os.setpriority(os.PRIO_PROCESS, child.pid, nice)
    return child


@contextmanager
def ending_together() -> Generator[list[subprocess.Popen[bytes]]]:
    """A list for children. When this program gets a signal to end meanwhile, all of them end.

    They are interrupted as by Ctrl-C, and after a while killed with all their groups.
    """
    children: list[subprocess.Popen[bytes]] = []
    try:
        yield children
    except BaseException:
        _end(children)
        raise


def _end(children: Iterable[subprocess.Popen[bytes]]) -> None:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    living = [each for each in children if each.poll() is None]
    for each in living:
        each.send_signal(signal.SIGINT)
    deadline = time.monotonic() + ENDING_SECONDS
    for each in living:
        try:
            each.wait(timeout=max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            print("It does not end by itself, so it is killed.")
        finally:
            _kill_group(each.pid)
            each.wait()


def _kill_group(group: int) -> None:
    try:
        os.killpg(group, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        return


def _leave(number: int, _frame: FrameType | None) -> NoReturn:
    raise SystemExit(128 + number)
