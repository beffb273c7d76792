"""A mirror between two real brokers: every record of the source once at the target, and its position with it."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from end_to_end.live import Life
from end_to_end.mirrored import (
    SOURCE,
    TARGET,
    EveryKind,
    committed,
    entries,
    stable_ends,
    with_own_time,
)
from headrace.broker import Broker
from headrace.runtime.engine import LocalProcesses
from headrace.spark.engine import SparkEngine
from spark.kafka.tables import Topics
from waiting import until

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(300)]

# Looks at each record, and changes none.
TRANSFORMED = {
    "transforms": "keep",
    "transforms.keep.type": "org.apache.kafka.connect.transforms.Filter",
    "transforms.keep.predicate": "never",
    "predicates": "never",
    "predicates.never.type": "org.apache.kafka.connect.transforms.predicates.TopicNameMatches",
    "predicates.never.pattern": "no topic at all",
}


class Mirror:
    """A flow of a test's topics between two brokers, on a worker of the target."""

    def __init__(self, source: str, target: str, life: Life) -> None:
        self.topics = Topics(source)
        self.target = target
        self.life = life
        self.name = f"mirror-{self.topics.prefix}"
        life.worker |= {"bootstrap.servers": target}
        life.connectors.append(
            {
                "name": self.name,
                "connector.class": "org.apache.kafka.connect.mirror.MirrorSourceConnector",
                "tasks.max": "2",
                "source.cluster.alias": SOURCE,
                "target.cluster.alias": TARGET,
                "source.cluster.bootstrap.servers": source,
                "topics": f"{self.topics.prefix}-.*",
                "replication.factor": "1",
                "mirror.offset.ranges.topic.replication.factor": "1",
                "partition.discovery.interval.ms": "300",
                "producer.override.max.request.size": "10000000",
                "producer.override.buffer.memory": "40000000",
            }
        )

    def set(self, settings: dict[str, str]) -> None:
        """Change settings of the connector."""
        self.life.connectors[-1] |= settings

    def differences(self, names: list[str]) -> dict[str, object]:
        """What is not the same on both sides."""
        wanted = committed(self.topics.bootstrap, names)
        found = committed(self.target, [f"{SOURCE}.{each}" for each in names])
        return {
            name: (wanted[name], found[f"{SOURCE}.{name}"])
            for name in names
            if with_own_time(wanted[name]) != found[f"{SOURCE}.{name}"]
        }

    def positions(self) -> dict[tuple[str, int], int]:
        """The group's entries by the source's partitions, without the flow's own."""
        group = f"connect-{self.name}"
        return {
            (topic.removeprefix(f"{SOURCE}."), number): offset
            for (topic, number), offset in entries(self.target, group).items()
            if topic.startswith(f"{SOURCE}.{self.topics.prefix}")
        }

    def is_through(self, names: list[str]) -> bool:
        """Whether the entries are at the ends of the source."""
        return stable_ends(self.topics.bootstrap, names) == self.positions()


@pytest.fixture
def mirror(bootstrap: str, broker: Broker, tmp_path: Path, spark_engine: SparkEngine) -> Mirror:
    """From the shared broker to the mortal one, on Spark."""
    life = Life(broker.bootstrap, tmp_path, engine=spark_engine, processes=LocalProcesses())
    return Mirror(bootstrap, broker.bootstrap, life)


@pytest.mark.parametrize("settings", [{}, TRANSFORMED], ids=["unopened", "decoded"])
def test_every_kind_of_record_is_the_same_on_both_sides(
    mirror: Mirror, settings: dict[str, str]
) -> None:
    """Whichever way it takes, and with the positions at the source's ends."""
    kinds = EveryKind(mirror.topics, random.Random(1))
    kinds.create()
    mirror.set(settings)

    assert {} == mirror.life.run_once()

    assert {} == mirror.differences(kinds.names)
    assert stable_ends(mirror.topics.bootstrap, kinds.names) == mirror.positions()


def test_partitions_and_topics_are_found_while_it_runs(mirror: Mirror) -> None:
    """And what is written into what is known arrives as well."""
    kinds = EveryKind(mirror.topics, random.Random(2))
    first = mirror.topics.create("first")
    kinds.write(first, 30)
    with mirror.life.running():
        until(lambda: mirror.is_through([first]), seconds=120)
        mirror.topics.grow(first, 3)
        second = mirror.topics.create("second", 2)
        for partition in (0, 2):
            kinds.write(first, 20, partition)
        kinds.write(second, 20, 1)
        until(lambda: mirror.is_through([first, second]), seconds=120)

    assert {} == mirror.differences([first, second])
