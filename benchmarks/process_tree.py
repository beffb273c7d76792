"""What the processes of a program use, from /proc; Linux only."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
PROC = Path("/proc")


@dataclass(frozen=True, slots=True, kw_only=True)
class Stat:
    """One process. *ticks* are its own CPU time and that of the children it has waited for."""

    pid: int
    parent: int
    started: int
    ticks: int
    rss_pages: int


def parsed_stat(text: str) -> Stat:
    """What ``/proc/PID/stat`` says; the name in it may hold blanks and brackets. Pure."""
    head, _, rest = text.rpartition(")")
    fields = rest.split()
    return Stat(
        pid=int(head.partition(" ")[0]),
        parent=int(fields[1]),
        ticks=sum(map(int, fields[11:15])),
        started=int(fields[19]),
        rss_pages=int(fields[21]),
    )


def descendants(roots: Iterable[int], parents: Mapping[int, int]) -> set[int]:
    """*roots* and all below them, where *parents* tells each process's parent. Pure."""
    found = set(roots)
    children: dict[int, list[int]] = {}
    for pid, parent in parents.items():
        children.setdefault(parent, []).append(pid)
    waiting = list(found)
    while waiting:
        below = [pid for pid in children.get(waiting.pop(), ()) if pid not in found]
        found.update(below)
        waiting += below
    return found


def read_stat(pid: int) -> Stat | None:
    """The process *pid*; None when there is none."""
    try:
        return parsed_stat((PROC / str(pid) / "stat").read_text())
    except (FileNotFoundError, ProcessLookupError):
        return None


def read_tree(roots: Iterable[int]) -> set[int]:
    """*roots* and all their descendants that live; reads every process of the machine."""
    stats = [read_stat(int(each)) for each in _names() if each.isdigit()]
    return descendants(roots, {stat.pid: stat.parent for stat in stats if stat is not None})


def command_of(pid: int) -> str:
    """The command line of *pid*; empty when it is gone."""
    try:
        return (
            (PROC / str(pid) / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        )
    except (FileNotFoundError, ProcessLookupError):
        return ""


def _names() -> list[str]:
    # A path object for each process of the machine, twice a second, would be felt.
    return os.listdir(PROC)  # noqa: PTH208
