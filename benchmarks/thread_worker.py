"""``headrace run`` or ``headrace worker`` whose tasks run in threads, for what is measured without Spark.

A program: it takes the arguments of ``headrace``. There is no JVM to wait for, nor to add to what the worker itself takes.
"""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path

from headrace.cli import run
from headrace.cli import worker as group_worker
from headrace.cli.main import outcome
from headrace.runtime.engine import DataPlane
from headrace.worker import running, serving, serving_group

sys.path.append(str(Path(__file__).parents[1] / "tests"))

from doubles.thread_engine import ThreadEngine

_SLOTS = 8


def main() -> int:
    """Run the command line."""
    plane = DataPlane.of(ThreadEngine(slots=_SLOTS))
    run.running = partial(running, data_plane=plane)
    run.serving = partial(serving, data_plane=plane)
    group_worker.serving_group = partial(serving_group, data_plane=plane)
    return outcome(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
