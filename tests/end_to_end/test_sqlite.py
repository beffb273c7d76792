"""The connector ``sqlite`` from end to end, on a real Spark."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from typing import cast

import pytest

from end_to_end.live import Life
from headrace.observe.events import MicroBatchStarted, SlotClaimed
from headrace.spark.engine import SparkEngine
from waiting import until

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.kill]


def place(database: Path, pieces: Iterable[int]) -> None:
    """One row for each of *pieces*."""
    with closing(sqlite3.connect(database)) as opened, opened:
        opened.execute(
            "CREATE TABLE IF NOT EXISTS orders (id INTEGER PRIMARY KEY AUTOINCREMENT, pieces INT)"
        )
        opened.executemany("INSERT INTO orders (pieces) VALUES (?)", [(each,) for each in pieces])


@pytest.mark.slow
@pytest.mark.timeout(240)
def test_rows_are_sent_once_and_those_that_do_not_match_are_looked_at_once(
    bootstrap: str, tmp_path: Path, spark_engine: SparkEngine
) -> None:
    """Also when the slot's process is killed in between, and when the worker is started again."""
    database = tmp_path / "orders.db"
    place(database, range(2000))
    life = Life(bootstrap, tmp_path, engine=spark_engine)
    topic = life.add(
        "sqlite",
        database=str(database),
        table="orders",
        where="pieces % 2 = 0 AND pieces < 2000",
        batch_rows="50",
        headrace_max_records_per_second="200",
        value_converter="json",
        value_converter_schemas_enable="false",
    )
    spark_engine.session()
    with life.running():
        until(lambda: len(life.values(topic)) > 100, seconds=60)
        claimed = cast("SlotClaimed", life.heard(SlotClaimed)[-1])
        os.kill(claimed.pid, signal.SIGKILL)
        until(lambda: len(life.values(topic)) >= 1000, seconds=60)
    place(database, range(2000, 5000))
    first = life.run_once()
    jobs = len(life.heard(MicroBatchStarted))
    second = life.run_once()

    found = [json.loads(each)["pieces"] for each in life.values(topic)]
    assert list(range(0, 2000, 2)) == found
    assert ({}, {}, jobs) == (first, second, len(life.heard(MicroBatchStarted)))
