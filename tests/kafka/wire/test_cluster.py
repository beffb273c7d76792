"""What a reader asks a cluster, of brokers that a test scripts."""

from __future__ import annotations

import logging
import socket
import time
from collections.abc import Iterator
from contextlib import nullcontext
from typing import Any
from uuid import UUID

import pytest

from doubles.scripted_broker import (
    ListOffsetsResponse,
    MetadataResponse,
    OffsetCommitResponse,
    OffsetDeleteResponse,
    OffsetFetchResponse,
    Received,
    SaslAuthenticateResponse,
    SaslHandshakeResponse,
    ScriptedCluster,
)
from headrace.connect.errors import RetriableError, TaskFailedError
from headrace.connect.group_offsets import GroupEntry
from headrace.kafka.deadline import Deadline
from headrace.kafka.topic_partition import TopicPartition
from headrace.kafka.wire.cluster import (
    EARLIEST,
    EARLIEST_LOCAL,
    LATEST,
    Cluster,
    IsolationLevel,
    ListedOffset,
    PartitionMetadata,
)
from headrace.kafka.wire.error_codes import (
    LEADER_NOT_AVAILABLE,
    UNKNOWN_TOPIC_OR_PARTITION,
    error_code,
)
from headrace.kafka.wire.settings import WireSettings

T0, T1, T2 = (TopicPartition("t", number) for number in range(3))
LOGIN = {
    "sasl_mechanism": "PLAIN",
    "security_protocol": "SASL_SSL",
    "sasl_plain_username": "me",
    "sasl_plain_password": "canary",
}


@pytest.fixture
def scripted() -> Iterator[ScriptedCluster]:
    """Two brokers, and a topic of three partitions."""
    with ScriptedCluster(T0, T1, T2, nodes=2) as made:
        made.bounds = {T0: (0, 10), T1: (5, 20), T2: (7, 30)}
        made.leaders[T2] = 2
        yield made


@pytest.fixture
def client(scripted: ScriptedCluster) -> Iterator[Cluster]:
    """A client of theirs."""
    made = scripted.cluster()
    yield made
    made.close()


def soon(seconds: float = 20) -> Deadline:
    """Time enough."""
    return Deadline.after(seconds)


def test_topics_come_with_their_ids_and_leaders(scripted: ScriptedCluster, client: Cluster) -> None:
    """And with the brokers' addresses."""
    found = client.metadata(["t"], soon())

    assert scripted.brokers[2].address == found.brokers[2]
    assert scripted.ids["t"] == found.topics["t"].topic_id
    assert PartitionMetadata(2, 2, 7, None) == found.topics["t"].partitions[2]


def test_metadata_that_is_doubted_is_asked_for_at_another_broker(
    scripted: ScriptedCluster, client: Cluster
) -> None:
    """After a pause; and at the same one when there is no other."""
    client.metadata(["t"], soon())
    began = time.monotonic()
    client.metadata(["t"], soon(), again=True)
    asked = [len(scripted.brokers[node].named("Metadata")) for node in (1, 2)]

    assert [1, 1] == asked
    assert 0.4 < time.monotonic() - began
    with ScriptedCluster(T0) as alone:
        single = alone.cluster()
        single.metadata(["t"], soon())
        assert "t" in single.metadata(["t"], soon(), again=True).topics
        single.close()


def test_a_partition_without_a_leader_is_answered_as_such(
    scripted: ScriptedCluster, client: Cluster
) -> None:
    """In metadata as in offsets, and at once."""
    scripted.leaders[T1] = -1
    began = time.monotonic()
    found = client.list_offsets({T0: LATEST, T1: LATEST}, soon())

    assert ListedOffset(10, -1, 7) == found[T0]
    assert found[T1].offset is None
    assert LEADER_NOT_AVAILABLE == found[T1].error
    assert client.metadata(["t"], soon()).topics["t"].partitions[1].leader is None
    assert time.monotonic() - began < 5


def test_a_topic_that_is_not_there_is_answered_as_such(client: Cluster) -> None:
    """As is a partition that it does not have."""
    missing = TopicPartition("missing", 0), TopicPartition("t", 9)
    found = client.list_offsets(dict.fromkeys(missing, EARLIEST), soon())

    for place in missing:
        assert UNKNOWN_TOPIC_OR_PARTITION == found[place].error


