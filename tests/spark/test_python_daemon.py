"""What Spark's Python daemon does before it forks a process for each slot."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

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


HIDING = ("json", "random", "types")
ENGINE = """
import logging, sys
logging.basicConfig(format="%(message)s")

from headrace.connect.errors import ConnectError
from headrace.spark.engine import SparkEngine
from headrace.spark.session import SparkSettings

def answers(batches):
    import author
    for batch in batches:
        yield batch.from_pydict({"answer": [author.ANSWER]})

engine = SparkEngine(SparkSettings(master="local[1]", conf=CONF), slots=1)
try:
    frame = engine.session().range(0, 1, 1, 1).mapInArrow(answers, "answer long")
    print(frame.toArrow().to_pylist())
except ConnectError as error:
    print(error)
engine.close()
"""


def run_in(folder: Path, conf: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """What a program with an engine prints that runs in *folder*, where files hide Python's own modules."""
    for each in HIDING:
        (folder / f"{each}.py").write_text(f"raise RuntimeError('the folder has {each}')\n")
    (folder / "author.py").write_text("ANSWER = 42\n")
    return subprocess.run(
        [sys.executable, "-Pc", ENGINE.replace("CONF", repr(conf))],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )


@pytest.mark.spark
@pytest.mark.slow
def test_files_in_the_working_directory_hide_none_of_python_s_modules(tmp_path: Path) -> None:
    """And an author's module there is found by slots."""
    done = run_in(tmp_path, {})

    assert "[{'answer': 42}]" == done.stdout.strip()


@pytest.mark.spark
@pytest.mark.slow
def test_what_ends_the_daemon_at_its_start_is_told_with_its_traceback(tmp_path: Path) -> None:
    """Spark itself says that it could not read a port."""
    done = run_in(tmp_path, {"spark.executorEnv.PYTHONSAFEPATH": ""})

    [place] = [f"{tmp_path / each}.py" for each in HIDING if f"has {each} (" in done.stdout]
    assert (
        f"ended at its start: RuntimeError: the folder has {Path(place).stem} ({place}, line 1)"
        in done.stdout
    )
    assert done.stderr.startswith("A Python process of Spark (local[1]) ended at its start:\n")
    assert "\nTraceback (most recent call last):\n" in done.stderr
    assert f'File "{place}", line 1, in <module>' in done.stderr
