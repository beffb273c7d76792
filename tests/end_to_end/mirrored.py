"""Topics of every kind, and what another client library reads of them on either side of a mirror."""

from __future__ import annotations

import random
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

from confluent_kafka import (
    TIMESTAMP_CREATE_TIME,
    Consumer,
    IsolationLevel,
    KafkaException,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient, OffsetSpec

from end_to_end.committed_messages import messages
from judges.java_judge import JavaJudge
from spark.kafka.tables import Topics
from waiting import until

SOURCE, TARGET = "A", "B"
COMPRESSIONS = ("none", "gzip", "snappy", "lz4", "zstd")
SECONDS = 60.0
_BEGIN_MS = 1_700_000_000_000
_LARGE = 2_000_000


class Copied(NamedTuple):
    """A record as a reader sees it, but for its place."""

    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]
    time_type: int
    timestamp: int


def committed(bootstrap: str, topics: Sequence[str]) -> dict[str, dict[int, list[Copied]]]:
    """What the client library reads of each partition with ``read_committed``, in order."""
    listed = AdminClient({"bootstrap.servers": bootstrap}).list_topics(timeout=30).topics
    found = {
        each: {number: list[Copied]() for number in listed[each].partitions} for each in topics
    }
    for message in messages(bootstrap, topics):
        headers: Any = message.headers() or ()
        found[str(message.topic())][message.partition() or 0].append(
            Copied(message.key(), message.value(), tuple(headers), *message.timestamp())
        )
    return found


def committed_for_java(
    judge: JavaJudge, bootstrap: str, topics: Mapping[str, Collection[int]]
) -> dict[str, dict[int, list[Copied]]]:
    """As :func:`committed`, of these partitions of *topics*, as Java's consumer reads them."""

    def of_partition(topic: str, number: int) -> list[Copied]:
        records = judge.consumed(
            topic,
            partition=number,
            bootstrap_servers=bootstrap,
            isolation_level="read_committed",
        )
        return [
            Copied(
                each["key"],
                each["value"],
                tuple((header["key"], header["value"]) for header in each["headers"]),
                # Java counts from 0.
                each["timestamp_type"] + TIMESTAMP_CREATE_TIME,
                each["timestamp"],
            )
            for each in records
        ]

    return {
        topic: {number: of_partition(topic, number) for number in numbers}
        for topic, numbers in topics.items()
    }


def with_own_time(records: Mapping[int, Sequence[Copied]]) -> dict[int, list[Copied]]:
    """*records* with their timestamps as producers' own: so a copy has those that the source's broker has set."""
    return {
        number: [each._replace(time_type=TIMESTAMP_CREATE_TIME) for each in of_partition]
        for number, of_partition in records.items()
    }


def stable_ends(admin: AdminClient, topics: Sequence[str]) -> dict[tuple[str, int], int]:
    """Up to where each partition of *topics* can be read, markers included."""
    listed = admin.list_topics(timeout=30).topics
    wanted = {
        TopicPartition(topic, number): OffsetSpec.latest()
        for topic in topics
        for number in listed[topic].partitions
    }
    answers = admin.list_offsets(wanted, isolation_level=IsolationLevel.READ_COMMITTED)
    return {
        (each.topic, each.partition): answer.result().offset for each, answer in answers.items()
    }


class Mirrored:
    """A flow of the *topics* of a test to the cluster *target*."""

    def __init__(self, topics: Topics, target: str) -> None:
        self.topics = topics
        self.target = target
        self.name = f"mirror-{topics.prefix}"
        self._reader = Consumer({"bootstrap.servers": target, "group.id": f"connect-{self.name}"})

    def connector(self, settings: Mapping[str, str] | None = None) -> dict[str, str]:
        """The connector's configuration, with *settings* of the test."""
        return {
            "name": self.name,
            "connector.class": "org.apache.kafka.connect.mirror.MirrorSourceConnector",
            "tasks.max": "2",
            "source.cluster.alias": SOURCE,
            "target.cluster.alias": TARGET,
            "source.cluster.bootstrap.servers": self.topics.bootstrap,
            "topics": f"{self.topics.prefix}-.*",
            # The clusters are other tests', too, which may have written some.
            "heartbeats.replication.enabled": "false",
            "replication.factor": "1",
            "mirror.offset.ranges.topic.replication.factor": "1",
            "partition.discovery.interval.ms": "300",
            "producer.override.max.request.size": "10000000",
            "producer.override.buffer.memory": "40000000",
            **(settings or {}),
        }

    def differences(
        self, names: Sequence[str], judge: JavaJudge | None = None
    ) -> dict[str, object]:
        """What is not the same on both sides, by the source's topics; *judge* reads the target, too."""
        wanted = committed(self.topics.bootstrap, names)
        remote = [f"{SOURCE}.{each}" for each in names]
        readings = [committed(self.target, remote)]
        if judge is not None:
            readings.append(committed_for_java(judge, self.target, readings[0]))
        return {
            name: (wanted[name], found[f"{SOURCE}.{name}"])
            for found in readings
            for name in names
            if with_own_time(wanted[name]) != found[f"{SOURCE}.{name}"]
        }

    def positions(self) -> dict[tuple[str, int], int]:
        """The group's entries by the source's partitions, without the flow's own.

        As a consumer of the group sees them that never joins it: the admin client's own call ends its process when an entry is
        in an open transaction.
        """
        prefix, own = f"{SOURCE}.", f"{SOURCE}.{self.topics.prefix}-"
        listed = self._reader.list_topics(timeout=30).topics
        places = [
            TopicPartition(topic, number)
            for topic in listed
            if topic.startswith(own)
            for number in listed[topic].partitions
        ]
        found = list[TopicPartition]()
        if places:
            until(lambda: found.extend(self._committed(places)) or found, seconds=SECONDS)
        return {
            (each.topic.removeprefix(prefix), each.partition): each.offset
            for each in found
            if each.offset >= 0
        }

    def _committed(self, places: list[TopicPartition]) -> list[TopicPartition]:
        try:
            return self._reader.committed(places, timeout=10)
        except KafkaException:
            # Its coordinator has just started, or an entry is in an open transaction.
            return []

    def ends(self, names: Sequence[str]) -> dict[tuple[str, int], int]:
        """Up to where the source's topics can be read."""
        return stable_ends(self.topics.admin, names)

    def is_through(self, names: Sequence[str]) -> bool:
        """Whether the entries are at the ends of the source."""
        return self.ends(names) == self.positions()