def test_topics_are_never_created(scripted: ScriptedCluster, client: Cluster) -> None:
    """Whatever the broker's auto.create.topics.enable says."""
    client.metadata(None, soon())
    client.metadata(["missing"], soon())
    client.list_offsets({TopicPartition("missing", 0): LATEST}, soon())
    asked = scripted.brokers[1].named("Metadata") + scripted.brokers[2].named("Metadata")

    assert len(asked) >= 3
    assert not any(each.allow_auto_topic_creation for each in asked)


def test_a_broker_that_could_create_topics_all_the_same_is_refused() -> None:
    """Before Kafka 0.11 the request could not say so."""
    with ScriptedCluster(T0, versions={3: (0, 3)}) as scripted:
        client = scripted.cluster()
        with pytest.raises(TaskFailedError, match=r"version 0\.11"):
            client.metadata(["t"], soon())
        client.close()


def test_each_leader_gets_one_request(scripted: ScriptedCluster, client: Cluster) -> None:
    """For all of its partitions, with the reader's isolation level."""
    found = client.list_offsets(
        dict.fromkeys((T0, T1, T2), LATEST), soon(), isolation=IsolationLevel.READ_COMMITTED
    )
    asked = [scripted.brokers[node].named("ListOffsets") for node in (1, 2)]

    assert {T0: 10, T1: 20, T2: 30} == {place: each.offset for place, each in found.items()}
    assert [1, 1] == [len(each) for each in asked]
    assert {1} == {each[0].isolation_level for each in asked}


def test_a_leader_that_has_moved_is_found(scripted: ScriptedCluster, client: Cluster) -> None:
    """Others' answers are kept meanwhile."""
    client.metadata(["t"], soon())
    scripted.leaders[T1] = 2
    found = client.list_offsets(dict.fromkeys((T0, T1, T2), EARLIEST), soon())

    assert {T0: 0, T1: 5, T2: 7} == {place: each.offset for place, each in found.items()}
    assert 1 == len(scripted.brokers[1].named("ListOffsets"))


@pytest.mark.parametrize("hangs", [False, True], ids=["gone", "hangs"])
def test_e41_a_leader_that_does_not_answer_does_not_hold_up_the_others(
    scripted: ScriptedCluster, client: Cluster, *, hangs: bool
) -> None:
    """It is waited for until half of the time is over; where no other one answers, until the deadline."""
    plain = scripted.list_offsets
    client.metadata(["t"], soon())
    if hangs:
        scripted.scripts["ListOffsets"] = lambda node, received: (
            plain(node, received) if node == 1 else time.sleep(2)
        )
    else:
        scripted.brokers[2].stop()
    began = time.monotonic()
    found = client.list_offsets({T0: LATEST, T2: LATEST}, soon(1.6))

    assert (10, LEADER_NOT_AVAILABLE) == (found[T0].offset, found[T2].error)
    assert 0.7 < time.monotonic() - began < 1.5
    with pytest.raises(RetriableError, match="did not answer"):
        client.list_offsets({T2: LATEST}, soon(0.5))


def test_an_error_that_remains_is_answered(scripted: ScriptedCluster, client: Cluster) -> None:
    """Of its partition only."""
    plain = scripted.list_offsets

    def with_error(node: int, received: Received) -> ListOffsetsResponse:
        answer = plain(node, received)
        for each in (one for topic in answer.topics for one in topic.partitions):
            each.error_code = 78 if each.partition_index == 1 else each.error_code
        return answer

    scripted.scripts["ListOffsets"] = with_error
    found = client.list_offsets({T0: LATEST, T1: LATEST}, soon(0.3))

    assert 10 == found[T0].offset
    assert error_code(78) == found[T1].error


@pytest.mark.parametrize(("code", "asked"), [(78, 1), (6, 2)])
def test_who_leads_is_asked_again_where_that_is_in_doubt(
    scripted: ScriptedCluster, client: Cluster, code: int, asked: int
) -> None:
    """A leader that only answers later is asked again itself."""
    plain, codes = scripted.list_offsets, iter([code])

    def once(node: int, received: Received) -> ListOffsetsResponse:
        answer = plain(node, received)
        answer.topics[0].partitions[0].error_code = next(codes, 0)
        return answer

    scripted.scripts["ListOffsets"] = once

    assert 10 == client.list_offsets({T0: LATEST}, soon())[T0].offset
    assert asked == len(scripted.brokers[1].named("Metadata"))


