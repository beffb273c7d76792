"""What is measured: a program that writes one file's records to one topic."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from benchmarks.samples import Sample

ROOT = Path(__file__).resolve().parent.parent
ENDING_SECONDS = 60.0
TAIL_LINES = 20


class BenchmarkError(Exception):
    """A run that gave no figure; the message has the reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What a contender has to do. *folder* is its own, empty, and removed afterwards.

    *registry* is the address of a schema registry, *store* that of a server that has the samples as objects.
    """

    bootstrap: str
    topic: str
    sample: Sample
    folder: Path
    registry: str
    store: str

    @property
    def log(self) -> Path:
        """The output of the contender's processes."""
        return self.folder / "output.log"


class Contender(Protocol):
    """A program in one of its configurations."""

    @property
    def slot_marker(self) -> str | None:
        """What the command lines of a slot's process and of its parent contain; see the meter."""
        ...

    def launch(self, job: Job) -> Sequence[subprocess.Popen[bytes]]:
        """Start the program; its processes, of which the meter watches all descendants."""
        ...

    def begin(self, job: Job, processes: Sequence[subprocess.Popen[bytes]]) -> None:
        """Start the work if the command does not; called once, right after ``launch``."""
        ...

    def end(self, processes: Sequence[subprocess.Popen[bytes]]) -> None:
        """Wait for its end after everything is committed; raises BenchmarkError when it fails."""
        ...


def started(command: Sequence[str], job: Job, *, listens: bool = False) -> subprocess.Popen[bytes]:
    """A process of *job* in a session of its own; one that *listens* can be written to."""
    with job.log.open("ab") as output:
        return subprocess.Popen(
            command,
            cwd=ROOT,
            stdin=subprocess.PIPE if listens else subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )


def wait_for_success(processes: Sequence[subprocess.Popen[bytes]]) -> None:
    """Wait until all have ended by themselves; raises BenchmarkError when one did not, or with a code."""
    for each in processes:
        try:
            code = each.wait(ENDING_SECONDS)
        except subprocess.TimeoutExpired as error:
            raise BenchmarkError(
                f"It has not ended {ENDING_SECONDS:g} s after its work."
            ) from error
        if code:
            raise BenchmarkError(f"It ended with exit code {code}.")


def end_all(processes: Sequence[subprocess.Popen[bytes]]) -> None:
    """End what still runs: with SIGTERM, and after a while with SIGKILL for its whole group."""
    for each in processes:
        if each.poll() is None:
            each.terminate()
    for each in processes:
        try:
            each.wait(ENDING_SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(each.pid, signal.SIGKILL)
            each.wait()


def tail(log: Path) -> str:
    """The last lines of *log*."""
    lines = log.read_text(errors="replace").splitlines()[-TAIL_LINES:] if log.is_file() else []
    return "\n".join(f"    {line}" for line in lines)
