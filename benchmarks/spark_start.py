"""How long Spark's JVM takes to its first job, alone, and a worker from its launch to its first record."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from typing import Final

from benchmarks.contender import BenchmarkError
from benchmarks.control_scene import ControlScene, files_connector
from benchmarks.figure import Figure
from benchmarks.service import alone

_COMMIT_SECONDS = 300.0
_SECONDS = 600.0
_STARTED: Final = """
import json, resource, sys, time
from headrace.spark import java_process
from headrace.spark.job import first_job
from headrace.spark.session import SparkSettings
from headrace.spark.start import SparkStart
began = time.monotonic()
settings = SparkSettings(master="local[2]", conf=json.loads(sys.argv[1]))
session = SparkStart(settings, given=None, begin=lambda it: first_job(it, slots=2)).session(sql=False)
seconds = time.monotonic() - began
session.stop()
java_process.end(seconds=60)
used = [resource.getrusage(each) for each in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
print(json.dumps([seconds, sum(each.ru_utime + each.ru_stime for each in used)]))
"""
_MADE: Final = "from headrace.spark.archive_making import make; make()"
# Options of the user's own: then Java's are left alone.
_PLAIN: Final = {"spark.driver.extraJavaOptions": "-Dheadrace.benchmark=1"}


def have_archive() -> None:
    """Have the class archive made that starts are measured with, if it is not there."""
    _output_of(_MADE)


def starts(scene: ControlScene) -> Sequence[Figure]:
    """The JVM alone, as Java starts it by itself and as headrace does; then a whole worker."""
    have_archive()
    plain, ours = ([_jvm(conf) for _ in range(scene.scale.rounds)] for conf in (_PLAIN, {}))
    title = "Spark's JVM, session and first job, alone"
    launched = [_launched(scene) for _ in range(scene.scale.rounds)]
    return [
        *_medians(f"{title}, as Java starts it", plain),
        *_medians(f"{title}, from the class archive", ours),
        Figure(
            title="from the launch of `headrace run` to its first record committed, median",
            value=statistics.median(launched),
            unit="s",
            most=6.0,
        ),
        Figure(title=f"the same, longest of {len(launched)}", value=max(launched), unit="s"),
    ]


def _medians(title: str, measured: Sequence[tuple[float, float]]) -> Sequence[Figure]:
    seconds, cpu = (statistics.median(each) for each in zip(*measured, strict=True))
    return [
        Figure(title=f"{title}, median", value=seconds, unit="s"),
        Figure(title="the CPU time of that, Python's in it", value=cpu, unit="s"),
    ]


def _jvm(conf: dict[str, str]) -> tuple[float, float]:
    """Seconds, and CPU seconds of all processes, from nothing to the end of the first job."""
    seconds, cpu = json.loads(_output_of(_STARTED, json.dumps(conf)))
    return seconds, cpu


def _launched(scene: ControlScene) -> float:
    """Launch a worker whose connector finds its first file."""
    topic, folder = scene.topic(), scene.folder()
    log, file = scene.log(topic), scene.file(100)
    waiting = file.rename(folder / file.name)
    with alone(folder, scene.bootstrap) as first:
        first.create(topic, files_connector(file, topic))
        first.kill()
    waiting.rename(file)
    with alone(folder, scene.bootstrap) as second:
        second.until(
            lambda: log.follow().committed > 0, seconds=_COMMIT_SECONDS, what="The first record"
        )
        return (log.tally.last_committed_ms or time.time() * 1e3) / 1e3 - second.began


def _output_of(program: str, *arguments: str) -> str:
    command = [sys.executable, "-c", program, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS)
    if done.returncode:
        raise BenchmarkError(f"Spark did not start.\n{done.stderr}")
    return done.stdout
