"""Discoveries that fail, overlap, are due, or are switched off; what is counted."""

from __future__ import annotations

import logging
import re

import pytest

from discovery.cluster_double import T0, T1, T2, ClusterDouble, Log, Source
from headrace.connect.errors import RetriableError, TaskFailedError
from headrace.discovery.discoverer import PartitionDiscoverer
from headrace.discovery.enumerator import DiscoveryPolicies, PartitionEnumerator, RecreatedPolicy
from headrace.discovery.listing import Listing
from headrace.discovery.offsets_initializer import EarliestOffsets, LatestOffsets
from headrace.discovery.state import EnumeratorState, PartitionState, Status
from headrace.discovery.subscribers import TopicListSubscriber, TopicPatternSubscriber
from headrace.kafka.deadline import Deadline
from headrace.kafka.topic_partition import TopicPartition
from headrace.kafka.wire.error_codes import LEADER_NOT_AVAILABLE

AWAY = RetriableError("No broker answered within 10 s.")
NOTHING_MATCHES = TopicPatternSubscriber(re.compile("nothing"))


def test_e39_a_first_discovery_that_fails_is_an_error_and_leaves_no_trace():
    """The source does not start."""
    cluster = ClusterDouble.of(Log(0, 100))
    cluster.metadata_failures = [AWAY]
    source = Source(cluster, starting=LatestOffsets())

    with pytest.raises(RetriableError, match="No broker answered"):
        source.discover()
    assert EnumeratorState() == source.enumerator.snapshot()
    assert 1 == source.discoverer.counters.failed


def test_e40_a_later_discovery_that_fails_is_borne(caplog: pytest.LogCaptureFixture):
    """Flink restarts the whole job; Spark's query fails after three attempts."""
    cluster = ClusterDouble.of(Log(0, 100))
    source = Source(cluster)
    source.found()
    cluster.metadata_failures = [AWAY]
    before = source.enumerator.snapshot()

    failed = source.discover()
    counters = source.discoverer.counters
    source.discover()

    assert (AWAY, before) == (failed.failure, source.enumerator.snapshot())
    assert (2, 1, 1) == (counters.discoveries, counters.failed, counters.consecutive_failures)
    assert 0 == source.discoverer.counters.consecutive_failures
    own = [each for each in caplog.records if each.name == PartitionDiscoverer.__module__]
    (warning,) = (each.getMessage() for each in own if each.levelno == logging.WARNING)
    said = "1 of at most 12 times in a row; new ones are found when they can. No broker answered"
    assert said in warning


def test_e40_failures_without_an_end_are_told_once_in_ten_minutes(caplog: pytest.LogCaptureFixture):
    """And those that follow a success at once; that anything is read meanwhile is not for a discovery to say."""
    cluster = ClusterDouble.of(Log(0, 100))
    source = Source(cluster, max_failures=None)
    source.found()
    for failures in (21, 1):
        cluster.metadata_failures = [AWAY] * failures
        for _ in range(failures):
            source.discover()
            source.clock.sleep(30)
        source.discover()

    own = [each for each in caplog.records if each.name == PartitionDiscoverer.__module__]
    said = [each.getMessage() for each in own if each.levelno == logging.WARNING]
    expected = f"Partitions could not be discovered; new ones are found when they can. {AWAY}"
    assert 3 * [expected] == said


def test_e40_too_many_failures_in_a_row_are_an_error():
    """The next success begins the count anew."""
    cluster = ClusterDouble.of(Log(0, 100))
    source = Source(cluster, max_failures=3)
    source.found()
    cluster.metadata_failures = [AWAY, AWAY]
    failures = [source.discover().failure for _ in range(3)]
    cluster.metadata_failures = [AWAY, AWAY, AWAY]
    source.discover()
    source.discover()

    with pytest.raises(TaskFailedError, match=r"3 times in a row; last: No broker.*max\.failures"):
        source.discover()
    assert [AWAY, AWAY, None] == failures


