"""Telling a process from another one that got its pid."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

from headrace.broker.liveness import identity_of, send, until


def test_identity_stays():
    """A living process keeps its identity."""
    assert identity_of(os.getpid()) == identity_of(os.getpid()) is not None


def test_zombie_is_dead():
    """A process that ended counts as dead before anybody waited for it."""
    with subprocess.Popen([sys.executable, "-c", ""]) as child:
        assert until(lambda: identity_of(child.pid) is None, seconds=10)


def test_other_process_is_not_hit():
    """A signal is not sent to a process that only has the pid."""
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        sent = send(signal.SIGKILL, pid=child.pid, identity="that of another one")

        assert not sent
        assert child.poll() is None


def test_deadline():
    """Waiting ends at the deadline."""
    assert not until(lambda: False, seconds=0)