@pytest.mark.parametrize(("code", "asked"), [(14, 1), (16, 2)])
def test_who_coordinates_is_asked_again_where_that_is_in_doubt(code: int, asked: int) -> None:
    """A coordinator that only loads is asked again itself."""
    with ScriptedCluster(T0) as scripted:
        codes = iter([code])
        scripted.scripts["OffsetFetch"] = lambda _, received: committed(
            received, 42, code=next(codes, 0)
        )
        client = scripted.cluster()

        assert {T0: 42} == client.committed_offsets("g", [T0], soon())
        assert asked == len(scripted.brokers[1].named("FindCoordinator"))
        client.close()


def test_an_error_that_passes_is_waited_for(scripted: ScriptedCluster, client: Cluster) -> None:
    """Though other partitions have been answered: brokers take a while to lead what was just created."""
    plain, passes_at = scripted.list_offsets, time.monotonic() + 2

    def with_error(node: int, received: Received) -> ListOffsetsResponse:
        answer = plain(node, received)
        for each in (one for topic in answer.topics for one in topic.partitions):
            is_late = each.partition_index == 1 and time.monotonic() < passes_at
            each.error_code = 6 if is_late else each.error_code
        return answer

    scripted.scripts["ListOffsets"] = with_error
    found = client.list_offsets({T0: LATEST, T1: LATEST}, soon(3))

    assert [10, 20] == [found[place].offset for place in (T0, T1)]


def test_a_partition_that_one_may_not_read_is_answered_as_such(
    scripted: ScriptedCluster, client: Cluster
) -> None:
    """Without another try."""
    scripted.errors["t"] = 29
    found = client.list_offsets({T0: LATEST}, soon())

    assert error_code(29) == found[T0].error
    assert [] == scripted.brokers[1].named("ListOffsets")


def test_another_broker_is_asked_when_the_first_is_away(scripted: ScriptedCluster) -> None:
    """Of those that were configured."""
    with socket.create_server(("127.0.0.1", 0)) as closed:
        away = closed.getsockname()
    addresses = (away, scripted.brokers[2].address)
    client = Cluster(WireSettings(addresses=addresses, client_id="test"))

    assert "t" in client.metadata(None, soon()).topics
    client.close()


def test_a_broker_that_returns_is_asked_again(scripted: ScriptedCluster, client: Cluster) -> None:
    """A connection that was closed meanwhile is made again."""
    client.metadata(["t"], soon())
    left = iter([None])

    def once_closed(node: int, received: Received) -> MetadataResponse | None:
        return next(left, scripted.metadata(node, received))

    scripted.scripts["Metadata"] = once_closed

    assert "t" in client.metadata(["t"], soon()).topics


def test_a_deadline_is_kept() -> None:
    """With a sentence that says what was asked, and why there is no answer."""
    with socket.create_server(("127.0.0.1", 0)) as closed:
        away = closed.getsockname()
    client = Cluster(WireSettings(addresses=(away,), client_id="test"))
    began = time.monotonic()

    with pytest.raises(RetriableError, match=r"metadata of its topics in time: .*refused"):
        client.metadata(None, soon(0.5))
    assert time.monotonic() - began < 3


class FastClock:
    """Every look at it is a second later."""

    now = 0.0

    def __call__(self) -> float:
        """What it shows now."""
        self.now += 1
        return self.now


