"""Whether a process that was started earlier is still that one: pids are given out again."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

# Often enough that nobody notices, rarely enough that it costs nothing.
LOOK_SECONDS = 0.05


def identity_of(pid: int) -> str | None:
    """Something that differs between two processes that had the same pid; None when it is dead.

    A zombie, dead but not yet waited for, counts as dead.
    """
    stat = Path(f"/proc/{pid}/stat")
    if not Path("/proc/self/stat").exists():
        return _identity_by_ps(pid)
    try:
        # The second field is the program's name in brackets and may hold anything.
        fields = stat.read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] in "ZX" else fields[19]


def _identity_by_ps(pid: int) -> str | None:
    command = ["ps", "-o", "stat=,lstart=", "-p", str(pid)]
    told = subprocess.run(command, capture_output=True, text=True, check=False).stdout.split()
    return None if not told or told[0].startswith("Z") else " ".join(told[1:])


def send(signal_number: signal.Signals, *, pid: int, identity: str) -> bool:
    """Send a signal to exactly that process; False when it is gone."""
    if identity_of(pid) != identity:
        return False
    try:
        os.kill(pid, signal_number)
    except ProcessLookupError:
        return False
    return True


def until(condition: Callable[[], bool], *, seconds: float) -> bool:
    """Wait until *condition* is true, at most *seconds*; tells whether it became true."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(LOOK_SECONDS)
    return True
