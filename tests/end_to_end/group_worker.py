"""`headrace worker` whose slots are threads: a program that takes the arguments of ``headrace``."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path

from headrace.cli import worker
from headrace.cli.main import main
from headrace.worker import DataPlane, serving_group

# A program finds the doubles of the tests only when it is told where they are.
sys.path.append(str(Path(__file__).parents[1]))

from doubles.thread_engine import ThreadEngine

if __name__ == "__main__":
    worker.serving_group = partial(serving_group, data_plane=DataPlane.of(ThreadEngine(slots=6)))
    main()
