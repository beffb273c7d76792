"""10,000 partitions in one discovery: few requests, and a state that is as long as it has to be."""

from __future__ import annotations

import re

import pytest

from discovery.cluster_double import ClusterDouble, Log, Source
from headrace.discovery.discoverer import PartitionDiscoverer
from headrace.discovery.offsets_initializer import LatestOffsets, SpecifiedOffsets
from headrace.discovery.state import VERSION, EnumeratorState
from headrace.discovery.state_serializer import from_bytes, to_bytes
from headrace.discovery.subscribers import TopicPatternSubscriber

TOPICS, PARTITIONS = 100, 100
ANY = TopicPatternSubscriber(re.compile("topic-.*"))


def big_cluster() -> ClusterDouble:
    """100 topics of 100 partitions, with billions of records each."""
    cluster = ClusterDouble()
    for topic in range(TOPICS):
        logs = [Log(0, 5_000_000_000 + number) for number in range(PARTITIONS)]
        cluster.create(f"topic-{topic}", *logs)
    return cluster


def test_a_discovery_of_many_partitions_needs_as_many_requests_as_one_of_few():
    """The wire sends one of these to each broker, whatever the number of partitions."""
    cluster = big_cluster()
    source = Source(cluster, ANY, LatestOffsets())
    first = source.found()
    asked = [*cluster.asked]
    cluster.add(*(Log() for _ in range(PARTITIONS)), topic="topic-1")
    source.found()

    assert TOPICS * PARTITIONS == len(first)
    assert ["metadata", "offsets"] == asked
    assert ["metadata", "offsets"] == cluster.asked[len(asked) :]


def test_where_offsets_are_specified_a_discovery_needs_four_requests():
    """The listing, the commits, and the two ends of the logs."""
    cluster = big_cluster()
    Source(cluster, ANY, SpecifiedOffsets({})).discover()

    assert ["committed", "metadata", "offsets"] == sorted(set(cluster.asked))
    assert 4 >= len(cluster.asked)


def test_the_state_of_many_partitions_is_small():
    """As JSON about as long as Spark's own offsets, 18 bytes for each partition; as bytes a fraction of it."""
    source = Source(big_cluster(), ANY, LatestOffsets())
    starts = source.found()
    source.enumerator.advanced({place: start or 0 for place, start in starts.items()})
    source.enumerator.advanced({place: (start or 0) + 1 for place, start in starts.items()})
    state = source.enumerator.snapshot()

    assert len(state.to_json()) < 20 * TOPICS * PARTITIONS
    assert len(to_bytes(state)) < 5 * TOPICS * PARTITIONS
    assert state == EnumeratorState.from_json(state.to_json())
    assert state == from_bytes(VERSION, to_bytes(state))


def test_what_is_found_is_logged_in_few_lines(caplog: pytest.LogCaptureFixture):
    """One for each topic at most, with the first few partitions."""
    source = Source(big_cluster(), ANY, SpecifiedOffsets({}))
    findings = source.discover().findings

    assert TOPICS == len(findings)
    own = [each for each in caplog.records if each.name == PartitionDiscoverer.__module__]
    assert TOPICS <= len(own) <= TOPICS + 2
    assert max(len(each.sentence) for each in findings) < 400
