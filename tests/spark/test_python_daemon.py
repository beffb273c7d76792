"""What Spark's Python daemon does before it forks a process for each slot."""

from __future__ import annotations

import subprocess
import sys

FORKED = """
import gc, os, random, sys
from headrace.spark.python_daemon import prepare

prepare()
imported = set(sys.modules)
for _ in range(2):
    if not os.fork():
        import numpy, pandas
        from headrace.task import worker_task
        drawn = random.random(), numpy.random.random()
        print(*drawn, gc.get_freeze_count() > 100_000, len(set(sys.modules) - imported))
        sys.stdout.flush()
        os._exit(0)
    os.wait()
"""


def test_slots_find_everything_imported_and_draw_numbers_of_their_own() -> None:
    """Two that draw the same would, for example, give the same name to two files."""
    done = subprocess.run(
        [sys.executable, "-c", FORKED], capture_output=True, text=True, timeout=60, check=True
    )
    one, other = (line.split() for line in done.stdout.splitlines())

    assert one[0] != other[0]
    assert one[1] != other[1]
    assert ["True", "0"] == one[2:] == other[2:]