def test_a_server_that_does_not_answer_is_warned_about_before_the_deadline(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Once, whatever else is asked, with its address and where that is set."""
    with socket.create_server(("127.0.0.1", 0)) as closed:
        away = closed.getsockname()
    client = Cluster(WireSettings(addresses=(away,), client_id="test"))

    for _ in range(2):
        with pytest.raises(RetriableError):
            client.metadata(None, Deadline.after(60, FastClock()))

    # What a thread of another test may log meanwhile is no warning of this cluster.
    own = [each for each in caplog.records if each.name == Cluster.__module__]
    [warning] = [each.getMessage() for each in own]
    assert f"{away[0]}:{away[1]} (bootstrap.servers) was not reached" in warning


class Waiting:
    """A client whose questions are answered, or not, by a clock of its own."""

    def __init__(self) -> None:
        self.client = Cluster(WireSettings(addresses=(("127.0.0.1", 1),), client_id="test"))
        self.clock = FastClock()

    def is_asked(self, doing: str, *, answered: bool) -> None:
        """For fifteen seconds, or until there is an answer."""

        def attempt() -> None:
            self.clock.now += 5
            if not answered:
                raise ConnectionError("away")

        with nullcontext() if answered else pytest.raises(RetriableError):
            self.client.retried(doing, Deadline.after(15, self.clock), attempt)


def silences(caplog: pytest.LogCaptureFixture) -> list[str]:
    """What was warned about, each "what for how long"."""
    own = [each for each in caplog.records if each.name == Cluster.__module__]
    said = [each.getMessage() for each in own if each.levelno == logging.WARNING]
    return [each.removeprefix("Kafka has not answered ").split(" s, ")[0] for each in said]


def test_a_silence_that_goes_on_is_told_again_with_how_long_it_lasts(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """After ten minutes, however often what is asked meanwhile."""
    waiting = Waiting()
    while waiting.clock.now < 900:
        waiting.is_asked("a", answered=False)
        waiting.clock.now += 60

    first, again = (float(each.removeprefix("a for ")) for each in silences(caplog))
    assert first < 15
    assert 600 <= again - first < 700


def test_an_answer_of_another_broker_ends_no_silence(caplog: pytest.LogCaptureFixture) -> None:
    """What one leader does not answer is told once while the others answer; anew after it has."""
    waiting = Waiting()
    for _ in range(3):
        waiting.is_asked("b", answered=True)
        waiting.is_asked("a", answered=False)
    assert 1 == len(silences(caplog))

    waiting.is_asked("a", answered=True)
    waiting.is_asked("a", answered=False)
    assert 2 == len(silences(caplog))
    assert silences(caplog)[0] == silences(caplog)[1]


def test_a_wrong_password_says_so_at_once(scripted: ScriptedCluster) -> None:
    """And does not show it."""
    scripted.scripts["SaslHandshake"] = SaslHandshakeResponse(error_code=0, mechanisms=["PLAIN"])
    scripted.scripts["SaslAuthenticate"] = SaslAuthenticateResponse(
        error_code=58, error_message="Invalid username or password", auth_bytes=b""
    )
    client = scripted.cluster(login=LOGIN)
    began = time.monotonic()

    with pytest.raises(TaskFailedError, match=r"Invalid username or password.* sasl\.") as refused:
        client.metadata(None, soon())
    assert time.monotonic() - began < 5
    assert "canary" not in str(refused.value)


def committed(received: Received, offset: int, *, code: int = 0) -> OffsetFetchResponse:
    """One partition's committed offset, in the form of the request's version."""
    numbered: dict[str, Any] = {
        "partition_index": 0,
        "committed_offset": offset,
        "committed_leader_epoch": -1,
        "metadata": "",
        "error_code": 0,
    }
    if received.version < 8:
        kind = OffsetFetchResponse.OffsetFetchResponseTopic
        part = kind.OffsetFetchResponsePartition(**numbered)
        return OffsetFetchResponse(topics=[kind(name="t", partitions=[part])], error_code=code)
    group = OffsetFetchResponse.OffsetFetchResponseGroup
    kind = group.OffsetFetchResponseTopics
    part = kind.OffsetFetchResponsePartitions(**numbered)
    topics = [kind(name="t", partitions=[part])]
    return OffsetFetchResponse(groups=[group(group_id="g", topics=topics, error_code=code)])


@pytest.mark.parametrize("version", [1, 5, 7, 8, 9])
def test_offsets_that_a_group_has_committed(version: int) -> None:
    """In every form of the answer; a partition without one has none."""
    with ScriptedCluster(T0, T1, versions={9: (0, version)}) as scripted:
        scripted.scripts["OffsetFetch"] = lambda _, received: committed(received, 42)
        client = scripted.cluster()

        assert {T0: 42, T1: None} == client.committed_offsets("g", [T0, T1], soon())
        client.close()


@pytest.mark.parametrize("code", [14, 15, 16, 88])
def test_a_coordinator_that_moves_or_loads_is_waited_for(code: int) -> None:
    """As are offsets in a transaction that is open."""
    with ScriptedCluster(T0, nodes=2) as scripted:
        codes = iter([code])

        def answer(_: int, received: Received) -> OffsetFetchResponse:
            scripted.coordinator = 2
            return committed(received, 42, code=next(codes, 0))

        scripted.scripts["OffsetFetch"] = answer
        client = scripted.cluster()

        assert {T0: 42} == client.committed_offsets("g", [T0], soon())
        client.close()


def entries_answer(*parts: tuple[int, int, str, int]) -> OffsetFetchResponse:
    """Number, offset, metadata and error of partitions of ``t``, in the newest form."""
    group = OffsetFetchResponse.OffsetFetchResponseGroup
    kind = group.OffsetFetchResponseTopics
    made = [
        kind.OffsetFetchResponsePartitions(
            partition_index=number,
            committed_offset=offset,
            committed_leader_epoch=3,
            metadata=metadata,
            error_code=code,
        )
        for number, offset, metadata, code in parts
    ]
    topics = [kind(name="t", partitions=made)] if made else []
    return OffsetFetchResponse(groups=[group(group_id="g", topics=topics, error_code=0)])


def asked_partitions(received: Received) -> list[int] | None:
    """Which of ``t``'s partitions an OffsetFetch names; ``None`` for all."""
    [group] = received.message.groups
    return None if group.topics is None else sorted(group.topics[0].partition_indexes)


def test_entries_come_with_what_was_committed_with_them(
    scripted: ScriptedCluster, client: Cluster
) -> None:
    """The zero that ends librdkafka's text is none of it; partitions that nobody named are asked for."""
    asked = list[list[int] | None]()

    def answer(_: int, received: Received) -> OffsetFetchResponse:
        asked.append(asked_partitions(received))
        if asked[-1] is None:
            return entries_answer((1, 8, "made by C\0", 0))
        return entries_answer((0, 7, "", 0), (2, -1, "", 0))

    scripted.scripts["OffsetFetch"] = answer

    assert [
        GroupEntry("t", 0, 7, "", 3),
        GroupEntry("t", 1, 8, "made by C", 3),
    ] == client.committed_entries("g", None, soon())
    assert [None, [0, 2]] == asked


def test_only_entries_in_open_transactions_are_asked_for_again(
    scripted: ScriptedCluster, client: Cluster
) -> None:
    """Where many tasks commit, one of them is always open."""
    asked = list[list[int] | None]()

    def answer(_: int, received: Received) -> OffsetFetchResponse:
        asked.append(asked_partitions(received))
        return [
            entries_answer((0, 5, "", 0), (1, -1, "", 88), (2, -1, "", 88)),
            entries_answer((1, 6, "", 88), (2, 7, "", 0)),
            entries_answer((1, 6, "", 0)),
        ][len(asked) - 1]

    scripted.scripts["OffsetFetch"] = answer

    found = client.committed_entries("g", ["t"], soon())

    assert [5, 6, 7] == [each.offset for each in found]
    assert [[0, 1, 2], [1, 2], [1]] == asked


def test_a_transaction_that_stays_open_is_named(scripted: ScriptedCluster, client: Cluster) -> None:
    """At the deadline."""
    scripted.scripts["OffsetFetch"] = entries_answer((1, -1, "", 88))

    with pytest.raises(RetriableError, match=r"'g'.*t-1: UNSTABLE_OFFSET_COMMIT"):
        client.committed_entries("g", None, soon(0.3))


@pytest.mark.parametrize(("code", "place_code"), [(0, 0), (69, 0), (0, 3)])
def test_what_is_not_there_is_removed_already(
    scripted: ScriptedCluster, client: Cluster, code: int, place_code: int
) -> None:
    """A group, or a topic that was deleted with its entries."""
    kind = OffsetDeleteResponse.OffsetDeleteResponseTopic
    part = kind.OffsetDeleteResponsePartition(partition_index=0, error_code=place_code)
    scripted.scripts["OffsetDelete"] = OffsetDeleteResponse(
        error_code=code, topics=[kind(name="t", partitions=[part])]
    )

    client.delete_offsets("g", [T0], soon())

    assert 1 == sum(len(each.named("OffsetDelete")) for each in scripted.brokers.values())


def test_entries_of_a_group_with_members_are_not_removed(
    scripted: ScriptedCluster, client: Cluster
) -> None:
    """Its consumers would begin somewhere else."""
    scripted.scripts["OffsetDelete"] = OffsetDeleteResponse(error_code=68, topics=[])

    with pytest.raises(TaskFailedError, match=r"'g'.*no consumer has joined"):
        client.delete_offsets("g", [T0], soon())


@pytest.mark.parametrize(("code", "advice"), [(25, "no consumer has joined"), (30, "on the group")])
def test_a_commit_that_is_refused_says_why(code: int, advice: str) -> None:
    """With the group's name and the partition's."""
    with ScriptedCluster(T0) as scripted:
        kind = OffsetCommitResponse.OffsetCommitResponseTopic
        part = kind.OffsetCommitResponsePartition(partition_index=0, error_code=code)
        scripted.scripts["OffsetCommit"] = OffsetCommitResponse(
            throttle_time_ms=0, topics=[kind(name="t", partitions=[part])]
        )
        client = scripted.cluster()

        with pytest.raises(TaskFailedError, match=f"'g'.*t-0.*{advice}"):
            client.commit_offsets("g", {T0: 5}, soon())
        client.close()


def test_a_request_that_one_broker_does_not_support_leaves_no_answer_behind(
    scripted: ScriptedCluster, client: Cluster
) -> None:
    """The next request to the other one, which has answered, gets its own answer."""
    client.list_offsets(dict.fromkeys((T0, T2), LATEST), soon())
    [other] = [each for at, each in client._connections.items() if at[1] != first_port(scripted)]
    other._versions[2] = (0, 1)
    with pytest.raises(TaskFailedError, match=r"version of ListOffsets.*0\.11"):
        client.list_offsets(dict.fromkeys((T0, T2), LATEST), soon())

    assert 0 == client.list_offsets({T0: EARLIEST}, soon())[T0].offset


def first_port(scripted: ScriptedCluster) -> int:
    """Where the first broker listens."""
    return scripted.brokers[1].address[1]


@pytest.mark.parametrize(("version", "asked"), [(7, EARLIEST), (8, EARLIEST_LOCAL)])
def test_the_local_start_is_not_taken_for_a_timestamp(version: int, asked: int) -> None:
    """By brokers that do not know the word; they have no remote storage."""
    with ScriptedCluster(T0, versions={2: (0, version)}) as scripted:
        scripted.bounds = {T0: (3, 10)}
        client = scripted.cluster()
        found = client.list_offsets({T0: EARLIEST_LOCAL}, soon())
        client.close()
        [request] = scripted.brokers[1].named("ListOffsets")

    assert asked == request.topics[0].partitions[0].timestamp
    assert 3 == found[T0].offset


def test_a_leader_that_is_not_reached_is_given_up_after_seconds(
    scripted: ScriptedCluster, client: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sooner than a broker of which one only wants to know something: others are waiting to be served."""
    client.metadata(None, soon())
    waited = list[float]()

    def silent(address: object, timeout: float) -> None:
        waited.append(timeout)
        raise TimeoutError

    monkeypatch.setattr(socket, "create_connection", silent)
    with pytest.raises(ConnectionError, match="not reached"):
        client.connect(2, soon())

    assert 4.0 == waited[0]


def test_finalised_features_come_with_their_levels() -> None:
    """Also from a broker that finalises none."""
    found = list[dict[str, int]]()
    for features in ({"transaction.version": 2, "group.version": 1}, {}):
        with ScriptedCluster(features=features) as scripted:
            client = scripted.cluster()
            found.append(client.features(soon()))
            client.close()

    assert [{"transaction.version": 2, "group.version": 1}, {}] == found


def test_a_broker_that_knows_no_features_has_none() -> None:
    """Before Kafka 2.4."""
    with ScriptedCluster(versions={18: (0, 2)}, features={"transaction.version": 2}) as scripted:
        client = scripted.cluster()
        found = client.features(soon())
        client.close()

    assert {} == found


def test_nothing_to_ask_needs_no_broker() -> None:
    """Of logs and of groups."""
    nowhere = Cluster(WireSettings(addresses=(("127.0.0.1", 1),), client_id="test"))
    nowhere.commit_offsets("g", {}, soon(0))

    assert {} == nowhere.list_offsets({}, soon(0))
    assert {} == nowhere.committed_offsets("g", [], soon(0))


def test_ten_thousand_partitions_are_cheap() -> None:
    """Metadata and offsets of all of them cost less CPU than one would notice."""
    places = [TopicPartition(f"t{n // 100}", n % 100) for n in range(10_000)]
    with ScriptedCluster(*places) as scripted:
        scripted.ids = {f"t{n}": UUID(int=n + 1) for n in range(100)}
        canned: dict[str, Any] = {}

        def once(name: str) -> Any:  # noqa: ANN401
            """The first answer again: what the test's own side costs must not count."""
            plain = {"Metadata": scripted.metadata, "ListOffsets": scripted.list_offsets}[name]

            def script(node: int, received: Received) -> Any:  # noqa: ANN401
                if name not in canned:
                    canned[name] = plain(node, received)
                return canned[name]

            return script

        scripted.scripts |= {name: once(name) for name in ("Metadata", "ListOffsets")}
        client = scripted.cluster()
        wanted = dict.fromkeys(places, LATEST)
        client.list_offsets(wanted, soon())
        began = time.thread_time()
        found = client.list_offsets(wanted, soon())
        spent = time.thread_time() - began
        client.close()

    assert len(places) == len(found)
    assert all(each.error is None for each in found.values())
    assert spent < 1.0
