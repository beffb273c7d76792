"""`headrace run` or `headrace worker` that ends itself with SIGKILL at a step of its writing, which a test chooses.

A program: it takes the arguments of ``headrace``. The file that ``HEADRACE_TEST_DIES_AT`` names holds the
number of the step, counted from when the file is there; without it nothing happens. Steps lie before each
write into the state file, each fencing, and on both sides of each commit of offsets in Kafka. There is no
JVM to wait for: slots are threads, or processes if ``HEADRACE_TEST_PROCESSES`` is set, which live on when the worker is frozen. With
``HEADRACE_TEST_SPARK`` it has Spark, as its configuration says. A connector's ``${env:HEADRACE_TEST_NAME}`` is the worker's name.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable
from functools import partial, wraps
from pathlib import Path
from typing import Any

from headrace.cli import run
from headrace.cli import worker as group_worker
from headrace.cli.main import outcome
from headrace.kafka.client_sender import ClientSender
from headrace.kafka.transaction_coordinator import TransactionCoordinator
from headrace.storage.sqlite_file import SqliteFile
from headrace.worker import DataPlane, serving, serving_group

# A program finds the doubles of the tests only when it is told where they are.
sys.path.append(str(Path(__file__).parents[1]))

from doubles.process_engine import ProcessEngine
from doubles.thread_engine import ThreadEngine

CHOSEN = "HEADRACE_TEST_DIES_AT"
PROCESSES, NAME = "HEADRACE_TEST_PROCESSES", "HEADRACE_TEST_NAME"
SPARK = "HEADRACE_TEST_SPARK"
_SLOTS = 20


class Death:
    """Counts steps; any thread may take one."""

    def __init__(self, chosen: Path) -> None:
        self._chosen = chosen
        self._seen = 0
        self._guard = threading.Lock()

    def step(self) -> None:
        """Die here, if it is here."""
        with self._guard:
            if not self._chosen.exists():
                self._seen = 0
                return
            self._seen += 1
            if self._seen == int(self._chosen.read_text()):
                os.kill(os.getpid(), signal.SIGKILL)

    def before(self, call: Callable[..., Any]) -> Callable[..., Any]:
        """*call* with a step before it."""

        @wraps(call)
        def stepping(*args: object, **more: object) -> object:
            self.step()
            return call(*args, **more)

        return stepping

    def around(self, call: Callable[..., Any]) -> Callable[..., Any]:
        """*call* with a step before it, and one behind it."""

        @wraps(call)
        def stepping(*args: object, **more: object) -> object:
            self.step()
            result = call(*args, **more)
            self.step()
            return result

        return stepping


def main() -> int:
    """Run the command line."""
    death = Death(Path(os.environ[CHOSEN]))
    SqliteFile.write = death.before(SqliteFile.write)
    ClientSender.commit = death.around(ClientSender.commit)
    TransactionCoordinator.fence = death.before(TransactionCoordinator.fence)
    if not os.environ.get(SPARK):
        has_processes = os.environ.get(PROCESSES)
        plane = DataPlane.of(
            ProcessEngine(slots=_SLOTS, program="end_to_end.dying_worker")
            if has_processes
            else ThreadEngine(slots=_SLOTS)
        )
        run.serving = partial(serving, data_plane=plane)
        group_worker.serving_group = partial(serving_group, data_plane=plane)
    return outcome(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
