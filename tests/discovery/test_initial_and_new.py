"""Partitions that are there at the first discovery start as configured; those found later start at their beginning."""

from __future__ import annotations

import re

import pytest

from discovery.cluster_double import T0, T1, ClusterDouble, Log, Source
from headrace.discovery.enumerator import DataLossPolicy, DiscoveryPolicies, PartitionLossError
from headrace.discovery.findings import Change
from headrace.discovery.offsets_initializer import (
    EarliestOffsets,
    LatestOffsets,
    OffsetsInitializer,
    SpecifiedOffsets,
    TimestampOffsets,
)
from headrace.discovery.state import EnumeratorState
from headrace.discovery.subscribers import TopicListSubscriber, TopicPatternSubscriber
from headrace.kafka.topic_partition import TopicPartition

P0 = TopicPartition("p", 0)
PATTERN = TopicPatternSubscriber(re.compile("p.*"))
REPORT = DiscoveryPolicies(truncated=DataLossPolicy.CONTINUE)
MODES = (LatestOffsets(), TimestampOffsets(10**15), SpecifiedOffsets({T1: 3}), EarliestOffsets())


def test_e01_latest_is_a_number_that_the_first_discovery_has_fixed():
    """What is written later is read, however late the reader comes."""
    cluster = ClusterDouble.of(Log(0, 100))
    source = Source(cluster, starting=LatestOffsets())
    source.discover()
    cluster.topics["t"][0].end = 150

    assert {T0: 100} == source.handed_out()


@pytest.mark.parametrize("mode", MODES, ids=lambda mode: type(mode).__name__)
def test_e02_a_partition_that_was_added_is_read_from_its_beginning(mode: OffsetsInitializer):
    """Seven records were written before it was discovered."""
    cluster = ClusterDouble.of(Log(0, 100))
    source = Source(cluster, starting=mode)
    source.found()
    cluster.add(Log(0, 7))

    assert {T1: 0} == source.found()


def test_e03_earliest_is_where_the_log_begins():
    """Its first records have been deleted by retention."""
    assert {T0: 20} == Source(ClusterDouble.of(Log(20, 100))).found()


def test_e04_a_new_partition_without_its_first_records_is_reported():
    """Flink reads the rest and says nothing; here it fails, or is reported."""
    cluster = ClusterDouble.of(Log())
    source = Source(cluster, policies=REPORT)
    source.found()
    cluster.add(Log(5, 12))

    (finding,) = source.discover().findings

    assert (Change.TRUNCATED, "t", (1,)) == finding[:3]
    assert "Of the topic t, 1 partition new, and without the first records" in finding.sentence
    assert "1 begins at 5" in finding.sentence
    assert {T1: 5} == source.handed_out()
    assert 1 == source.discoverer.counters.data_losses


def test_e04_a_new_partition_without_its_first_records_fails_by_default():
    """Nothing is recorded, so that the policy may be changed."""
    cluster = ClusterDouble.of(Log())
    source = Source(cluster)
    source.found()
    cluster.add(Log(5, 12))

    with pytest.raises(PartitionLossError, match=r"1 begins at 5.*on\.truncated to continue"):
        source.discover()
    source.policies = REPORT
    source.restart()

    assert {T1: 5} == source.found()


def test_e05_a_restart_before_the_first_discovery_ended_begins_anew():
    """The state says that there was none."""
    cluster = ClusterDouble.of(Log(0, 100))
    source = Source(cluster, starting=LatestOffsets())
    source.restart()
    cluster.topics["t"][0].end = 130

    assert {T0: 130} == source.found()


def test_e06_what_appears_after_an_empty_first_discovery_is_new():
    """Flink 5.0 takes it for initial, and loses what was written before with LATEST (B1)."""
    cluster = ClusterDouble.of(Log())
    source = Source(cluster, PATTERN, LatestOffsets())
    empty = source.found()
    cluster.create("p", Log(0, 5))

    assert ({}, {P0: 0}) == (empty, source.found())


def test_e07_an_empty_first_discovery_is_remembered_over_a_restart():
    """The flag is stored."""
    cluster = ClusterDouble.of(Log())
    source = Source(cluster, PATTERN, LatestOffsets())
    source.found()
    source.restart()
    cluster.create("p", Log(0, 5))

    assert {P0: 0} == source.found()


def test_e08_a_start_that_was_resolved_survives_a_restart_before_the_assignment():
    """Flink before 5.0 resolved it again, and lost what was written meanwhile."""
    cluster = ClusterDouble.of(Log(0, 100))
    source = Source(cluster, starting=LatestOffsets())
    source.discover()
    source.restart()
    cluster.topics["t"][0].end = 150
    source.discover()

    assert {T0: 100} == source.handed_out()


def test_e09_a_new_partition_that_was_not_assigned_is_assigned_once_after_a_restart():
    """From its beginning."""
    cluster = ClusterDouble.of(Log(0, 100))
    source = Source(cluster, starting=LatestOffsets())
    source.found()
    cluster.add(Log(0, 7))
    source.discover()
    source.restart()
    source.discover()

    assert ({T1: 0}, {}) == (source.handed_out(), source.found())


