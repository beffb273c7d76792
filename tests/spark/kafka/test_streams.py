"""Streams and bounded reads through Spark, on a real broker."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from pathlib import Path
from uuid import uuid4

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewPartitions, NewTopic
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from headrace.spark.engine import SparkEngine

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.timeout(120)]


class Topics:
    """Makes topics of its own, and writes into them what can be counted."""

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap
        self.prefix = f"s{uuid4().hex[:8]}"
        self._admin = AdminClient({"bootstrap.servers": bootstrap})
        self._numbers = count()
        self._written: list[str] = []

    def create(self, name: str, partitions: int = 1) -> str:
        """A topic whose name no other test has."""
        topic = f"{self.prefix}-{name}"
        self._admin.create_topics([NewTopic(topic, partitions, 1)])[topic].result()
        return topic

    def grow(self, topic: str, partitions: int) -> None:
        """Until it has *partitions*."""
        self._admin.create_partitions([NewPartitions(topic, partitions)])[topic].result()

    def delete(self, topic: str) -> None:
        """Returns when the broker has said so."""
        self._admin.delete_topics([topic])[topic].result()

    def write(self, topic: str, number: int, partition: int = 0) -> list[str]:
        """Write *number* records whose values are unlike any others; returns the values."""
        producer = Producer({"bootstrap.servers": self.bootstrap, "linger.ms": 5})
        values = [f"{topic}/{partition}/{next(self._numbers)}" for _ in range(number)]
        for value in values:
            producer.produce(topic, value=value, key=value[-2:], partition=partition)
        assert producer.flush(30) == 0
        self._written += values
        return values


@pytest.fixture
def topics(bootstrap: str) -> Topics:
    """On the broker that all tests share."""
    return Topics(bootstrap)


@pytest.fixture
def spark(spark_engine: SparkEngine) -> Iterator[SparkSession]:
    """The session that all tests share, knowing the source."""
    session = spark_engine.session()
    yield session
    for query in session.streams.active:
        query.stop()


class Table:
    """A streaming query into a folder of JSON lines, with a checkpoint; may be stopped and started again."""

    def __init__(self, spark: SparkSession, folder: Path, options: dict[str, str]) -> None:
        self._spark = spark
        self._folder = folder
        self._options = options

    def run(self, **more: str) -> StreamingQuery:
        """Read what there is now, and stop."""
        query = self._writer(more).trigger(availableNow=True).start()
        assert query.awaitTermination(60), "the query did not end"
        return query

    def start(self, **more: str) -> StreamingQuery:
        """Read on and on."""
        return self._writer(more).trigger(processingTime="200 milliseconds").start()

    def values(self) -> list[str]:
        """What has arrived, in no order."""
        if not (self._folder / "table" / "_spark_metadata").exists():
            return []
        return [row.value for row in self._spark.read.text(str(self._folder / "table")).collect()]

    def _writer(self, more: dict[str, str]) -> DataStreamWriter:
        frame = stream(self._spark, self._options | more)
        return (
            frame.selectExpr("cast(value as string) as value")
            .writeStream.format("text")
            .option("checkpointLocation", str(self._folder / "checkpoint"))
            .option("path", str(self._folder / "table"))
        )


def stream(spark: SparkSession, options: dict[str, str]) -> DataFrame:
    """The source, not started."""
    return spark.readStream.format("headrace-kafka").options(**options).load()


def test_a_new_topic_is_read_from_its_beginning_and_then_on(
    spark: SparkSession, topics: Topics, tmp_path: Path
) -> None:
    """With a restart in between."""
    topic = topics.create("one", 2)
    first = topics.write(topic, 500) + topics.write(topic, 300, partition=1)
    table = Table(
        spark, tmp_path, {"kafka.bootstrap.servers": topics.bootstrap, "subscribe": topic}
    )
    table.run()
    assert sorted(table.values()) == sorted(first)
    second = topics.write(topic, 40)
    table.run()
    assert sorted(table.values()) == sorted(first + second)


def test_the_columns_of_a_bounded_read(spark: SparkSession, topics: Topics) -> None:
    """As in Spark's own source, nulls and empty bytes apart."""
    topic = topics.create("columns")
    producer = Producer({"bootstrap.servers": topics.bootstrap})
    producer.produce(
        topic, value=b"v", key=None, timestamp=1234, headers=[("a", b"1"), ("a", None)]
    )
    producer.produce(topic, value=None, key=b"", timestamp=2234)
    assert producer.flush(30) == 0
    rows = (
        spark.read.format("headrace-kafka")
        .option("kafka.bootstrap.servers", topics.bootstrap)
        .option("subscribe", topic)
        .option("includeHeaders", "true")
        .load()
        .orderBy("offset")
        .selectExpr("*", "unix_millis(timestamp) as ms")
        .collect()
    )
    assert [row.asDict(recursive=True) | {"timestamp": None} for row in rows] == [
        {
            "key": None,
            "value": bytearray(b"v"),
            "topic": topic,
            "partition": 0,
            "offset": 0,
            "timestamp": None,
            "timestampType": 0,
            "headers": [
                {"key": "a", "value": bytearray(b"1")},
                {"key": "a", "value": None},
            ],
            "ms": 1234,
        },
        {
            "key": bytearray(b""),
            "value": None,
            "topic": topic,
            "partition": 0,
            "offset": 1,
            "timestamp": None,
            "timestampType": 0,
            "headers": None,
            "ms": 2234,
        },
    ]
