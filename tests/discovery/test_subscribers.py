"""Which partitions a subscription means."""

from __future__ import annotations

import re
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass

import pytest

from discovery.cluster_double import T0, T1, ClusterDouble, Log, Source
from headrace.connect.errors import ConfigError, TaskFailedError
from headrace.discovery.subscribers import (
    Growth,
    PartitionSetSubscriber,
    Subscriber,
    TopicListSubscriber,
    TopicPatternSubscriber,
    subscriber,
)
from headrace.kafka.topic_partition import TopicPartition
from headrace.kafka.wire.cluster import TopicMetadata


def topics_of(found: Subscriber, *names: str, internal: str = "") -> set[str]:
    """The topics of a cluster that has those named, and reads what *found* says."""
    cluster = ClusterDouble(internal={internal})
    for name in names:
        cluster.create(name)
    return {place.topic for place in Source(cluster, found).found()}


def test_many_names_are_looked_up_at_once():
    """10,000 topics by name cost no more than the loop over them."""
    names = tuple(f"topic-{number}" for number in range(10_000))
    topics = {name: TopicMetadata(name, None, False, None, {}) for name in names}
    began = time.process_time()
    TopicListSubscriber(names).subscribed(topics)

    assert time.process_time() - began < 0.5


def test_e45_a_name_that_is_there_twice_counts_once():
    """Its partitions are read once."""
    found = subscriber(topics=["a", "a"])

    assert TopicListSubscriber(("a",)) == found
    assert {"a"} == topics_of(found, "a", "b")


@pytest.mark.parametrize(
    "given",
    [
        {"topics": ["a"], "pattern": "a"},
        {"pattern": "a", "partitions": {T0}},
        {"topics": [], "partitions": set[TopicPartition]()},
        {"custom": TopicListSubscriber(("a",)), "topics": ["a"]},
    ],
)
def test_e46_two_ways_to_subscribe_are_refused(given: dict[str, object]):
    """The message names both."""
    with pytest.raises(ConfigError, match=r"Exactly one.* are given"):
        subscriber(**given)  # type: ignore[arg-type]


def test_e46_no_way_to_subscribe_is_refused():
    """The message names all."""
    with pytest.raises(ConfigError, match=r"Exactly one.*none is given"):
        subscriber()


def test_e47_a_pattern_matches_whole_names():
    """Spark's source searches in the name."""
    assert {"topic"} == topics_of(subscriber(pattern="topic"), "topic", "topic1", "atopic")


def test_a_pattern_never_matches_internal_topics_and_a_list_does():
    """Only who names one wants it."""
    names = ("__consumer_offsets", "a")

    assert {"a"} == topics_of(subscriber(pattern=".*"), *names, internal=names[0])
    assert {names[0]} == topics_of(subscriber(topics=names[:1]), *names, internal=names[0])


def test_a_pattern_is_one_of_java():
    """As in Spark and Flink; what Python cannot express is refused and not taken for something else."""
    assert {"a.b", "a1"} == topics_of(subscriber(pattern=r"\p{Lower}.*"), "a.b", "a1", "B")
    with pytest.raises(ConfigError, match="cannot be used as a regular expression of Java"):
        subscriber(pattern="(")


def test_e48_a_set_of_partitions_never_grows():
    """Other partitions of the topic are not read."""
    cluster = ClusterDouble.of(Log())
    source = Source(cluster, PartitionSetSubscriber(frozenset({T0})))
    first = source.found()
    cluster.add(Log())

    assert ({T0: 0}, {}) == (first, source.found())


def test_a_partition_of_a_set_that_is_not_there_is_an_error_that_names_it():
    """Spark ignores it, and reads it as new if it comes later."""
    found = subscriber(partitions={T0, TopicPartition("t", 5)})

    with pytest.raises(TaskFailedError, match="partition t-5 is to be read and is not on"):
        Source(ClusterDouble.of(Log()), found).discover()


def test_a_set_may_grow_by_the_user_and_old_records_that_are_gone_are_no_loss():
    """No one has wanted them before."""
    source = Source(ClusterDouble.of(Log(), Log(40, 50)), PartitionSetSubscriber(frozenset({T0})))
    source.found()
    source.subscriber = PartitionSetSubscriber(frozenset({T0, T1}))
    source.restart()

    assert {T1: 40} == source.found()


@pytest.mark.parametrize("found", [subscriber(topics=[]), subscriber(partitions=set())])
def test_an_empty_subscription_reads_nothing_and_asks_no_one(found: Subscriber):
    """It is no error, and a request without names would mean all topics to some brokers."""
    cluster = ClusterDouble.of(Log())

    assert ({}, []) == (Source(cluster, found).found(), cluster.asked)


@dataclass(frozen=True)
class EvenPartitions:
    """A user's own."""

    names: None = None
    growth: Growth = Growth.TOPICS

    def subscribed(self, topics: Mapping[str, TopicMetadata]) -> Collection[TopicPartition]:
        """Every second partition of each topic."""
        return [
            TopicPartition(name, number)
            for name, topic in topics.items()
            for number in topic.partitions
            if number % 2 == 0
        ]


def test_an_own_subscriber_chooses_from_the_metadata():
    """It grows as the topics do."""
    cluster = ClusterDouble.of(Log(), Log())
    source = Source(cluster, subscriber(custom=EvenPartitions()))
    first = source.found()
    cluster.add(Log())

    assert ({T0: 0}, {TopicPartition("t", 2): 0}) == (first, source.found())


def test_a_pattern_that_was_compiled_is_used_as_it_is():
    """With Python's flags."""
    assert {"A", "a"} == topics_of(TopicPatternSubscriber(re.compile("A", re.IGNORECASE)), "A", "a")
