"""A step before Spark SQL that waits for longer than a transaction may last, on a real Spark and a real broker."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from end_to_end.late_service import LATE_SECONDS
from end_to_end.scene import Scene
from end_to_end.sql_lines import SQL
from headrace.spark.engine import SparkEngine

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.timeout(300), pytest.mark.slow]

# A busy machine needs half of it before a piece of a batch is written.
TIMEOUT_MS = 6_000
assert TIMEOUT_MS < 1_000 * LATE_SECONDS
LATE = {
    **SQL,
    "transforms": "late, sql",
    "transforms.sql.where": "true",
    "transforms.late.type": "end_to_end.late_service:LateService",
    "errors.retry.timeout": "-1",
    "producer.override.transaction.timeout.ms": str(TIMEOUT_MS),
    # Longer than a piece of a batch takes, so that one is open when the wait begins.
    "transaction.boundary.interval.ms": "1000",
}


def opened(bootstrap: str, folder: Path, engine: SparkEngine) -> None:
    """Have all that is slow the first time behind: a slot's wait is to begin when it has begun to write."""
    scene = Scene(bootstrap, folder, f"before-{os.getpid()}", connector=dict(SQL))
    scene.write(files=1, records=10)
    assert {} == scene.run_once(engine)


def test_a_wait_before_sql_leaves_no_transaction_open(
    bootstrap: str, tmp_path: Path, spark_engine: SparkEngine
) -> None:
    """What precedes the record that waits is committed, so that nothing is planned again."""
    opened(bootstrap, tmp_path / "before", spark_engine)
    topic = f"sql-waits-{os.getpid()}"
    scene = Scene(bootstrap, tmp_path, topic, connector=dict(LATE))
    scene.connector["transforms.late.asked"] = str(tmp_path / "asked")
    scene.worker |= {"headrace.lease.ms": "2000", "plugin.modules": "end_to_end.late_service"}
    scene.write(files=1)
    expected = [b'{"line":%d,"file":"0"}' % line for line in range(16_000)]

    assert {} == scene.run_once(spark_engine)

    assert (tmp_path / "asked").exists()
    assert not scene.witness.replanned()
    assert scene.verdict(expected).exactly_once
