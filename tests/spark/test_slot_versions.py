"""What Spark ships to a process that has another version of headrace."""

from __future__ import annotations

import base64
import json
import os
import platform
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark import cloudpickle

from headrace import __version__
from headrace.spark.slot_function import ArrowFunction, for_this_version, warm

# A process of Spark's in which the third task of a job runs.
_PROCESS = """
import base64, json, sys
import pyarrow as pa
from pyspark import TaskContext, cloudpickle
context = TaskContext._taskContext = object.__new__(TaskContext)
context._partitionId = 2
function = cloudpickle.loads(base64.b64decode(sys.stdin.read()))
batch = pa.RecordBatch.from_pydict({"id": pa.array([2], pa.int64())})
print(json.dumps([row for each in function(iter([batch])) for row in each.to_pylist()]))
"""
Rows = list[dict[str, object]]


@pytest.fixture
def elsewhere(tmp_path: Path) -> Callable[[ArrowFunction], Rows]:
    """Runs a function where headrace is a package with nothing but its version."""
    (tmp_path / "headrace").mkdir()
    (tmp_path / "headrace" / "__init__.py").write_text('__version__ = "0.0.1"\n')

    def run(function: ArrowFunction) -> Rows:
        done = subprocess.run(
            [sys.executable, "-P", "-c", _PROCESS],
            input=base64.b64encode(cloudpickle.dumps(function)),
            env={**os.environ, "PYTHONPATH": str(tmp_path)},
            capture_output=True,
            check=False,
        )
        assert 0 == done.returncode, done.stderr.decode()
        return json.loads(done.stdout)

    return run


def test_another_version_says_which_it_is(elsewhere: Callable[[ArrowFunction], Rows]) -> None:
    """None of the modules that the function needs are there."""
    row = {"slot": 2, "outcome": "refused", "reason": f"{platform.node()} 0.0.1"}

    assert [row] == elsewhere(for_this_version(warm))
    assert [] == elsewhere(for_this_version(warm, tells=False))


def test_the_same_version_runs_it() -> None:
    """As it is."""
    batch = pa.RecordBatch.from_pydict({"id": pa.array([0, 1], pa.int64())})

    shipped = cloudpickle.loads(cloudpickle.dumps(for_this_version(warm)))

    told = [row for each in shipped(iter([batch])) for row in each.to_pylist()]
    assert [(0, "warm"), (1, "warm")] == [(each["slot"], each["outcome"]) for each in told]


def test_a_version_that_can_ask_for_its_work_is_heard_at_once(tmp_path: Path) -> None:
    """Its claim is refused before the job ends; whatever it answers or raises, the row says which version it is."""
    asked = tmp_path / "asked"

    def ask(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        asked.write_text(str([each.num_rows for each in batches]))
        yield pa.RecordBatch.from_pydict({"any": pa.array([1])})
        raise OSError("no answer")

    batch = pa.RecordBatch.from_pydict({"id": pa.array([0], pa.int64())})
    run = for_this_version(ask, version="9.9")
    told = [row for each in run(iter([batch])) for row in each.to_pylist()]

    assert "[1]" == asked.read_text()
    assert [f"{platform.node()} {__version__}"] == [each["reason"] for each in told]
