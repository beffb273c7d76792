"""Spark SQL between reading and writing, on a real Spark and a real broker."""

from __future__ import annotations

import json
import os
import random
import signal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from end_to_end.scene import SENDERS, Scene, Witness, is_claim, pause
from end_to_end.sql_lines import SQL, selected
from headrace.observe.events import SlotClaimed
from headrace.spark.engine import SparkEngine
from headrace.testing.judge import committed_records, judged

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.timeout(400)]


@pytest.mark.slow
def test_lines_go_through_sql_once_and_dropped_ones_move_their_offsets(
    bootstrap: str, tmp_path: Path, spark_engine: SparkEngine
) -> None:
    """In two processes for each slot; a second run finds nothing to read."""
    topic = f"sql-{os.getpid()}"
    scene = Scene(bootstrap, tmp_path, topic, connector=dict(SQL))
    scene.connector["headrace.max.records.per.second"] = "1000000"
    expected = selected(scene.write(records=6_000))

    assert {} == scene.run_once(spark_engine)

    assert 4 == len(set(scene.witness.pids()))
    verdict = judged(bootstrap, topic, expected)
    assert verdict.exactly_once, verdict
    scene.witness = Witness()
    assert {} == scene.run_once(spark_engine)
    assert [] == scene.witness.pids()


@pytest.mark.slow
@pytest.mark.sampled(1)
@pytest.mark.kill
@pytest.mark.parametrize("reads", [True, False])
@pytest.mark.parametrize(("seed", "sender"), [*enumerate(SENDERS, 1)])
def test_a_killed_process_of_a_split_slot_loses_nothing_and_doubles_nothing(
    bootstrap: str,
    tmp_path: Path,
    spark_engine: SparkEngine,
    seed: int,
    *,
    sender: str,
    reads: bool,
) -> None:
    """Whether it is the one that reads or the one that writes: the work is planned again."""
    topic = f"sql-{'reader' if reads else 'writer'}-{seed}-{os.getpid()}"
    scene = Scene(bootstrap, tmp_path, topic, connector=dict(SQL))
    # A claim is heard up to a second late, and what was read by then need not be killed.
    scene.connector["headrace.max.records.per.second"] = "3000"
    scene.connector["headrace.sender"] = sender
    expected = selected(scene.write())
    chance = random.Random(f"{reads}{seed}")

    with scene.running(spark_engine) as wait:
        scene.witness.wait_for(lambda event: is_claim(event) and event.reads is reads, seconds=180)
        pause(chance)
        os.kill(chance.choice(processes(scene.witness, reads=reads)), signal.SIGKILL)
        assert {} == wait()

    assert scene.witness.replanned()
    verdict = judged(bootstrap, topic, expected)
    assert verdict.exactly_once, verdict
    scene.witness = Witness()
    assert {} == scene.run_once(spark_engine)
    assert [] == scene.witness.pids()


def processes(witness: Witness, *, reads: bool) -> list[int]:
    """The processes of slots that read, or those that write."""
    claims = [event for event in witness.events if isinstance(event, SlotClaimed)]
    return [claim.pid for claim in claims if claim.reads is reads]


def test_a_value_that_an_expression_cannot_take_fails_the_task(
    bootstrap: str, tmp_path: Path, spark_engine: SparkEngine
) -> None:
    """With Spark's own message, and not again and again."""
    scene = Scene(bootstrap, tmp_path, f"sql-bad-{os.getpid()}", connector=dict(SQL))
    scene.connector["transforms.sql.select"] = "CAST(value AS INT) AS number"
    scene.write(records=100)

    (failure,) = scene.run_once(spark_engine).values()

    assert "CAST_INVALID_INPUT" in str(failure)


POINT = {"type": "record", "name": "Point", "fields": [{"name": "x", "type": "string"}]}


def test_a_field_that_an_expression_makes_null_may_be_null_in_the_schema(
    bootstrap: str, tmp_path: Path, spark_engine: SparkEngine
) -> None:
    """Though none of the file may be; the schema keeps its name."""
    topic = f"sql-null-{os.getpid()}"
    changes = {"transforms.sql.select": "nullif(x, 'a') AS x", "files.schema": json.dumps(POINT)}
    sql = {**SQL, **changes, "transforms.sql.where": "true"}
    scene = Scene(bootstrap, tmp_path, topic, connector=sql)
    scene.worker["value.converter.schemas.enable"] = "true"
    required = pa.schema([pa.field("x", pa.utf8(), nullable=False)])
    pq.write_table(pa.table({"x": ["a", "b"]}, schema=required), scene.files / "points.parquet")

    assert {} == scene.run_once(spark_engine)

    sent = [json.loads(each.value or b"") for each in committed_records(bootstrap, topic)]
    assert [{"x": None}, {"x": "b"}] == [each["payload"] for each in sent]
    assert [("Point", True)] * 2 == [
        (each["schema"]["name"], each["schema"]["fields"][0]["optional"]) for each in sent
    ]
