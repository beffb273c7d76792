"""Rounds of kills in a process of its own, because a process has one Spark session: a program for tests.

Reads what to do as JSON from its first argument, prints one JSON line a round.
"""

from __future__ import annotations

import json
import os
import random
import sys
from pathlib import Path

from end_to_end.scene import Scene
from end_to_end.sql_lines import SQL, selected
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


def play(scene: Scene, engine: SparkEngine, *, victim: str, chance: random.Random) -> str:
    """One round; what was wrong with it, for a person."""
    failures, verdict = scene.killed_slot_round(
        engine, chance, victim=its_executor if victim == "executor" else None
    )
    if not scene.witness.replanned():
        return "the kill hit no work"
    return "" if not failures and verdict.exactly_once else f"{failures} {verdict}"


def main() -> None:
    """Play the rounds and print how each went."""
    asked = json.loads(sys.argv[1])
    settings = SparkSettings(master=asked.get("master"), remote=asked.get("remote"))
    engine = SparkEngine(settings, slots=2)
    for number in range(asked["rounds"]):
        scene = Scene(
            asked["bootstrap"],
            Path(asked["folder"]) / str(number),
            f"{asked['name']}-{number}-{os.getpid()}",
        )
        if asked.get("sql"):
            scene.connector, scene.becomes = dict(SQL), selected
        wrong = play(
            scene, engine, victim=asked["victim"], chance=random.Random(asked["seed"] + number)
        )
        sys.stdout.write(json.dumps({"round": number, "wrong": wrong}) + "\n")
        sys.stdout.flush()
    engine.close()


if __name__ == "__main__":
    main()
