"""A polled connector on Spark that has nothing for a while, and cannot be probed."""

from __future__ import annotations

from pathlib import Path

import pytest

from end_to_end.live import Life, numbers
from headrace.observe.events import ConnectorIdle, MicroBatchStarted
from headrace.spark.engine import SparkEngine
from waiting import until

pytestmark = [pytest.mark.broker, pytest.mark.spark]


@pytest.mark.slow
@pytest.mark.timeout(180)
def test_what_comes_while_a_polled_connector_rests_is_delivered_once(
    bootstrap: str, tmp_path: Path, spark_engine: SparkEngine
) -> None:
    """Its micro-batch has ended by then, and a later one goes on behind the committed offset."""
    file = tmp_path / "log.txt"
    file.write_text("0\n1\n2\n")
    life = Life(bootstrap, tmp_path, engine=spark_engine)
    life.worker |= {"plugin.modules": "end_to_end.unprobed", "poll.idle.max.ms": "500"}
    topic = life.add("end_to_end.unprobed:UnprobedConnector", file=str(file))

    # Its start is not what is waited for below.
    spark_engine.session()
    with life.running():
        until(lambda: len(life.heard(ConnectorIdle)) > 2)
        before = life.values(topic)
        jobs = len(life.heard(MicroBatchStarted))
        with file.open("a") as growing:
            growing.write("3\n4\n")
        until(lambda: len(life.values(topic)) >= 5)
        idle = len(life.heard(ConnectorIdle))
        until(lambda: len(life.heard(ConnectorIdle)) > idle + 1)

    assert jobs > 2
    assert numbers(3) == before
    assert numbers(5) == life.values(topic)