@pytest.mark.parametrize("mode", MODES, ids=lambda mode: type(mode).__name__)
def test_e10_a_partition_added_during_a_stop_is_new(mode: OffsetsInitializer):
    """Whatever the mode."""
    cluster = ClusterDouble.of(Log(0, 100))
    source = Source(cluster, starting=mode)
    source.found()
    cluster.add(Log(0, 7))
    source.restart()

    assert {T1: 0} == source.found()


def test_e11_a_topic_added_to_the_list_is_read_from_where_its_log_begins():
    """Even with LATEST; that its first records are gone is no loss, since no one has wanted them before."""
    cluster = ClusterDouble.of(Log(0, 100))
    source = Source(cluster, starting=LatestOffsets())
    source.found()
    cluster.create("p", Log(40, 50))
    source.subscriber = TopicListSubscriber(("t", "p"))
    source.restart()

    assert {P0: 40} == source.found()


def test_e11_a_partition_of_an_added_topic_that_had_no_leader_yet_is_no_loss_either():
    """Its other partitions are read meanwhile, over a restart; what is added later than these has lost its first records."""
    cluster = ClusterDouble.of(Log(0, 100))
    source = Source(cluster)
    source.found()
    cluster.create("p", Log(5, 50), Log(5, 50, leader=None))
    source.subscriber = TopicListSubscriber(("t", "p"))
    source.restart()
    before = source.found()
    source.restart()
    cluster.topics["p"][1].leader = 1

    assert ({P0: 5}, {TopicPartition("p", 1): 5}) == (before, source.found())
    cluster.add(Log(5, 9), topic="p")
    with pytest.raises(PartitionLossError, match="2 begins at 5"):
        source.discover()


def test_e04_a_new_partition_that_has_lost_its_first_records_while_it_had_no_leader_is_reported():
    """What is expected of it is decided when it is found, and stored."""
    cluster = ClusterDouble.of(Log(0, 100))
    source = Source(cluster)
    source.found()
    cluster.add(Log(0, 9, leader=None))
    source.found()
    source.restart()
    cluster.topics["t"][1] = Log(5, 9)

    with pytest.raises(PartitionLossError, match="1 begins at 5"):
        source.discover()


def test_e12_a_topic_dropped_from_the_list_is_not_read_and_resumes_when_it_is_there_again():
    """Flink goes on reading it; Spark fails, or forgets its position."""
    cluster = ClusterDouble.of(Log(0, 100))
    cluster.create("p", Log(0, 50))
    source = Source(cluster, TopicListSubscriber(("t", "p")))
    source.found()
    source.enumerator.advanced({T0: 10, P0: 20})
    source.subscriber = TopicListSubscriber(("t",))
    source.restart()

    dropped = source.discover()
    source.subscriber = TopicListSubscriber(("t", "p"))
    source.restart()
    returned = source.discover()

    assert [(Change.UNSUBSCRIBED, "p")] == [each[:2] for each in dropped.findings]
    assert (P0,) == (dropped.comparison and dropped.comparison.revoked)
    assert [(Change.RETURNED, "p")] == [each[:2] for each in returned.findings]
    assert {P0: 20} == source.handed_out()


def test_e38_a_partition_that_the_first_answer_did_not_have_is_new():
    """The brokers did not say that anything was missing: it is read from its beginning, as documented."""
    cluster = ClusterDouble.of(Log(0, 100), Log(0, 30))
    cluster.hidden = {T1}
    source = Source(cluster, starting=LatestOffsets())

    assert ({T0: 100}, {T1: 0}) == (source.found(), source.found())


def test_e62_a_partition_made_since_a_state_of_the_first_versions_is_new():
    """Those states say that the first discovery is over."""
    source = Source(ClusterDouble.of(Log(0, 100)), starting=LatestOffsets())
    source.restart(EnumeratorState(initial_discovery_finished=True))

    assert {T0: 0} == source.found()


def test_e66_the_state_has_the_starts_of_the_batch_that_it_ends():
    """Spark runs a batch again from the two states alone; the start of the first one is in its end."""
    source = Source(ClusterDouble.of(Log(0, 100)), starting=LatestOffsets())
    source.found()
    source.enumerator.advanced({T0: 107})

    stored = EnumeratorState.from_json(source.enumerator.snapshot().to_json())

    assert (100, 107) == (stored.partitions[T0].start, stored.partitions[T0].position)


def test_e67_the_start_of_a_new_partition_is_a_stored_number():
    """Spark's own source stores none: run again after retention, its batch begins elsewhere."""
    cluster = ClusterDouble.of(Log())
    source = Source(cluster)
    source.found()
    cluster.add(Log(0, 9))
    source.found()
    source.enumerator.advanced({T1: 9})
    cluster.topics["t"][1].start = 4
    source.restart()
    source.discover()

    assert (0, 9) == (
        source.enumerator.partitions[T1].start,
        source.enumerator.partitions[T1].position,
    )
