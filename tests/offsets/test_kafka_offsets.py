"""The offset store on a Kafka topic keeps the contract of stores and reads what others wrote."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator

import pytest
from confluent_kafka.admin import AdminClient, NewPartitions

from headrace.connect.errors import RetriableError
from headrace.connect.partition import SourcePartition
from headrace.kafka.admin import CompactedTopic, KafkaAdmin
from headrace.kafka.client_config import client_config, producer_config
from headrace.kafka.client_sender import make_sender
from headrace.kafka.deadline import Deadline
from headrace.kafka.partitioner import java_partition
from headrace.offsets.kafka_store import KafkaOffsetStore, steps
from headrace.offsets.store import OffsetRecordStore
from headrace.testing.judge import committed_records
from headrace.testing.storage_suites import OffsetRecordStoreSuite
from waiting import until

pytestmark = pytest.mark.broker

OURS = b'["c",{"cluster":"x","partition":0,"topic":"t"}]'
THEIRS = b'["c",{"topic":"t","partition":0,"cluster":"x"}]'
PARTITION = SourcePartition({"topic": "t", "partition": 0, "cluster": "x"})


@pytest.fixture
def offsets_topic(bootstrap: str) -> str:
    """A compacted topic of the test's own."""
    topic = f"storage-offsets-{uuid.uuid4().hex[:8]}"
    admin = KafkaAdmin(client_config({"bootstrap.servers": bootstrap}))
    wanted = CompactedTopic(name=topic, partitions=3, replication=1)
    admin.ensure_compacted_topic(wanted, Deadline.after(20))
    return topic


@pytest.fixture
def open_kafka_store(
    bootstrap: str, offsets_topic: str
) -> Iterator[Callable[[], KafkaOffsetStore]]:
    """Opens stores that are closed with the test."""
    opened: list[KafkaOffsetStore] = []
    properties = {"bootstrap.servers": bootstrap}

    def open_store() -> KafkaOffsetStore:
        store = KafkaOffsetStore(
            offsets_topic,
            client=client_config(properties),
            producer=producer_config(properties, transactional_id=f"{offsets_topic}-writer"),
            refresh_seconds=10,
        )
        opened.append(store)
        return store

    yield open_store
    for store in opened:
        store.close()


class TestKafkaOffsets(OffsetRecordStoreSuite):
    """Offsets in a topic of a real broker."""

    @pytest.fixture
    def store(self, open_kafka_store: Callable[[], KafkaOffsetStore]) -> OffsetRecordStore:
        """An empty store on a new topic."""
        return open_kafka_store()


def write(bootstrap: str, topic: str, *entries: tuple[bytes, bytes | None]) -> None:
    """As some other program would, one record after the other."""
    sender = make_sender(producer_config({"bootstrap.servers": bootstrap}))
    for entry in entries:
        sender.send_offsets(topic, [entry])
        sender.flush()
    sender.close()


def test_offsets_survive_a_restart(open_kafka_store: Callable[[], KafkaOffsetStore]) -> None:
    """A new store reads what an earlier one wrote, and takes over its transactional id."""
    open_kafka_store().put("c", {PARTITION: {"offset": 1}})
    second = open_kafka_store()
    second.put("c", {SourcePartition(n=1): {"offset": 2}})
    second.refresh()

    assert {PARTITION: {"offset": 1}, SourcePartition(n=1): {"offset": 2}} == second.known("c")


def test_any_order_of_keys_is_found(
    bootstrap: str, offsets_topic: str, open_kafka_store: Callable[[], KafkaOffsetStore]
) -> None:
    """The record written last counts, under whatever bytes."""
    write(bootstrap, offsets_topic, (OURS, b'{"offset":1}'), (THEIRS, b'{"offset":2}'))
    store = open_kafka_store()
    store.refresh()

    assert {PARTITION: {"offset": 2}} == store.known("c")


