"""Two clusters with mirrors both ways, and a group that moves from one to the other."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from uuid import uuid4

from confluent_kafka import Consumer, KafkaError, TopicPartition

from end_to_end.live import Life
from judges.java_judge import JavaJudge
from spark.kafka.tables import Topics
from waiting import until

MIRROR = "org.apache.kafka.connect.mirror.Mirror"
QUICK = {
    "emit.checkpoints.interval.seconds": "1",
    "sync.group.offsets.interval.seconds": "1",
    "refresh.groups.interval.seconds": "1",
    "partition.discovery.interval.ms": "300",
}
ONE_BROKER = {
    "replication.factor": "1",
    "checkpoints.topic.replication.factor": "1",
    "offset-syncs.topic.replication.factor": "1",
    "mirror.offset.ranges.topic.replication.factor": "1",
}


@dataclass
class Side:
    """A cluster, what it is called, and a worker that writes to it."""

    alias: str
    topics: Topics
    folder: Path
    life: Life = field(init=False)

    def __post_init__(self) -> None:
        self.life = Life(self.bootstrap, self.folder)

    @property
    def bootstrap(self) -> str:
        """Its address."""
        return self.topics.bootstrap


class TwoClusters:
    """Names that no other test has: of clusters, so that the mirror's own topics are a test's own, and of topics."""

    def __init__(self, one: str, other: str, folder: Path) -> None:
        unique = uuid4().hex[:8]
        self.a = Side(f"a{unique}", Topics(one), folder / "a")
        self.b = Side(f"b{unique}", Topics(other), folder / "b")
        # The topics of both sides have the same names.
        self.b.topics.prefix = self.prefix = self.a.topics.prefix
        self.group = f"group-{self.prefix}"
        for side in (self.a, self.b):
            side.folder.mkdir()

    def mirror(self, source: Side, target: Side, **settings: str) -> None:
        """Have the worker of *target* copy from *source*, and translate offsets."""
        shared = {
            "source.cluster.alias": source.alias,
            "target.cluster.alias": target.alias,
            "source.cluster.bootstrap.servers": source.bootstrap,
            "topics": rf"(.*\.)?{self.prefix}-.*",
            "groups": self.group,
            **QUICK,
            **ONE_BROKER,
            **{key.replace("_", "."): value for key, value in settings.items()},
        }
        target.life.connectors += [
            {
                **{key: value for key, value in shared.items() if _concerns(kind, key)},
                "name": f"{kind}-{source.alias}",
                "connector.class": f"{MIRROR}{kind}Connector",
                "tasks.max": "1",
            }
            for kind in ("Source", "Checkpoint")
        ]

    def run(self, side: Side) -> None:
        """Until everything is copied, and then, in another run, translated."""
        for _ in range(2):
            assert {} == side.life.run_once()

    def consumer(self, side: Side, **settings: object) -> Consumer:
        """One of the group."""
        return Consumer(
            {
                "bootstrap.servers": side.bootstrap,
                "group.id": self.group,
                "isolation.level": "read_committed",
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "enable.partition.eof": True,
                **settings,
            }
        )

    def read(self, side: Side, topics: Sequence[str], most: int | None = None) -> list[str]:
        """What the group reads next: at most so many records, or all there are; committed."""
        found = list[str]()
        ended = set[tuple[str | None, int | None]]()
        with closing(self.consumer(side)) as consumer:
            consumer.subscribe([*topics])

            def is_through() -> bool:
                message = consumer.poll(0.2)
                if message is None:
                    return False
                place = message.topic(), message.partition()
                if (error := message.error()) is not None:
                    assert error.code() == KafkaError._PARTITION_EOF, error
                    ended.add(place)
                else:
                    ended.discard(place)
                    found.append((message.value() or b"").decode())
                if most is not None and len(found) >= most:
                    return True
                assigned = {(each.topic, each.partition) for each in consumer.assignment()}
                return bool(assigned) and assigned <= ended

            until(is_through, seconds=60)
            if found:
                consumer.commit(asynchronous=False)
        return found

    def read_by_java(
        self, judge: JavaJudge, side: Side, topics: Sequence[str], most: int = 2**31 - 1
    ) -> list[str]:
        """As :meth:`read`, by Kafka's own consumer; it may read a few more than *most*."""
        records = judge.read_on(
            topics,
            most=most,
            bootstrap_servers=side.bootstrap,
            group_id=self.group,
            isolation_level="read_committed",
            auto_offset_reset="earliest",
            enable_auto_commit="false",
            max_poll_records="3",
        )
        return [(each["value"] or b"").decode() for each in records]

    def committed(self, side: Side, topic: str) -> dict[int, int]:
        """What the group has committed there, by partition."""
        with closing(self.consumer(side)) as consumer:
            partitions = consumer.list_topics(topic, timeout=30).topics[topic].partitions
            places = [TopicPartition(topic, each) for each in partitions]
            return {
                each.partition: each.offset
                for each in consumer.committed(places, timeout=30)
                if each.offset >= 0
            }


def _concerns(kind: str, key: str) -> bool:
    """Whether a connector of that kind has the setting."""
    if key.startswith(
        ("emit.checkpoints", "sync.group", "refresh.groups", "groups", "checkpoints.")
    ):
        return kind == "Checkpoint"
    if key.startswith(("partition.", "replication.factor", "mirror.", "offset-syncs.topic.repl")):
        return kind == "Source"
    return True