def test_e41_a_partition_without_an_answer_does_not_hold_up_the_others_and_keeps_its_kind():
    """Flink's whole job fails."""
    cluster = ClusterDouble.of(Log(0, 100), Log(0, 50, is_unavailable=True))
    source = Source(cluster, starting=LatestOffsets())

    assert {T0: 100} == source.found()
    source.restart()
    cluster.topics["t"][1].is_unavailable = False
    assert {T1: 50} == source.found()


def test_e41_a_leader_that_does_not_answer_holds_up_no_partition_that_starts_in_another_way():
    """The starts of initial and of new partitions are asked for apart."""
    cluster = ClusterDouble.of(Log(0, 100, leader=None), Log(0, 9))
    source = Source(cluster, starting=LatestOffsets())
    source.found()
    cluster.topics["t"][0].leader = 1
    cluster.add(Log(0, 5, is_unavailable=True))

    assert {T0: 100} == source.found()
    assert 1 == source.discoverer.counters.held_back
    cluster.topics["t"][2].is_unavailable = False
    assert {T2: 0} == source.found()


def test_e41_partitions_whose_offsets_cannot_be_looked_up_keep_their_kind():
    """The listing counts; the rest is tried again."""
    cluster = ClusterDouble.of(Log(0, 100))
    cluster.offset_failures = [AWAY]
    source = Source(cluster, starting=LatestOffsets())
    with pytest.raises(RetriableError):
        source.discover()
    source.restart()

    assert source.enumerator.initial_discovery_finished
    assert {T0: 100} == source.found()


def test_e43_a_listing_during_a_look_up_does_not_find_the_same_partition_again():
    """Flink assigns it twice (B2)."""
    cluster = ClusterDouble.of(Log())
    subscriber = TopicListSubscriber(("t",))
    enumerator = PartitionEnumerator()
    listing = Listing(
        asked=subscriber.names, topics=cluster.metadata(["t"], Deadline.after(1)).topics
    )

    first = enumerator.discovered(subscriber, listing)
    second = enumerator.discovered(subscriber, listing)
    enumerator.resolved({T0: 5})
    enumerator.resolved({T0: 7})

    assert ((T0,), (), ()) == (first.initial, second.initial, second.new)
    assert [(T0, 5)] == [(each.place, each.start) for each in enumerator.unassigned()]


def test_discoveries_are_due_after_each_interval():
    """The first one of a process at once, also after a restart."""
    source = Source(ClusterDouble.of(Log()), interval_seconds=60)
    due = [source.discoverer.is_due(source.enumerator)]
    source.found()
    for source.clock.now in (0, 59, 60):
        due.append(source.discoverer.is_due(source.enumerator))
    source.restart()

    assert [True, False, False, True] == due
    assert source.discoverer.is_due(source.enumerator)


def test_while_partitions_are_held_back_the_next_discovery_comes_sooner():
    """Leaders are elected within seconds; a failed discovery waits for its interval."""
    source = Source(ClusterDouble.of(Log(leader=None)))
    source.found()
    source.clock.now = 31
    sooner = source.discoverer.is_due(source.enumerator)
    source.cluster.metadata_failures = [AWAY]
    source.discover()
    source.clock.now = 100

    assert (True, False) == (sooner, source.discoverer.is_due(source.enumerator))


def test_e49_without_an_interval_later_partitions_are_never_read():
    """There is one discovery, and none is due after it."""
    cluster = ClusterDouble.of(Log())
    source = Source(cluster, interval_seconds=None)
    source.found()
    cluster.add(Log(0, 5))
    source.clock.now = 10**9

    assert not source.discoverer.is_due(source.enumerator)
    assert {} == source.found()


