"""Topics that are missing, deleted, made again, without a leader, or only half answered."""

from __future__ import annotations

import re
from collections.abc import Collection
from uuid import UUID

import pytest

from discovery.cluster_double import T0, T1, T2, T3, ClusterDouble, Log, Source
from headrace.connect.errors import RetriableError, TaskFailedError
from headrace.discovery.enumerator import (
    DataLossPolicy,
    DiscoveryPolicies,
    PartitionEnumerator,
    PartitionLossError,
    RecreatedPolicy,
)
from headrace.discovery.findings import Change
from headrace.discovery.listing import Listing
from headrace.discovery.offsets_initializer import LatestOffsets
from headrace.discovery.settings import DiscoveryConfig
from headrace.discovery.state import Kind, Status
from headrace.discovery.subscribers import (
    Growth,
    PartitionSetSubscriber,
    Subscriber,
    TopicListSubscriber,
    TopicPatternSubscriber,
)
from headrace.kafka.deadline import Deadline
from headrace.kafka.topic_partition import TopicPartition
from headrace.kafka.wire.cluster import ClusterMetadata
from headrace.kafka.wire.error_codes import LEADER_NOT_AVAILABLE, error_code

P0, P1 = TopicPartition("p", 0), TopicPartition("p", 1)
BOTH = TopicListSubscriber(("t", "p"))
ANY = TopicPatternSubscriber(re.compile(".*"))
CONTINUE = DiscoveryPolicies(
    removed=DataLossPolicy.CONTINUE,
    recreated=RecreatedPolicy.CONTINUE,
    truncated=DataLossPolicy.CONTINUE,
)
RESTART = DiscoveryPolicies(recreated=RecreatedPolicy.RESTART)


def two_topics() -> ClusterDouble:
    """``t`` and ``p``, with one partition each."""
    cluster = ClusterDouble.of(Log(0, 100))
    cluster.create("p", Log(0, 100))
    return cluster


def reading(
    subscriber: Subscriber, cluster: ClusterDouble, policies: DiscoveryPolicies = CONTINUE
) -> Source:
    """A source that has read ten records of each partition."""
    source = Source(cluster, subscriber, LatestOffsets(), policies=policies)
    source.found()
    source.enumerator.advanced(dict.fromkeys(source.enumerator.partitions, 10))
    return source


def test_e31_a_missing_topic_fails_the_first_discovery_by_its_name():
    """It is asked for twice; nothing is read."""
    cluster = ClusterDouble.of(Log())
    source = Source(cluster, BOTH)

    with pytest.raises(TaskFailedError, match="1 topic to be read, and not on the brokers: p"):
        source.discover()
    assert ["metadata", "metadata again"] == cluster.asked
    assert [] == source.enumerator.unassigned()
    assert not source.enumerator.initial_discovery_finished


def test_e31_a_topic_that_is_missing_from_one_answer_only_is_not_missing():
    """The second answer has it."""
    cluster = two_topics()
    cluster.hidden = {"p"}

    assert {P0: 0, T0: 0} == Source(cluster, BOTH).found()


def test_e32_a_deleted_topic_fails_by_default():
    """Flink fails over again and again; here the error names the topic and the setting."""
    cluster = two_topics()
    source = reading(BOTH, cluster, DiscoveryConfig.parse({}).policies(BOTH.growth))
    cluster.delete("p")

    with pytest.raises(PartitionLossError, match=r"topic p, 1 partition not on.*on\.removed"):
        source.discover()
    assert Status.ASSIGNED is source.enumerator.partitions[P0].status


def test_e32_a_deleted_topic_is_reported_once_and_the_others_are_read_on():
    """By policy."""
    cluster = two_topics()
    source = reading(BOTH, cluster)
    cluster.delete("p")

    found, again = source.discover(), source.discover()

    assert [(Change.REMOVED, "p", (0,))] == [each[:3] for each in found.findings]
    assert (P0,) == (found.comparison and found.comparison.revoked)
    assert () == again.findings
    assert Status.ASSIGNED is source.enumerator.partitions[T0].status
    assert 1 == source.discoverer.counters.removed


