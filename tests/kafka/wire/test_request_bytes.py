"""The bytes of every request that we send, in every version: the library that encodes them promises no such thing.

A line of ``request_bytes.txt`` is a request's name, its version, and its bytes without their length. When a test fails after an
upgrade of kafka-python, compare with https://kafka.apache.org/protocol before a line is changed.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple
from uuid import UUID

import pytest

from doubles.producer_brokers import ProducerCluster
from doubles.scripted_broker import (
    ConsumerGroupDescribeResponse,
    DescribeConfigsResponse,
    DescribeGroupsResponse,
    InitProducerIdResponse,
    ListTransactionsResponse,
    OffsetCommitResponse,
    OffsetDeleteResponse,
    OffsetFetchResponse,
    SaslAuthenticateResponse,
    SaslHandshakeResponse,
    ScriptedCluster,
)
from headrace.connect.group_offsets import GroupEntry
from headrace.kafka.batches.producer_batch import UnstampedBatch
from headrace.kafka.client_config import producer_config
from headrace.kafka.deadline import Deadline
from headrace.kafka.topic_partition import TopicPartition
from headrace.kafka.transaction_coordinator import TransactionCoordinator
from headrace.kafka.wire.cluster import EARLIEST, LATEST, Cluster
from headrace.kafka.wire.epoch_ends import epoch_ends
from headrace.kafka.wire.fetcher import Fetcher, FetchRange, FetchSettings
from headrace.kafka.wire.producer import WireProducer
from headrace.kafka.wire.producer_settings import ProducerWireSettings
from headrace.kafka.wire.transaction_state import ProducerIdentity
from headrace.kafka.wire.written_topics import WrittenTopics
from record_batches import Row, batch

EXPECTED = Path(__file__).with_name("request_bytes.txt")
T0, T1 = TopicPartition("first", 0), TopicPartition("second", 1)
IDS = {"first": UUID(int=0x0123456789), "second": UUID(int=0x9876543210)}
LOGIN = {
    "sasl_mechanism": "PLAIN",
    "security_protocol": "SASL_SSL",
    "sasl_plain_username": "user",
    "sasl_plain_password": "password",
}


def soon() -> Deadline:
    """Time enough."""
    return Deadline.after(20)


def read_metadata(cluster: Cluster) -> None:
    """Of all topics, and of some; and of one so that it is created."""
    cluster.metadata(None, soon())
    cluster.metadata(["second", "first"], soon())
    written(cluster)._create("third", soon())


def written(cluster: Cluster) -> WrittenTopics:
    """What a producer asks for."""
    return WrittenTopics(cluster, seconds=20, creation_seconds=1, waiting=lambda _: None)


def limit(cluster: Cluster) -> None:
    """Of one topic."""
    written(cluster).max_bytes("first")


def fetch(cluster: Cluster) -> None:
    """Two partitions of two topics."""
    ranges = [FetchRange(place=place, start=0, end=1) for place in (T0, T1)]
    fetcher = Fetcher(cluster, ranges, FetchSettings())
    while not fetcher.finished:
        fetcher.poll(soon())
    fetcher.close()


def list_offsets(cluster: Cluster) -> None:
    """The start of a log, and the end of another."""
    cluster.list_offsets({T0: EARLIEST, T1: LATEST}, soon())


def ask_epochs(cluster: Cluster) -> None:
    """Of two partitions."""
    cluster.metadata([T0.topic, T1.topic], soon())
    epoch_ends(cluster, {T0: 3, T1: 2**20}, soon())


def committed(cluster: Cluster) -> None:
    """Of two partitions."""
    cluster.committed_offsets("group", [T0, T1], soon())


def commit(cluster: Cluster) -> None:
    """Of two partitions."""
    cluster.commit_offsets("group", {T0: 1, T1: 2**40}, soon())


def delete(cluster: Cluster) -> None:
    """Of two partitions."""
    cluster.delete_offsets("group", [T0, T1], soon())


def describe(cluster: Cluster) -> None:
    """By the classic protocol, and then by the newer one."""
    cluster.describe_group("group", soon())


def take_and_prove(cluster: Cluster) -> None:
    """An id of a transactional producer, and all that there are."""
    host, port = cluster.settings.addresses[0]
    config = producer_config({"bootstrap.servers": f"{host}:{port}", "client.id": "test"})
    coordinator = TransactionCoordinator(config)
    coordinator.take("id", soon())
    coordinator.prove("id", ProducerIdentity(producer_id=5, epoch=6), soon())
    coordinator.transactional_ids(soon())
    coordinator.close()


def produce(cluster: Cluster) -> None:
    """A transaction with records and offsets, of which the second one is aborted; then a new epoch."""
    producer = WireProducer(
        cluster, transactional_id="id", settings=ProducerWireSettings(), owner="task c-0"
    )
    producer.open(soon())
    for end in (producer.commit, producer.abort):
        producer.begin()
        for place in (T0, T1):
            rows = [Row(offset, 1_700_000_000_000, None, b"value") for offset in (0, 1)]
            producer.send(place, UnstampedBatch(batch(rows), 2))
        producer.flush()
        producer.send_group_offsets("group", [GroupEntry("first", 0, 2**40, "at", 3)])
        end()
    producer.open(soon())
    producer.close()


class Call(NamedTuple):
    """What sends a request, and the versions in which it does."""

    play: Callable[[Cluster], None]
    key: int
    least: int
    most: int


CALLS = {
    "ApiVersions": Call(read_metadata, 18, 0, 0),
    "ConsumerGroupDescribe": Call(describe, 69, 0, 0),
    "DescribeConfigs": Call(limit, 32, 1, 4),
    "DescribeGroups": Call(describe, 15, 0, 5),
    "Fetch": Call(fetch, 1, 4, 17),
    "FindCoordinator": Call(committed, 10, 1, 3),
    "InitProducerId": Call(take_and_prove, 22, 3, 4),
    "ListOffsets": Call(list_offsets, 2, 2, 8),
    "ListTransactions": Call(take_and_prove, 66, 0, 0),
    "Metadata": Call(read_metadata, 3, 4, 12),
    "OffsetCommit": Call(commit, 8, 2, 9),
    "OffsetDelete": Call(delete, 47, 0, 0),
    "OffsetFetch": Call(committed, 9, 1, 9),
    "OffsetForLeaderEpoch": Call(ask_epochs, 23, 2, 4),
    "SaslAuthenticate": Call(read_metadata, 36, 0, 1),
    "SaslHandshake": Call(read_metadata, 17, 1, 1),
}
VERSIONS = [
    (name, version) for name, call in CALLS.items() for version in range(call.least, call.most + 1)
]


# Requests of a producer, by the version of its transactions.
PRODUCING = {
    1: {
        "AddOffsetsToTxn": Call(produce, 25, 0, 4),
        "AddPartitionsToTxn": Call(produce, 24, 0, 3),
        "EndTxn": Call(produce, 26, 0, 4),
        "Produce": Call(produce, 0, 3, 11),
        "TxnOffsetCommit": Call(produce, 28, 0, 4),
    },
    2: {
        "ApiVersions": Call(produce, 18, 3, 4),
        "EndTxn": Call(produce, 26, 5, 5),
        "Produce": Call(produce, 0, 12, 12),
        "TxnOffsetCommit": Call(produce, 28, 5, 5),
    },
}
PRODUCED = [
    (name, version, transactions)
    for transactions, calls in PRODUCING.items()
    for name, call in calls.items()
    for version in range(call.least, call.most + 1)
]


def produced(name: str, version: int, transactions: int) -> list[str]:
    """As ``sent``, by a producer."""
    key = PRODUCING[transactions][name].key
    with ProducerCluster(T0, T1, version=transactions, versions={key: (0, version)}) as brokers:
        cluster = brokers.brokers.cluster()
        produce(cluster)
        cluster.close()
        frames = [each for each in brokers.brokers.brokers[1].received if each.name == name]
    # Every connection begins with version 0 of ApiVersions.
    asked = [each for each in frames if name != "ApiVersions" or each.version]
    assert {version} == {each.version for each in asked}
    return [f"{name} {version} {each.frame.hex()}" for each in asked]


def unknown(kind: Any, **others: object) -> Any:  # noqa: ANN401 (classes of kafka-python's)
    """What either protocol answers about a group that does not exist."""
    group = kind.DescribedGroup(
        error_code=0, group_id="group", group_state="Dead", members=[], **others
    )
    return kind(throttle_time_ms=0, groups=[group])


def sent(name: str, version: int) -> list[str]:
    """The requests of that name that are sent to a broker whose newest version this is, as they are in the file."""
    call = CALLS[name]
    with ScriptedCluster(T0, T1, versions={call.key: (0, version)}) as scripted:
        scripted.ids = dict(IDS)
        for place in (T0, T1):
            scripted.append(place, 0)
        scripted.scripts |= {
            "ConsumerGroupDescribe": unknown(ConsumerGroupDescribeResponse),
            "DescribeConfigs": DescribeConfigsResponse(throttle_time_ms=0, results=[]),
            "DescribeGroups": unknown(
                DescribeGroupsResponse,
                protocol_type="",
                protocol_data="",
                authorized_operations=set(),
            ),
            "InitProducerId": InitProducerIdResponse(
                throttle_time_ms=0, error_code=0, producer_id=5, producer_epoch=6
            ),
            "ListTransactions": ListTransactionsResponse(
                throttle_time_ms=0, error_code=0, unknown_state_filters=[], transaction_states=[]
            ),
            "OffsetCommit": OffsetCommitResponse(throttle_time_ms=0, topics=[]),
            "OffsetDelete": OffsetDeleteResponse(throttle_time_ms=0, error_code=0, topics=[]),
            "OffsetFetch": OffsetFetchResponse(
                throttle_time_ms=0, error_code=0, topics=[], groups=[]
            ),
            "SaslHandshake": SaslHandshakeResponse(error_code=0, mechanisms=["PLAIN"]),
            "SaslAuthenticate": SaslAuthenticateResponse(
                error_code=0, error_message=None, auth_bytes=b"", session_lifetime_ms=0
            ),
        }
        cluster = scripted.cluster(login=LOGIN if name.startswith("Sasl") else None)
        call.play(cluster)
        cluster.close()
        frames = [each for each in scripted.brokers[1].received if each.name == name]
    assert {version} == {each.version for each in frames}
    return [f"{name} {version} {each.frame.hex()}" for each in frames]


@pytest.mark.parametrize(("name", "version"), VERSIONS)
def test_a_request_has_these_bytes(name: str, version: int) -> None:
    """In this version."""
    expected = [
        line for line in EXPECTED.read_text().splitlines() if line.startswith(f"{name} {version} ")
    ]

    assert expected == sent(name, version)


@pytest.mark.parametrize(("name", "version", "transactions"), PRODUCED)
def test_a_request_of_a_producer_has_these_bytes(
    name: str, version: int, transactions: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In this version."""
    monkeypatch.setattr("headrace.kafka.wire.cluster.__version__", "0.1.0")
    expected = [
        line for line in EXPECTED.read_text().splitlines() if line.startswith(f"{name} {version} ")
    ]

    assert expected == produced(name, version, transactions)


def test_no_request_is_forgotten() -> None:
    """Those that are sent for one of these calls are among them, and each has its bytes."""
    named = {tuple(line.split()[:2]) for line in EXPECTED.read_text().splitlines()}

    known = [*VERSIONS, *((name, version) for name, version, _ in PRODUCED)]

    assert {(name, str(version)) for name, version in known} == named
