"""A broker must not outlive the one who started it."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from headrace.broker import leash
from headrace.broker.broker import until
from headrace.pids import identity_of

# Starts a sleeping program on a leash, prints its pid, and waits to be killed.
OWNER = """
import os, subprocess, sys
reading, writing = os.pipe()
child = subprocess.Popen([sys.executable, sys.argv[1], str(reading), "/bin/sleep", "600"],
                         pass_fds=(reading,), start_new_session=True)
print(child.pid, flush=True)
sys.stdin.read()
"""


@pytest.mark.kill
def test_dies_with_its_owner():
    """When the owner is killed, with no chance to clean up, the program is killed at once."""
    command = [sys.executable, "-c", OWNER, str(Path(leash.__file__))]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as owner:
        assert owner.stdout is not None
        program = int(owner.stdout.readline())
        lived = identity_of(program) is not None
        owner.send_signal(signal.SIGKILL)
        owner.wait()

        assert lived
        assert until(lambda: identity_of(program) is None, seconds=10)
