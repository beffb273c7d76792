"""`headrace run` whose slots start late: a program that takes the arguments of ``headrace``.

``HEADRACE_TEST_HOLD_SLOTS`` names a folder. The first micro-batch that finds a file ``wanted`` there takes it away, and
waits, between its plan and its slots, for a file ``released``, as if Spark were being started. Slots are threads, unless
``HEADRACE_TEST_ON_SPARK`` is set.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from headrace.cli import run
from headrace.cli.main import outcome
from headrace.task.slot_work import SlotTicket
from headrace.task.sql.step import SqlStage
from headrace.worker import DataPlane, running, serving

# A program finds the doubles of the tests only when it is told where they are.
sys.path.append(str(Path(__file__).parents[1]))

from doubles.thread_engine import ThreadEngine
from waiting import until

HOLD, ON_SPARK = "HEADRACE_TEST_HOLD_SLOTS", "HEADRACE_TEST_ON_SPARK"
# Longer than any test, which would leave the process alone otherwise.
_LONGEST_SECONDS = 300.0


class LateEngine(ThreadEngine):
    """Lets the plan of a micro-batch grow old before its slots start, when a test says so."""

    def __init__(self, folder: Path) -> None:
        super().__init__(slots=6)
        self._folder = folder

    def run(self, tickets: Sequence[SlotTicket], sql_stage: SqlStage | None = None) -> None:
        """Wait if it is wanted, and run them."""
        try:
            (self._folder / "wanted").rename(self._folder / "held")
        except FileNotFoundError:
            pass
        else:
            self.is_starting = True
            until((self._folder / "released").exists, seconds=_LONGEST_SECONDS)
            self.is_starting = False
        super().run(tickets, sql_stage)


def main() -> int:
    """Run the command line."""
    if not os.environ.get(ON_SPARK):
        plane = DataPlane.of(LateEngine(Path(os.environ[HOLD])))
        run.running = partial(running, data_plane=plane)
        run.serving = partial(serving, data_plane=plane)
    return outcome(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
