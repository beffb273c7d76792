"""Leaves when a signal asks for it, and sees to it that no process stays behind."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from headrace.broker.broker import until
from headrace.pids import identity_of, read_stat, send
from headrace.spark import java_process

ENDINGS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_SECONDS = 10.0
_PROC = Path("/proc")


class Ending:
    """Turns a signal into the end of the program, and remembers it."""

    def __init__(self) -> None:
        self.received: int | None = None

    def __call__(self, number: int, _frame: FrameType | None) -> None:
        """Leave; all that was started is ended on the way out, which nothing may interrupt."""
        for each in ENDINGS:
            signal.signal(each, signal.SIG_IGN)
        self.received = number
        os.write(1, b"\nEnding what was started ...\n")
        self.leave_if_received()

    def leave_if_received(self) -> None:
        """Leave, if a signal has come.

        Python swallows what a handler raises where it happens to run in a callback of the collector's or of the import
        system's; so what runs for long asks again.
        """
        if self.received is not None:
            raise SystemExit(128 + self.received)


@contextmanager
def nothing_left_behind() -> Iterator[None]:
    """On leaving, end Spark's Java process, then wait for whatever it and we have started."""
    try:
        yield
    finally:
        started = _started()
        # One that takes longer is killed with whatever else is left.
        java_process.end(seconds=_SECONDS)
        until(lambda: not _alive(started), seconds=_SECONDS)
        for pid, identity in _alive(started).items():
            send(signal.SIGKILL, pid=pid, identity=identity)


def kill_started() -> None:
    """SIGKILL what this program has started and is still running, without asking."""
    for pid, identity in _alive(_started()).items():
        send(signal.SIGKILL, pid=pid, identity=identity)


def _started() -> dict[int, str | None]:
    return {pid: identity_of(pid) for pid in descendants(os.getpid())}


def _alive(started: dict[int, str | None]) -> dict[int, str]:
    return {
        pid: identity
        for pid, identity in started.items()
        if identity is not None and identity_of(pid) == identity
    }


def descendants(pid: int) -> Iterator[int]:
    """The processes that *pid* has started, and theirs; none where the system has no /proc."""
    children = dict[int, list[int]]()
    for folder in _PROC.glob("[0-9]*"):
        stat = read_stat(int(folder.name))
        if stat is not None:
            children.setdefault(stat.parent, []).append(stat.pid)
    pending = [pid]
    while pending:
        found = children.get(pending.pop(), [])
        yield from found
        pending.extend(found)