def test_other_bytes_of_a_partition_are_removed_with_it(
    bootstrap: str, offsets_topic: str, open_kafka_store: Callable[[], KafkaOffsetStore]
) -> None:
    """After an overwrite and a removal nothing of the partition is left for anybody."""
    write(bootstrap, offsets_topic, (THEIRS, b'{"offset":2}'))
    store = open_kafka_store()
    store.put("c", {PARTITION: {"offset": 3}})
    store.refresh()

    assert [(OURS, None)] == store.entries_for("c", {PARTITION: None})
    assert {PARTITION: {"offset": 3}} == store.known("c")


def grow(bootstrap: str, topic: str, partitions: int) -> None:
    """Give *topic* more partitions, and wait until the broker lists them."""
    client = AdminClient({"bootstrap.servers": bootstrap})
    client.create_partitions([NewPartitions(topic, partitions)])[topic].result()
    admin = KafkaAdmin(client_config({"bootstrap.servers": bootstrap}))
    until(lambda: len(admin.partitions(topic, Deadline.after(10))) == partitions)


def test_offsets_do_not_go_back_when_the_topic_gains_partitions(
    bootstrap: str, offsets_topic: str, open_kafka_store: Callable[[], KafkaOffsetStore]
) -> None:
    """Most keys then lie in two partitions, which are replayed in no order."""
    partitions = [SourcePartition(n=number) for number in range(40)]
    first = open_kafka_store()
    first.put("c", {one: {"offset": 100} for one in partitions})
    grow(bootstrap, offsets_topic, 7)
    first.refresh()
    first.put("c", {one: {"offset": 200} for one in partitions[:30]})
    first.put("c", dict.fromkeys(partitions[30:]))
    expected = {one: {"offset": 200} for one in partitions[:30]}
    for _ in range(3):
        fresh = open_kafka_store()
        fresh.refresh()
        assert expected == fresh.known("c")

    later = [
        one for one in committed_records(bootstrap, offsets_topic) if one.value != b'{"offset":100}'
    ]
    assert len(later) == len(partitions)
    assert all(one.partition == java_partition(one.key or b"", 7) for one in later)


def test_without_a_transaction_tombstones_wait_for_the_offsets() -> None:
    """Whoever dies in between leaves two forms of an offset, and never none."""
    value, tombstone = (OURS, b"{}"), (THEIRS, None)

    assert [[value], [tombstone]] == steps([tombstone, value])
    assert [[tombstone]] == steps([tombstone])


def test_foreign_records_are_skipped(
    bootstrap: str, offsets_topic: str, open_kafka_store: Callable[[], KafkaOffsetStore]
) -> None:
    """What is not an offset stops no one from reading the others."""
    foreign = [(b"x", b"y"), (b'["c",null]', b"{}"), (b'["c",{"a":[]}]', b"{}"), (OURS, b"[]")]
    write(bootstrap, offsets_topic, *foreign, (THEIRS, b'{"offset":2}'))
    store = open_kafka_store()
    store.refresh()

    assert {PARTITION: {"offset": 2}} == store.known("c")


def test_another_transaction_in_the_topic_is_named(
    bootstrap: str, offsets_topic: str, open_kafka_store: Callable[[], KafkaOffsetStore]
) -> None:
    """A refresh that cannot see the end fails with the topic's name and never answers too early."""
    store = KafkaOffsetStore(
        offsets_topic,
        client=client_config({"bootstrap.servers": bootstrap}),
        producer=producer_config({"bootstrap.servers": bootstrap}),
        refresh_seconds=1,
    )
    writer = open_kafka_store()
    writer.refresh()
    config = producer_config({"bootstrap.servers": bootstrap}, transactional_id=offsets_topic)
    blocker = make_sender(config)
    blocker.open()
    blocker.begin()
    blocker.send_offsets(offsets_topic, [(OURS, b'{"offset":9}')])
    blocker.flush()
    writer.put("c", {PARTITION: {"offset": 1}})

    with pytest.raises(RetriableError, match=offsets_topic):
        store.refresh()
    blocker.abort()
    store.refresh()

    assert {PARTITION: {"offset": 1}} == store.known("c")
    blocker.close()
    store.close()
