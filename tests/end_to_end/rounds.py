"""Rounds of kills of slots: a program for a player."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from end_to_end.scene import SENDERS, Scene
from end_to_end.sql_lines import SQL, selected
from headrace.spark.engine import SparkEngine
from headrace.spark.session import SparkSettings


def play(session: SparkSession, asked: Mapping[str, Any]) -> Iterator[Mapping[str, object]]:
    """Play a round, with SQL or without; tell what was wrong with it, for a person."""
    engine = SparkEngine(SparkSettings(), slots=2, session=session)
    topic = f"{asked['name']}-{asked['seed']}-{os.getpid()}"
    scene = Scene(asked["bootstrap"], Path(asked["folder"]), topic)
    if asked.get("sql"):
        scene.connector, scene.becomes = dict(SQL), selected
    scene.connector["headrace.sender"] = SENDERS[asked["seed"] % len(SENDERS)]
    failures, verdict = scene.killed_slot_round(engine, random.Random(asked["seed"]))
    is_right = not failures and verdict.exactly_once
    wrong = "" if is_right else f"{failures} {verdict}"
    yield {"wrong": wrong if scene.witness.replanned() else "the kill hit no work"}