class EveryKind:
    """Writes topics of every kind into the source."""

    def __init__(self, topics: Topics, chance: random.Random) -> None:
        self.topics = topics
        self._chance = chance
        self._written = 0

    @property
    def names(self) -> list[str]:
        """The topics that there are."""
        listed = self.topics.admin.list_topics(timeout=10).topics
        return sorted(name for name in listed if name.startswith(f"{self.topics.prefix}-"))

    def create(self) -> None:
        """All of them, with something in each."""
        for compression in COMPRESSIONS:
            topic = self.topics.create(compression, 2)
            for partition in (0, 1):
                self.write(topic, 40, partition, **{"compression.type": compression})
        self._transactions(self.topics.create("transactions"))
        self._append_time(self.topics.create("appended", message_timestamp_type="LogAppendTime"))
        large = self.topics.create("large", max_message_bytes=str(4 * _LARGE))
        for value in (b"x" * _LARGE, self._chance.randbytes(_LARGE)):
            self._send(large, [(None, value, [])], **{"message.max.bytes": 4 * _LARGE})
        alone = self.topics.create("alone")
        for _ in range(20):
            self.write(alone, 1)
        self._compacted()

    def write(self, topic: str, number: int, partition: int = 0, **settings: object) -> None:
        """So many records of all sorts."""
        self._send(topic, [self._record() for _ in range(number)], partition, **settings)

    def _record(self) -> tuple[bytes | None, bytes | None, list[tuple[str, bytes | None]]]:
        chance, self._written = self._chance, self._written + 1
        headers = [
            (chance.choice(["a", "a", "b", "ü"]), chance.choice([None, b"", b"1", b"\xff\x00"]))
            for _ in range(chance.choice([0, 0, 1, 3]))
        ]
        key = chance.choice([None, b"", f"k{self._written % 7}".encode()])
        value = chance.choice([None, b"", f"{self._written}".encode() * chance.randrange(1, 60)])
        return key, value, headers

    def _send(
        self,
        topic: str,
        records: Sequence[tuple[bytes | None, bytes | None, list[tuple[str, bytes | None]]]],
        partition: int = 0,
        **settings: object,
    ) -> None:
        producer = self.topics.producer(**settings)
        for key, value, headers in records:
            producer.produce(
                topic,
                key=key,
                value=value,
                headers=headers,
                partition=partition,
                timestamp=_BEGIN_MS + self._chance.randrange(1_000_000),
            )
        assert producer.flush(30) == 0

    def _transactions(self, topic: str) -> None:
        for is_committed in (True, False, True, True, False):
            producer = self.topics.transactional("t")
            for _ in range(10):
                key, value, headers = self._record()
                producer.produce(topic, key=key, value=value, headers=headers, partition=0)
            if is_committed:
                producer.commit_transaction(30)
            else:
                producer.flush(30)
                producer.abort_transaction(30)

    def _append_time(self, topic: str) -> None:
        self.write(topic, 20)
        self.write(topic, 20, **{"compression.type": "lz4"})

    def _compacted(self) -> None:
        """With gaps within batches, and tombstones."""
        topic = self.topics.create(
            "compacted",
            cleanup_policy="compact",
            segment_ms="100",
            min_cleanable_dirty_ratio="0.01",
            delete_retention_ms="3600000",
        )
        producer = self.topics.transactional("g")
        for number in range(60):
            value = None if number % 7 == 0 else f"{number:03}"
            producer.produce(topic, key=f"k{number % 9}", value=value, partition=0)
        producer.commit_transaction()

        def is_compacted() -> bool:
            # Only what is not the newest segment is compacted, and a record begins a new one.
            self.topics.write(topic, 1)
            return len(committed(self.topics.bootstrap, [topic])[topic][0]) < 55

        until(is_compacted, seconds=300)
