"""The processes that a program has started, for tests that kill some of them."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from headrace.pids import read_stat

SPARKS_PYTHON = b"pyspark.worker"
"""In the commands of Spark's Python processes: the daemon, and those that it forks for tasks."""
JVM = b"org.apache.spark.deploy.SparkSubmit"
"""In the command of Spark's driver."""


def below(pid: int, mark: bytes = b"") -> list[int]:
    """The processes that *pid* has started, and those that these have, with *mark* in their command."""
    stats = [
        stat
        for each in Path("/proc").iterdir()
        if each.name.isdecimal() and (stat := read_stat(int(each.name)))
    ]
    tree, found = {pid}, list[int]()
    while more := [
        each.pid for each in stats if each.parent in tree - {each.pid} and each.pid not in tree
    ]:
        tree.update(more)
        found += more
    return [each for each in found if mark in command(each)]


def tasks_of(pid: int) -> list[int]:
    """Spark's Python processes below *pid* that run tasks: not the daemon that they are forked from."""
    pythons = below(pid, SPARKS_PYTHON)
    stats = [stat for each in pythons if (stat := read_stat(each))]
    return [each.pid for each in stats if each.parent in pythons]


def is_connected(pid: int, port: int) -> bool:
    """Whether it has a connection to this port of some machine; ``False`` when it is gone."""
    try:
        own = {each.readlink().name for each in Path(f"/proc/{pid}/fd").iterdir()}
        rows = Path(f"/proc/{pid}/net/tcp").read_text().splitlines()[1:]
    except OSError:
        return False
    # sl, local_address, rem_address, st, tx:rx, tr:when, retransmits, uid, timeout, inode: as proc(5) has them.
    fields = [row.split() for row in rows]
    return any(
        int(each[2].rpartition(":")[2], 16) == port and f"socket:[{each[9]}]" in own
        for each in fields
    )


def command(pid: int) -> bytes:
    """Its command line; empty when it is gone."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def send(pid: int, number: signal.Signals = signal.SIGKILL) -> None:
    """Send it a signal; nothing when it is gone."""
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return
