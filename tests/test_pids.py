"""Telling a process from another one that got its pid."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from headrace.pids import identity_of, parsed_stat, read_stat, send
from waiting import until

SLEEPER = "42 (a) b (c) S 7 1 1 0 -1 4194560 100 0 0 0 11 22 33 44 20 0 5 0 9876 1000 250 18446744073709551615"


def test_stat_with_brackets_in_the_name():
    """A process may be called anything; its CPU time includes its waited-for children's."""
    stat = parsed_stat(SLEEPER)

    assert (42, "S", 7, 9876, 110, 250) == (
        stat.pid,
        stat.state,
        stat.parent,
        stat.started,
        stat.ticks,
        stat.rss_pages,
    )


@pytest.mark.skipif(not Path("/proc/self").is_dir(), reason="only Linux has /proc")
def test_this_process_is_there():
    """The format is the running kernel's."""
    stat = read_stat(os.getpid())

    assert stat is not None
    assert (os.getpid(), os.getppid()) == (stat.pid, stat.parent)


def test_identity_stays():
    """A living process keeps its identity."""
    assert identity_of(os.getpid()) == identity_of(os.getpid()) is not None


def test_zombie_is_dead():
    """A process that ended counts as dead before anybody waited for it."""
    with subprocess.Popen([sys.executable, "-c", ""]) as child:
        until(lambda: identity_of(child.pid) is None)


def test_other_process_is_not_hit():
    """A signal is not sent to a process that only has the pid."""
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        sent = send(signal.SIGKILL, pid=child.pid, identity="that of another one")

        assert not sent
        assert child.poll() is None
