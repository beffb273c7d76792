"""Run as a program: becomes a command that dies with the process that started it, even by SIGKILL.

    leash.py FD COMMAND…

FD is the reading end of a pipe whose writing end only the starter holds. The program forks: the
parent becomes COMMAND and so keeps its pid, the child waits for the pipe to end and then kills it.
Only the standard library, and nothing of this package: it starts in an isolated interpreter.
"""

from __future__ import annotations

import os
import select
import signal
import sys

# How soon the waiting child notices that the command has ended by itself.
LOOK_SECONDS = 0.5


def main() -> None:
    """Fork, then be the command."""
    pipe, command = int(sys.argv[1]), sys.argv[2:]
    own = os.getpid()
    if os.fork() == 0:
        wait_and_kill(pipe, own)
        os._exit(0)
    os.close(pipe)
    os.execv(command[0], command)


def wait_and_kill(pipe: int, command: int) -> None:
    """Return when the process *command* is dead; kill it when the pipe ends."""
    # This process must not keep the command's output open for its readers.
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nowhere, stream)
    # This is a child of the command: when the parent dies, getppid returns another pid, so the pid is never stale.
    while os.getppid() == command:
        ready, _, _ = select.select([pipe], [], [], LOOK_SECONDS)
        if ready and os.getppid() == command:
            os.kill(command, signal.SIGKILL)
            return


if __name__ == "__main__":
    main()
