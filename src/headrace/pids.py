"""Processes by their pid: what the system reports of one, and whether it is still the same process.

Pids are reused, so a process is identified by its pid and its start. Standard library only.
"""

from __future__ import annotations

import os
import signal
import subprocess
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Stat:
    """One process, on Linux. *state* is a letter, *started* is in ticks since the system's start.

    *ticks* are its own CPU time and that of the children it has waited for.
    """

    pid: int
    state: str
    parent: int
    started: int
    ticks: int
    rss_pages: int


def parsed_stat(text: str) -> Stat:
    """The content of ``/proc/PID/stat``; the process name in it may hold blanks and brackets. Pure."""
    head, _, rest = text.rpartition(")")
    fields = rest.split()
    return Stat(
        pid=int(head.partition(" ")[0]),
        state=fields[0],
        parent=int(fields[1]),
        ticks=sum(map(int, fields[11:15])),
        started=int(fields[19]),
        rss_pages=int(fields[21]),
    )


def read_stat(pid: int) -> Stat | None:
    """The process *pid*; ``None`` when there is none, or the system has no /proc."""
    try:
        return parsed_stat(Path(f"/proc/{pid}/stat").read_text())
    except OSError:
        return None


def identity_of(pid: int) -> str | None:
    """A value that differs between two processes with the same pid; ``None`` when the process is dead.

    A zombie, dead but not yet waited for, counts as dead.
    """
    if not Path("/proc/self/stat").exists():
        return _identity_by_ps(pid)
    stat = read_stat(pid)
    return None if stat is None or stat.state in "ZX" else str(stat.started)


def send(signal_number: signal.Signals, *, pid: int, identity: str) -> bool:
    """Send a signal to exactly that process; returns false when it is gone."""
    if identity_of(pid) != identity:
        return False
    try:
        os.kill(pid, signal_number)
    except ProcessLookupError:
        return False
    return True


def _identity_by_ps(pid: int) -> str | None:
    command = ["ps", "-o", "stat=,lstart=", "-p", str(pid)]
    words = subprocess.run(command, capture_output=True, text=True, check=False).stdout.split()
    return None if not words or words[0].startswith("Z") else " ".join(words[1:])
