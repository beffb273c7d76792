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

THREADS = """
import os, sys
from collections import Counter
from pathlib import Path

def others():
    tasks = Path("/proc/self/task").iterdir()
    return Counter((each / "comm").read_text().strip() for each in tasks if each.name != str(os.getpid()))

import numpy

of_numpy = others()
from headrace.spark.python_daemon import prepare

prepare()
print(*(others() - of_numpy))
ones = numpy.ones((500, 500))
for _ in range(2):
    if not os.fork():
        began_with = others().total()
        print(began_with, (ones @ ones == 500).all())
        sys.stdout.flush()
        os._exit(0)
    os.wait()
    print((ones @ ones == 500).all())
"""


def run(script: str) -> list[list[str]]:
    """The words of each line that *script* prints."""
    done = subprocess.run(
        [sys.executable, "-uc", script], capture_output=True, text=True, timeout=60, check=True
    )
    return [line.split() for line in done.stdout.splitlines()]


def test_slots_find_everything_imported_and_draw_numbers_of_their_own() -> None:
    """Two that draw the same would, for example, give the same name to two files."""
    one, other = run(FORKED)

    assert one[0] != other[0]
    assert one[1] != other[1]
    assert ["True", "0"] == one[2:] == other[2:]


def test_only_threads_that_survive_a_fork_run_before_it() -> None:
    """Those of numpy, and of Arrow's allocator. Parent and child compute after it."""
    started, *computed = run(THREADS)

    assert {"jemalloc_bg_thd"} >= set(started)
    assert [["0", "True"], ["True"]] * 2 == computed
