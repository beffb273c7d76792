"""What the processes of a program use, from /proc; Linux only."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from headrace.pids import read_stat

TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
PROC = Path("/proc")


def descendants(roots: Iterable[int], parents: Mapping[int, int]) -> set[int]:
    """*roots* and all below them, where *parents* has each process's parent. Pure."""
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


def shared_bytes(pid: int) -> int:
    """How much of the resident memory of *pid* is other processes' share of it; 0 where that cannot be seen."""
    try:
        lines = (PROC / str(pid) / "smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    kilobytes = {name: rest.split()[0] for name, _, rest in (each.partition(":") for each in lines)}
    return (int(kilobytes["Rss"]) - int(kilobytes["Pss"])) * 1024 if "Pss" in kilobytes else 0


def _names() -> list[str]:
    # A path object for each process of the machine, twice a second, would be felt.
    return os.listdir(PROC)  # noqa: PTH208
