"""Slots with SQL that Spark itself attempts twice, on a session that allows it: a program for a player."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from end_to_end.attempts import RECORDS, has_committed
from end_to_end.scene import Scene
from end_to_end.sql_lines import SQL, selected
from headrace.observe.events import ConnectorFailed, Event, SlotClaimed
from headrace.spark.engine import SparkEngine
from headrace.spark.session import SparkSettings

# Behind some commits.
BAD_LINE = 15_000
BAD = f"CAST(IF(get_json_object(value, '$.line') = {BAD_LINE}, 'nan', '1') AS INT) AS one"


def wrong_with_bad_value(scene: Scene, engine: SparkEngine) -> str:
    """Let an expression fail at one record; what is wrong with how that ends, for a person."""
    scene.write(files=1, records=RECORDS)
    scene.connector["transforms.sql.select"] = BAD
    del scene.connector["transforms.sql.where"]
    with scene.running(engine) as wait:
        failed = scene.witness.wait_for(lambda event: isinstance(event, ConnectorFailed))
        wait()
    assert isinstance(failed, ConnectorFailed)
    return "" if "CAST_INVALID_INPUT" in failed.reason else failed.reason


def wrong_with_kill(scene: Scene, engine: SparkEngine) -> str:
    """Kill a process that reads, behind some commits; what is wrong with what is in Kafka then, for a person."""
    expected = selected(scene.write(records=RECORDS))
    with scene.running(engine) as wait:
        scene.witness.wait_for(has_committed)
        os.kill(reader_among(scene.witness.events), signal.SIGKILL)
        failures = wait()
    verdict = scene.verdict(expected)
    return "" if not failures and verdict.exactly_once else f"{failures} {verdict}"


def reader_among(events: list[Event]) -> int:
    """A process that reads."""
    return next(event.pid for event in events if isinstance(event, SlotClaimed) and event.reads)


def play(session: SparkSession, asked: Mapping[str, Any]) -> Iterator[Mapping[str, object]]:
    """Let attempts end in each way; tell how it went."""
    engine = SparkEngine(SparkSettings(), slots=2, session=session)
    for name, wrong_with in {"killed": wrong_with_kill, "failed": wrong_with_bad_value}.items():
        topic = f"{asked['name']}-{name}-{os.getpid()}"
        scene = Scene(asked["bootstrap"], Path(asked["folder"]) / name, topic, connector=dict(SQL))
        yield {"attempt": name, "wrong": wrong_with(scene, engine)}
