"""Where leader epochs end, as leaders that a test scripts say it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from doubles.scripted_broker import ScriptedCluster
from headrace.connect.errors import RetriableError
from headrace.kafka.deadline import Deadline
from headrace.kafka.topic_partition import TopicPartition
from headrace.kafka.wire.cluster import Cluster
from headrace.kafka.wire.epoch_ends import EpochEnd, EpochEnds, epoch_ends

T0, T1 = (TopicPartition("t", number) for number in range(2))


@pytest.fixture
def scripted() -> Iterator[ScriptedCluster]:
    """Two brokers, each of which leads a partition."""
    with ScriptedCluster(T0, T1, nodes=2) as made:
        made.leaders[T1] = 2
        made.epochs = {T0: (3, 40), T1: (5, 70)}
        yield made


@pytest.fixture
def client(scripted: ScriptedCluster) -> Iterator[Cluster]:
    """A client that knows who leads what."""
    made = scripted.cluster()
    made.metadata(["t"], soon())
    yield made
    made.close()


def soon(seconds: float = 20) -> Deadline:
    """Time enough."""
    return Deadline.after(seconds)


def silence(scripted: ScriptedCluster, silent: int) -> None:
    """The broker *silent* closes the connection instead of answering."""
    plain = scripted.epoch_ends
    scripted.scripts["OffsetForLeaderEpoch"] = lambda node, received: (
        None if node == silent else plain(node, received)
    )


def test_each_leader_is_asked_for_its_partitions(
    scripted: ScriptedCluster, client: Cluster
) -> None:
    """With the epoch that the position has."""
    expected = {T0: EpochEnd(3, 40), T1: EpochEnd(5, 70)}
    assert EpochEnds(expected) == epoch_ends(client, {T0: 4, T1: 5}, soon())
    asked = [
        (each.leader_epoch, each.partition)
        for broker in scripted.brokers.values()
        for request in broker.received
        if request.name == "OffsetForLeaderEpoch"
        for topic in request.message.topics
        for each in topic.partitions
    ]
    assert [(4, 0), (5, 1)] == sorted(asked)


def test_a_leader_that_has_moved_is_found(scripted: ScriptedCluster, client: Cluster) -> None:
    """The brokers are asked who it is now."""
    scripted.leaders[T0] = 2

    assert EpochEnds({T0: EpochEnd(3, 40)}) == epoch_ends(client, {T0: 4}, soon())


def test_a_log_that_knows_no_epoch_says_so(scripted: ScriptedCluster, client: Cluster) -> None:
    """As one without a record."""
    scripted.epochs = {}

    assert EpochEnds({T0: EpochEnd(-1, -1)}) == epoch_ends(client, {T0: 4}, soon())


def test_a_leader_that_is_away_does_not_keep_the_others_from_answering(
    scripted: ScriptedCluster, client: Cluster
) -> None:
    """Of its partitions nothing is known."""
    silence(scripted, 2)

    found = epoch_ends(client, {T0: 4, T1: 5}, soon(1))

    assert EpochEnds({T0: EpochEnd(3, 40)}, frozenset([T1])) == found


def test_leaders_that_are_all_away_are_an_error_that_may_pass(
    scripted: ScriptedCluster, client: Cluster
) -> None:
    """After half of the time."""
    silence(scripted, 2)

    with pytest.raises(RetriableError) as raised:
        epoch_ends(client, {T1: 5}, soon(1))
    assert "where the leader epochs of t-1 end" in str(raised.value)


def test_brokers_that_do_not_answer_such_requests_are_left_out() -> None:
    """They are too old."""
    with ScriptedCluster(T0, versions={23: (0, 1)}) as scripted:
        client = scripted.cluster()
        client.metadata(["t"], soon())
        assert EpochEnds({}) == epoch_ends(client, {T0: 4}, soon())
        client.close()
