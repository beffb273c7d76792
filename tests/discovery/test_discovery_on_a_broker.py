"""Discoveries that ask a real broker, by the requests that every reader of headrace sends."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewPartitions, NewTopic

from headrace.connect.errors import TaskFailedError
from headrace.discovery.discoverer import PartitionDiscoverer, Subscription
from headrace.discovery.enumerator import (
    DiscoveryPolicies,
    PartitionEnumerator,
    PartitionLossError,
    RecreatedPolicy,
)
from headrace.discovery.offsets_initializer import (
    LatestOffsets,
    OffsetsInitializer,
    SpecifiedOffsets,
    TimestampOffsets,
)
from headrace.discovery.offsets_retriever import ClusterOffsetsRetriever
from headrace.discovery.subscribers import Subscriber, TopicListSubscriber, subscriber
from headrace.kafka.client_config import client_config
from headrace.kafka.deadline import Deadline
from headrace.kafka.topic_partition import TopicPartition
from headrace.kafka.wire.cluster import Cluster
from headrace.kafka.wire.settings import wire_settings
from waiting import until

pytestmark = pytest.mark.broker


@dataclass
class Topics:
    """Topics of a test's own, whose names begin with *prefix*."""

    bootstrap: str
    prefix: str

    def __post_init__(self) -> None:
        self._admin = AdminClient({"bootstrap.servers": self.bootstrap})

    def create(self, name: str, partitions: int = 1) -> str:
        """The topic's whole name, when brokers know it."""
        topic = f"{self.prefix}-{name}"
        self._admin.create_topics([NewTopic(topic, partitions, 1)])[topic].result(30)
        until(lambda: self._count(topic) == partitions)
        return topic

    def grow(self, topic: str, partitions: int) -> None:
        """To so many partitions."""
        self._admin.create_partitions([NewPartitions(topic, partitions)])[topic].result(30)
        until(lambda: self._count(topic) == partitions)

    def delete(self, topic: str) -> None:
        """Until brokers do not know it."""
        self._admin.delete_topics([topic])[topic].result(30)
        until(lambda: self._count(topic) == 0)

    def _count(self, topic: str) -> int:
        found = self._admin.list_topics(timeout=10).topics.get(topic)
        return sum(each.leader >= 0 for each in found.partitions.values()) if found else 0

    def write(self, topic: str, count: int, partition: int = 0, timestamp: int = 0) -> None:
        """Some records."""
        producer = Producer({"bootstrap.servers": self.bootstrap})
        for _ in range(count):
            producer.produce(topic, b"v", partition=partition, timestamp=timestamp)
        assert 0 == producer.flush(30)


@pytest.fixture
def topics(bootstrap: str) -> Topics:
    """Of this test alone."""
    return Topics(bootstrap, f"discovery-{uuid.uuid4().hex[:8]}")


@pytest.fixture
def wire(bootstrap: str) -> Iterator[Cluster]:
    """The one that a reader asks."""
    made = Cluster(wire_settings(client_config({"bootstrap.servers": bootstrap}).settings))
    yield made
    made.close()


@dataclass
class Reader:
    """A source that reads committed records."""

    wire: Cluster
    subscriber: Subscriber
    starting: OffsetsInitializer
    policies: DiscoveryPolicies | None = None

    def __post_init__(self) -> None:
        self.enumerator = PartitionEnumerator(policies=self.policies)
        self.discoverer = PartitionDiscoverer(
            Subscription(subscriber=self.subscriber, starting=self.starting),
            self.wire,
            lambda deadline: ClusterOffsetsRetriever(
                cluster=self.wire, deadline=deadline, group_id=f"nobody-{uuid.uuid4().hex}"
            ),
        )

    def found(self) -> dict[TopicPartition, int | None]:
        """Where the partitions start that a discovery has found."""
        self.discoverer.discover(self.enumerator, Deadline.after(20))
        splits = self.enumerator.unassigned()
        self.enumerator.assigned(split.place for split in splits)
        return {split.place: split.start for split in splits}


def test_e02_partitions_and_topics_that_appear_are_read_from_their_beginning(
    topics: Topics, wire: Cluster
):
    """Whatever was written to them before they were found; those that were there start at their end."""
    first = topics.create("a", 2)
    topics.write(first, 5)
    reader = Reader(wire, subscriber(pattern=f"{topics.prefix}-.*"), LatestOffsets())
    initial = reader.found()
    topics.grow(first, 3)
    topics.write(first, 7, partition=2)
    second = topics.create("b")
    topics.write(second, 3)

    assert {TopicPartition(first, 0): 5, TopicPartition(first, 1): 0} == initial
    assert {TopicPartition(first, 2): 0, TopicPartition(second, 0): 0} == reader.found()


def test_e34_a_topic_made_again_is_known_by_its_id(topics: Topics, wire: Cluster):
    """Although the new one is longer than the old one was."""
    topic = topics.create("a")
    topics.write(topic, 5)
    restart = DiscoveryPolicies(recreated=RecreatedPolicy.RESTART)
    one = Reader(wire, TopicListSubscriber((topic,)), LatestOffsets())
    other = Reader(wire, TopicListSubscriber((topic,)), LatestOffsets(), restart)
    one.found()
    other.found()
    topics.delete(topic)
    topics.create("a")
    topics.write(topic, 9)

    with pytest.raises(PartitionLossError, match=f"The topic {topic} was deleted and created"):
        one.found()
    assert {TopicPartition(topic, 0): 0} == other.found()


def test_e31_a_topic_that_is_not_there_fails_by_its_name_and_is_not_created(
    topics: Topics, wire: Cluster
):
    """The broker would create it for a client that allows it."""
    missing = f"{topics.prefix}-missing"
    reader = Reader(wire, TopicListSubscriber((missing,)), LatestOffsets())

    for _ in range(2):
        with pytest.raises(TaskFailedError, match=f"not on the brokers: {missing}"):
            reader.found()


def test_e65_latest_is_before_an_open_transaction(topics: Topics, wire: Cluster, bootstrap: str):
    """So that its records are read when it commits."""
    topic = topics.create("a")
    topics.write(topic, 4)
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": uuid.uuid4().hex})
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(topic, b"open", partition=0)
    producer.flush(30)

    found = Reader(wire, TopicListSubscriber((topic,)), LatestOffsets()).found()
    producer.abort_transaction(30)

    assert {TopicPartition(topic, 0): 4} == found


def test_e22_a_timestamp_and_e18_a_reset_are_looked_up(topics: Topics, wire: Cluster):
    """By time; and for a group that has committed nothing."""
    topic = topics.create("a")
    for timestamp in (1000, 2000, 3000):
        topics.write(topic, 1, timestamp=timestamp)
    names, place = TopicListSubscriber((topic,)), TopicPartition(topic, 0)

    assert {place: 1} == Reader(wire, names, TimestampOffsets(1001)).found()
    assert {place: 3} == Reader(wire, names, TimestampOffsets(3001)).found()
    assert {place: 0} == Reader(wire, names, SpecifiedOffsets({})).found()
    assert {place: 0} == Reader(wire, names, SpecifiedOffsets({place: 4})).found()


def test_500_partitions_are_found_at_once(topics: Topics, wire: Cluster):
    """In a handful of requests."""
    topic = topics.create("many", 500)

    found = Reader(wire, TopicListSubscriber((topic,)), LatestOffsets()).found()

    assert {TopicPartition(topic, number): 0 for number in range(500)} == found