def test_e33_a_deleted_topic_of_a_pattern_is_reported_by_default_and_its_position_kept():
    """Flink's reader warns forever; Spark fails, or forgets the position."""
    cluster = two_topics()
    source = reading(ANY, cluster, DiscoveryConfig.parse({}).policies(ANY.growth))
    cluster.delete("p")

    found = source.discover()

    assert [(Change.REMOVED, "p", (0,))] == [each[:3] for each in found.findings]
    assert (Status.REMOVED, 10) == (
        source.enumerator.partitions[P0].status,
        source.enumerator.partitions[P0].position,
    )


@pytest.mark.parametrize("subscriber", [BOTH, ANY], ids=["list", "pattern"])
@pytest.mark.parametrize("end", [30, 150], ids=["shorter", "longer"])
def test_e34_e35_a_recreated_topic_fails_by_default(subscriber: Subscriber, end: int):
    """Known by its topic id. Flink skips what the new one has, silently where it is longer than the old one."""
    cluster = two_topics()
    source = reading(subscriber, cluster, DiscoveryConfig.parse({}).policies(subscriber.growth))
    cluster.delete("p")
    cluster.create("p", Log(0, end))

    with pytest.raises(PartitionLossError, match=r"topic p was deleted and.*on\.recreated"):
        source.discover()


@pytest.mark.parametrize("end", [30, 150], ids=["shorter", "longer"])
def test_e34_e35_a_recreated_topic_restarts_at_its_beginning(end: int):
    """By policy; what had been read of the old one is forgotten."""
    cluster = two_topics()
    source = reading(BOTH, cluster, RESTART)
    cluster.delete("p")
    cluster.create("p", Log(0, end))

    found = source.discover()
    starts = source.handed_out()
    source.enumerator.advanced({P0: end})

    assert [(Change.RECREATED, "p", (0,))] == [each[:3] for each in found.findings]
    assert ((P0,), {P0: 0}) == (found.comparison and found.comparison.revoked, starts)
    stored = source.enumerator.snapshot()
    assert (0, end) == (stored.partitions[P0].start, stored.partitions[P0].position)
    assert cluster.ids["p"] == stored.topic_ids["p"]


def test_e34_a_topic_has_another_id_only_when_a_second_answer_says_so():
    """A broker that lags behind still has the old topic: read from its beginning again, and then the new one again."""
    cluster = two_topics()
    old = cluster.ids["p"]
    source = reading(BOTH, cluster, RESTART)
    cluster.create("p", Log(0, 30))
    new = source.found()
    cluster.stale_ids = {"p": old}
    lagging = source.discover()

    assert ({P0: 0}, (), {}) == (new, lagging.findings, source.handed_out())
    assert cluster.ids["p"] == source.enumerator.topic_ids["p"]


def test_a_topic_of_which_the_brokers_say_different_things_stays_as_it_is(
    monkeypatch: pytest.MonkeyPatch,
):
    """Created again by one answer, and gone by the next: another discovery will tell."""
    cluster = two_topics()
    source = reading(BOTH, cluster, RESTART)
    plain, before = cluster.metadata, source.enumerator.snapshot()

    def deleted_meanwhile(
        topics: Collection[str] | None, deadline: Deadline, *, again: bool = False
    ) -> ClusterMetadata:
        if again:
            cluster.delete("p")
        return plain(topics, deadline, again=again)

    monkeypatch.setattr(cluster, "metadata", deleted_meanwhile)
    cluster.stale_ids = {"p": UUID(int=99)}

    assert () == source.discover().findings
    assert before == source.enumerator.snapshot()


