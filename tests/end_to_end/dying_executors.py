"""Executors of Spark that are killed with connectors of every family at work: a program for a player."""

from __future__ import annotations

import os
import random
import signal
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from end_to_end.fleet import SLOTS, Fleet
from end_to_end.live import Life
from end_to_end.scene import pause
from headrace.observe.events import SlotClaimed
from headrace.pids import read_stat
from headrace.spark.engine import SparkEngine
from headrace.spark.session import SparkSettings


def its_executor(pid: int) -> int:
    """The process of Spark's executor, on this machine, that the slot in the process *pid* belongs to."""
    while b"CoarseGrainedExecutorBackend" not in Path(f"/proc/{pid}/cmdline").read_bytes():
        stat = read_stat(pid)
        assert stat is not None, "the slot had ended before the kill"
        pid = stat.parent
    return pid


def play(session: SparkSession, asked: Mapping[str, Any]) -> Iterator[Mapping[str, object]]:
    """Kill all executors that slots of the fleet are at work in; tell how it ended."""
    chance = random.Random(asked["seed"])
    engine = SparkEngine(SparkSettings(), slots=SLOTS, session=session)
    fleet = Fleet(Life(asked["bootstrap"], Path(asked["folder"]), engine=engine), asked["s3"])
    with fleet.life.running(once=True) as wait:
        fleet.await_all(SlotClaimed)
        pause(chance)
        for executor in {its_executor(pid) for pid in fleet.pids(chance)}:
            os.kill(executor, signal.SIGKILL)
        failures = wait()
    yield {
        "failures": {name: str(error) for name, error in failures.items()},
        "not hit": sorted(set(fleet.expected) - fleet.replanned()),
        "wrong": {name: str(verdict) for name, verdict in fleet.verdicts().items()},
    }
