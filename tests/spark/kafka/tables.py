"""Topics with records that can be counted, and streaming queries into tables: for tests that read Kafka with Spark."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewPartitions, NewTopic
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from waiting import until

OFTEN = {"partition.discovery.interval.ms": "200"}
"""Partitions are looked for at every trigger."""


class Topics:
    """Makes topics whose names no other test has, and writes into them what can be counted."""

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap
        self.prefix = f"s{uuid4().hex[:8]}"
        self.admin = AdminClient({"bootstrap.servers": bootstrap})
        self._numbers = count()

    def name(self, name: str) -> str:
        """What :meth:`create` calls the topic."""
        return f"{self.prefix}-{name}"

    def create(self, name: str, partitions: int = 1, **settings: str) -> str:
        """A topic with *settings*, whose dots are underscores here."""
        topic = self.name(name)
        config = {key.replace("_", "."): value for key, value in settings.items()}
        self.admin.create_topics([NewTopic(topic, partitions, 1, config=config)])[topic].result()
        until(lambda: topic in self.admin.list_topics(timeout=10).topics)
        return topic

    def grow(self, topic: str, partitions: int) -> None:
        """Until it has *partitions*."""
        self.admin.create_partitions([NewPartitions(topic, partitions)])[topic].result()
        until(
            lambda: len(self.admin.list_topics(timeout=10).topics[topic].partitions) == partitions
        )

    def delete(self, topic: str) -> None:
        """Returns when it is gone."""
        self.admin.delete_topics([topic])[topic].result()
        until(lambda: topic not in self.admin.list_topics(timeout=10).topics)

    def delete_records(self, topic: str, before: int, partition: int = 0) -> None:
        """As retention does it: the log of the partition then begins at the offset *before*."""
        (done,) = self.admin.delete_records([TopicPartition(topic, partition, before)]).values()
        done.result()

    def values(self, topic: str, number: int, partition: int = 0) -> list[str]:
        """Values unlike any others."""
        return [f"{topic}/{partition}/{next(self._numbers)}" for _ in range(number)]

    def write(self, topic: str, number: int, partition: int = 0) -> list[str]:
        """Write *number* records; returns their values."""
        producer = self.producer()
        values = self.values(topic, number, partition)
        self.produce(producer, topic, values, partition)
        assert producer.flush(30) == 0
        return values

    def produce(
        self, producer: Producer, topic: str, values: Sequence[str], partition: int = 0
    ) -> None:
        """Hand *values* to *producer*, and have them sent."""
        for value in values:
            producer.produce(topic, value=value, key=value[-2:], partition=partition)
        producer.flush(30)

    def producer(self, **settings: Any) -> Producer:  # noqa: ANN401 (what the client takes)
        """One of the client library."""
        return Producer({"bootstrap.servers": self.bootstrap, "linger.ms": 5, **settings})

    def transactional(self, name: str) -> Producer:
        """One whose transaction has begun."""
        producer = self.producer(**{"transactional.id": self.name(name)})
        producer.init_transactions(30)
        producer.begin_transaction()
        return producer


class Table:
    """A streaming query into a folder of lines, with a checkpoint; may be stopped and started again."""

    def __init__(
        self,
        spark: SparkSession,
        folder: Path,
        options: dict[str, str],
        *,
        what: str = "cast(value as string) as value",
    ) -> None:
        self._spark = spark
        self._folder = folder
        self._options = options
        self._what = what

    def run(self, **more: str) -> StreamingQuery:
        """Read what there is now, and stop."""
        query = self._writer(more).trigger(availableNow=True).start()
        assert query.awaitTermination(120), "the query did not end"
        return query

    def start(self, **more: str) -> StreamingQuery:
        """Read on and on."""
        return self._writer(more).trigger(processingTime="200 milliseconds").start()

    def failure(self, **more: str) -> str:
        """What the error of a query says that is to fail."""
        with pytest.raises(Exception) as caught:  # noqa: PT011 (Spark's own, of either kind of session)
            self.run(**more)
        return str(caught.value)

    def values(self) -> list[str]:
        """What has arrived, in order of values."""
        if not (self._folder / "table" / "_spark_metadata").exists():
            return []
        rows = self._spark.read.text(str(self._folder / "table")).collect()
        return sorted(row.value for row in rows)

    def holds(self, *values: list[str]) -> bool:
        """Whether exactly these have arrived, each once."""
        return self.values() == sorted(each for some in values for each in some)

    def _writer(self, more: dict[str, str]) -> DataStreamWriter:
        frame = stream(self._spark, self._options | more)
        return (
            frame.selectExpr(self._what)
            .writeStream.format("text")
            .option("checkpointLocation", str(self._folder / "checkpoint"))
            .option("path", str(self._folder / "table"))
        )


def stream(spark: SparkSession, options: dict[str, str]) -> DataFrame:
    """The source, not started."""
    return spark.readStream.format("headrace-kafka").options(**options).load()


def bounded(spark: SparkSession, options: dict[str, str]) -> list[str]:
    """The values of a bounded read, in order."""
    frame = spark.read.format("headrace-kafka").options(**options).load()
    return sorted(
        bytes(row.value).decode()
        for row in frame.select("value").collect()
        if row.value is not None
    )