def test_e49_without_an_interval_a_partition_that_was_held_back_is_still_read():
    """And no other one is found by the discoveries that look for it."""
    cluster = ClusterDouble.of(Log(0, 5), Log(0, 9, leader=None))
    source = Source(cluster, interval_seconds=None, starting=LatestOffsets())
    source.found()
    cluster.topics["t"][1].leader = 1
    cluster.add(Log(0, 7))
    source.clock.now = 31

    assert source.discoverer.is_due(source.enumerator)
    assert {T1: 9} == source.found()
    assert source.discoverer.is_complete(source.enumerator)


def test_e40_e49_without_an_interval_a_discovery_that_fails_is_tried_again_until_one_succeeds():
    """What was added while no process ran is found by the first discovery of the next one, or never."""
    cluster = ClusterDouble.of(Log(0, 5))
    source = Source(cluster, interval_seconds=None)
    source.found()
    cluster.add(Log(0, 7))
    source.restart()
    cluster.metadata_failures = [AWAY]
    failed = source.discover().failure
    at_once = source.discoverer.is_due(source.enumerator)
    is_complete = source.discoverer.is_complete(source.enumerator)
    source.clock.now = 31

    assert (AWAY, False, False) == (failed, at_once, is_complete)
    assert source.discoverer.is_due(source.enumerator)
    assert {T1: 0} == source.found()
    assert source.discoverer.is_complete(source.enumerator)
    assert not source.discoverer.is_due(source.enumerator)


def test_e49_without_an_interval_a_topic_of_which_the_brokers_do_not_say_all_is_asked_for_again():
    """It may have got partitions while no process ran."""
    cluster = ClusterDouble.of(Log(0, 5))
    source = Source(cluster, interval_seconds=None)
    source.found()
    cluster.add(Log(0, 7))
    source.restart()
    cluster.errors = {"t": LEADER_NOT_AVAILABLE}
    nothing = source.found()
    cluster.errors = {}

    assert ({}, {T1: 0}) == (nothing, source.found())


def test_e51_a_bounded_source_reads_the_partitions_of_its_first_discovery():
    """Whatever its interval."""
    cluster = ClusterDouble.of(Log(0, 10))
    source = Source(cluster, stopping=LatestOffsets(), bounded=True, interval_seconds=5)
    source.discover()
    splits = source.enumerator.unassigned()
    cluster.add(Log(0, 5))
    source.clock.now = 10

    assert [(T0, 0, 10)] == [(each.place, each.start, each.stop) for each in splits]
    assert source.discoverer.is_complete(source.enumerator)
    assert not source.discoverer.is_due(source.enumerator)


def test_e52_a_bounded_source_that_is_restored_knows_that_it_is_complete():
    """Flink's never ends after a restore (B3)."""
    source = Source(ClusterDouble.of(Log(0, 10)), stopping=LatestOffsets(), bounded=True)
    before = source.discoverer.is_complete(source.enumerator)
    source.found()
    source.restart()

    assert (False, True) == (before, source.discoverer.is_complete(source.enumerator))
    assert not source.discoverer.is_due(source.enumerator)


def test_e53_a_bounded_source_without_partitions_is_complete():
    """Flink's never ends (B3)."""
    source = Source(
        ClusterDouble.of(Log()), NOTHING_MATCHES, stopping=LatestOffsets(), bounded=True
    )

    assert {} == source.found()
    assert source.discoverer.is_complete(source.enumerator)


def test_e54_an_empty_partition_stops_where_it_starts():
    """Nothing has to be read for it."""
    source = Source(ClusterDouble.of(Log()), stopping=LatestOffsets(), bounded=True)
    source.discover()

    assert [(0, 0)] == [(each.start, each.stop) for each in source.enumerator.unassigned()]


def test_e60_a_reader_lost_before_it_has_read_gives_its_partition_back_once():
    """With the start that it was assigned."""
    source = Source(ClusterDouble.of(Log(0, 100)), starting=LatestOffsets())
    source.found()
    splits = source.enumerator.with_readers()
    source.enumerator.reader_lost(splits)
    source.enumerator.reader_lost(splits)

    assert [(T0, 100, None)] == [
        (each.place, each.start, each.position) for each in source.enumerator.unassigned()
    ]
    assert ({T0: 100}, {}) == (source.handed_out(), source.handed_out())