def test_a_first_answer_without_any_topic_is_asked_for_again():
    """Otherwise every partition would be new, and be read from its beginning."""
    cluster = ClusterDouble.of(Log(0, 100))
    cluster.hidden = {"t"}

    assert {T0: 100} == Source(cluster, ANY, LatestOffsets()).found()
    assert ["metadata", "metadata again"] == cluster.asked[:2]


def test_e34_a_recreated_topic_is_read_on_at_the_old_position():
    """By policy; if the new one has no such offset, that is the reader's to report."""
    cluster = two_topics()
    source = reading(BOTH, cluster)
    cluster.delete("p")
    cluster.create("p", Log(0, 30))

    (finding,) = source.discover().findings
    (split,) = source.enumerator.unassigned()

    assert Change.RECREATED is finding.change
    assert (P0, cluster.ids["p"], 10) == (split.place, split.topic_id, split.position)


def test_e34_a_topic_without_ids_is_taken_for_the_same_one():
    """Brokers before 2.8 have none, and say nothing about it."""
    cluster = two_topics()
    cluster.ids["p"] = None  # type: ignore[assignment]
    source = reading(BOTH, cluster)

    assert () == source.discover().findings


def test_e36_partitions_that_a_recreated_topic_does_not_have_are_forgotten():
    """Should it get them later, they are new ones."""
    cluster = ClusterDouble.of(*(Log(0, 100) for _ in range(4)))
    source = reading(TopicListSubscriber(("t",)), cluster, RESTART)
    cluster.delete("t")
    cluster.create("t", Log(0, 5), Log(0, 5))

    (finding,) = source.discover().findings

    assert (0, 1, 2, 3) == finding.partitions
    assert {T0: 0, T1: 0} == source.handed_out()
    cluster.add(Log(0, 3), Log(0, 3))
    assert {T2: 0, T3: 0} == source.found()


def test_e36_a_partition_of_a_set_that_a_recreated_topic_does_not_have_is_an_error():
    """It has been asked for by its number."""
    cluster = ClusterDouble.of(*(Log(0, 100) for _ in range(3)))
    source = reading(PartitionSetSubscriber(frozenset({T0, T2})), cluster, RESTART)
    cluster.delete("t")
    cluster.create("t", Log(0, 5), Log(0, 5))

    with pytest.raises(TaskFailedError, match="partition t-2 is to be read and is not on"):
        source.discover()


@pytest.mark.parametrize("hidden", [{T1}, {"t"}], ids=["partition", "topic"])
@pytest.mark.parametrize("subscriber", [TopicListSubscriber(("t",)), ANY], ids=["list", "pattern"])
def test_e37_what_is_missing_from_one_answer_is_not_removed(
    hidden: set[TopicPartition | str], subscriber: Subscriber
):
    """It is not read again either; Spark reads it from its beginning, twice."""
    cluster = ClusterDouble.of(Log(0, 100), Log(0, 100))
    cluster.create("x")
    source = reading(subscriber, cluster, DiscoveryPolicies())
    cluster.hidden = hidden
    before = source.enumerator.snapshot()

    flickering, after = source.discover(), source.discover()

    assert ((), ()) == (flickering.findings, after.findings)
    assert before == source.enumerator.snapshot()


def test_e37_a_removed_topic_that_is_there_again_resumes():
    """Under the same id: the cluster was wrong about it, twice."""
    cluster = two_topics()
    source = reading(BOTH, cluster)
    gone = cluster.topics.pop("p")
    source.discover()
    cluster.topics["p"] = gone
    source.restart()

    (finding,) = source.discover().findings

    assert (Change.RETURNED, {P0: 10}) == (finding.change, source.handed_out())


def test_an_empty_answer_removes_nothing():
    """A broker that has just started knows no topic (SPARK-41375: all came back as new, and were read again)."""
    cluster = two_topics()
    source = reading(ANY, cluster, DiscoveryPolicies())
    topics, cluster.topics = cluster.topics, {}
    before = source.enumerator.snapshot()
    source.discover()
    cluster.topics = topics

    assert (before, {}) == (source.enumerator.snapshot(), source.found())


