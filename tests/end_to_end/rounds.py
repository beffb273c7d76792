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
from headrace.spark.engine import SparkEngine
from headrace.spark.session import SparkSettings


def executors() -> list[int]:
    """Processes of Spark's executors on this machine that descend from this one."""
    found = list[int]()
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            words = (entry / "cmdline").read_bytes()
        except OSError:
            continue
        if b"CoarseGrainedExecutorBackend" in words and _descends(int(entry.name)):
            found.append(int(entry.name))
    return found


def _descends(pid: int) -> bool:
    while pid > 1:
        if pid == os.getpid():
            return True
        try:
            pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            return False
    return False


def play(scene: Scene, engine: SparkEngine, *, victim: str, chance: random.Random) -> str:
    """One round; what came of it, for a person."""
    victims = executors if victim == "executor" else None
    failures, verdict = scene.killed_slot_round(engine, chance, victims=victims)
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
        wrong = play(
            scene, engine, victim=asked["victim"], chance=random.Random(asked["seed"] + number)
        )
        sys.stdout.write(json.dumps({"round": number, "wrong": wrong}) + "\n")
        sys.stdout.flush()
    engine.close()


if __name__ == "__main__":
    main()