def test_e60_what_is_said_late_of_a_reader_takes_nothing_from_the_next_one():
    """Though that one has got the partition at the same offset."""
    source = Source(ClusterDouble.of(Log(0, 100)))
    source.found()
    first = source.enumerator.with_readers()
    source.enumerator.reader_lost(first)
    source.handed_out()
    second = source.enumerator.with_readers()
    source.enumerator.reader_lost(each._replace(position=7) for each in first)

    assert second == source.enumerator.with_readers()
    source.enumerator.reader_lost(each._replace(position=9) for each in second)
    assert {T0: 9} == source.handed_out()


def test_what_is_said_late_of_the_old_topic_does_not_count_for_the_new_one():
    """Its position would skip what the new one begins with."""
    cluster = ClusterDouble.of(Log(0, 100))
    source = Source(cluster, policies=DiscoveryPolicies(recreated=RecreatedPolicy.RESTART))
    source.found()
    old = [each._replace(position=100) for each in source.enumerator.with_readers()]
    cluster.create("t", Log(0, 150))
    source.discover()
    source.enumerator.reader_lost(old)
    starts = source.handed_out()
    source.enumerator.reader_lost(old)

    assert {T0: 0} == starts
    assert [(0, None)] == [(each.start, each.position) for each in source.enumerator.with_readers()]


def test_a_position_that_only_the_reader_knows_is_never_resolved_again():
    """An assigned partition of an older state of Flink's has no start; what its reader knows is in the reader's own store."""
    known = PartitionState(Status.ASSIGNED)
    source = Source(ClusterDouble.of(Log(0, 100)))
    source.restart(EnumeratorState(partitions={T0: known}, initial_discovery_finished=True))
    source.enumerator.reader_lost(source.enumerator.with_readers())
    source.discover()

    assert {T0: None} == source.handed_out()


def test_what_was_found_is_counted():
    """For metrics."""
    cluster = ClusterDouble.of(Log(0, 100))
    source = Source(cluster, starting=EarliestOffsets())
    source.found()
    cluster.add(Log(), Log(leader=None))
    source.discover()

    counters = source.discoverer.counters

    assert (2, 0, 3, 1, 1) == (
        counters.discoveries,
        counters.failed,
        counters.known,
        counters.new,
        counters.held_back,
    )
    assert counters.last_success_ms > 10**12
    assert 0 == counters.last_duration_ms


def test_what_is_not_assigned_cannot_be_read():
    """Errors of whoever uses the enumerator are raised where they are made."""
    enumerator = PartitionEnumerator(
        EnumeratorState(partitions={T0: PartitionState(Status.REMOVED)})
    )

    with pytest.raises(ValueError, match="t-0 is not assigned"):
        enumerator.advanced({T0: 1})
    with pytest.raises(ValueError, match="t-0 is not there to be assigned"):
        enumerator.assigned([T0])
    with pytest.raises(KeyError):
        enumerator.assigned([TopicPartition("x", 0)])


def test_what_is_found_is_counted_in_words(caplog: pytest.LogCaptureFixture):
    """One partition is none of several, and where those of a later discovery start is said."""
    caplog.set_level(logging.INFO)
    cluster = ClusterDouble.of(Log(0, 100))
    source = Source(cluster)
    source.found()
    cluster.add(Log(0, 9), Log(0, 9), Log(0, 9, leader=None))
    source.found()

    own = [each for each in caplog.records if each.name == PartitionDiscoverer.__module__]
    assert [
        "The first discovery has found 1 partition of 1 topic: t.",
        "A later discovery has found 2 partitions of 1 topic, to be read from the beginning: t.",
        "No leader answers now for 1 partition, such as t-3; reading begins when one does.",
    ] == [each.getMessage() for each in own]