def test_an_answer_that_is_known_to_be_incomplete_is_no_first_discovery():
    """It has to find every partition: what it does not find would be read from its beginning."""
    cluster = two_topics()
    cluster.errors = {"p": LEADER_NOT_AVAILABLE}
    source = Source(cluster, BOTH, LatestOffsets())

    with pytest.raises(RetriableError, match=r"all about p \(LEADER_NOT_AVAILABLE\)"):
        source.discover()
    cluster.errors = {}

    assert {P0: 100, T0: 100} == source.found()


def test_a_topic_that_may_not_be_seen_is_an_error_by_its_name():
    """Kafka's name of the error and what to do are in it."""
    cluster = two_topics()
    refused = error_code(29)
    assert refused
    cluster.errors = {"p": refused}

    with pytest.raises(TaskFailedError, match=r"topic p cannot be read.*TOPIC_AUTHORIZATION"):
        Source(cluster, BOTH).discover()


def test_e42_a_new_partition_without_a_leader_is_held_back():
    """Flink hands it out, and its reader fails after a minute, again and again."""
    cluster = ClusterDouble.of(Log(0, 100))
    source = reading(TopicListSubscriber(("t",)), cluster)
    cluster.add(Log(0, 7, leader=None))

    waiting = source.found()
    held_back = source.discoverer.counters.held_back
    source.restart()
    cluster.topics["t"][1].leader = 2

    assert ({}, 1, {T1: 0}) == (waiting, held_back, source.found())


def test_e42_an_initial_partition_without_a_leader_stays_initial():
    """Over a restart, too: it is not read from its beginning."""
    cluster = ClusterDouble.of(Log(0, 100), Log(0, 50, leader=None))
    source = Source(cluster, starting=LatestOffsets())
    source.found()
    source.restart()
    cluster.topics["t"][1].leader = 2

    assert {T1: 50} == source.found()


def test_e44_a_topic_that_vanishes_between_two_requests_is_dropped():
    """Flink fails the whole discovery; there is one request here, and the second is about what is known."""
    cluster = two_topics()
    source = reading(ANY, cluster)
    cluster.create("q")
    cluster.hidden = {"q"}

    assert ({}, {TopicPartition("q", 0): 0}) == (source.found(), source.found())


def test_what_was_asked_about_the_old_topic_does_not_count_for_the_new_one():
    """It was made again while its offsets were looked up."""
    cluster = ClusterDouble.of(Log(0, 100))
    subscriber = TopicListSubscriber(("t",))

    def listed() -> Listing:
        answer = cluster.metadata({"t"}, Deadline.after(1))
        return Listing(asked=subscriber.names, topics=answer.topics)

    enumerator = PartitionEnumerator(policies=CONTINUE)
    enumerator.discovered(subscriber, listed())
    cluster.delete("t")
    cluster.create("t", Log(0, 3))
    second = enumerator.discovered(subscriber, listed())
    enumerator.resolved({T0: 100})

    assert ((), []) == (second.new, enumerator.unassigned())
    assert (T0,) == enumerator.discovered(subscriber, listed()).new
    assert Kind.NEW is enumerator.partitions[T0].kind


def test_the_growth_of_a_subscription_decides_what_a_missing_topic_is():
    """Whoever subscribes by a pattern says that topics come and go; said explicitly, a setting wins."""
    default, strict = DiscoveryConfig.parse({}), {"partition.discovery.on.removed": "fail"}

    assert DataLossPolicy.FAIL is default.policies(Growth.PARTITIONS).removed
    assert DataLossPolicy.CONTINUE is default.policies(Growth.TOPICS).removed
    assert DataLossPolicy.FAIL is DiscoveryConfig.parse(strict).policies(Growth.TOPICS).removed
