"""Which groups there are, and what all of them have committed."""

from __future__ import annotations

from collections.abc import Iterator
from uuid import uuid4

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka import TopicPartition as TheirPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from headrace.connect.group_offsets import GroupEntry
from headrace.kafka.client_config import client_config
from headrace.kafka.deadline import Deadline
from headrace.kafka.wire.cluster import Cluster
from headrace.kafka.wire.group_requests import DEAD, EMPTY, ListedGroup
from headrace.kafka.wire.settings import wire_settings
from waiting import until


def soon() -> Deadline:
    """Long enough for a busy machine."""
    return Deadline.after(30)


@pytest.fixture
def client(bootstrap: str) -> Iterator[Cluster]:
    """Of the shared broker."""
    made = Cluster(wire_settings(client_config({"bootstrap.servers": bootstrap}).settings))
    yield made
    made.close()


@pytest.fixture
def topic(bootstrap: str) -> str:
    """With two partitions."""
    name = f"t-{uuid4().hex}"
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(name, 2, 1)])[name].result()
    until(lambda: name in admin.list_topics(timeout=10).topics)
    return name


@pytest.mark.broker
@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_groups_are_listed_with_their_state(
    bootstrap: str, client: Cluster, topic: str, protocol: str
) -> None:
    """One that has members, one that never had any, and none that does not exist."""
    empty, full = f"empty-{topic}", f"full-{topic}"
    client.commit_entries(empty, [GroupEntry(topic, 0, 7)], soon())
    settings = {"bootstrap.servers": bootstrap, "group.id": full, "group.protocol": protocol}
    consumer = Consumer(settings)
    consumer.subscribe([topic])

    def is_in() -> bool:
        consumer.poll(0.1)
        return bool(consumer.assignment())

    until(is_in)
    found = {each.group_id: each for each in client.list_groups(soon())}
    consumer.close()

    assert EMPTY == found[empty].state
    assert "Stable" == found[full].state
    assert found[empty].is_of_consumers
    assert found[full].is_of_consumers
    assert f"no-{topic}" not in found


@pytest.mark.broker
def test_what_many_groups_have_committed_is_asked_for_at_once(client: Cluster, topic: str) -> None:
    """More of them than one request has; those that do not exist have nothing."""
    groups = [f"g{number}-{topic}" for number in range(60)]
    for number, group in enumerate(groups):
        client.commit_entries(
            group, [GroupEntry(topic, 1, number, "m"), GroupEntry(topic, 0, 1)], soon()
        )
    client.list_groups(soon())

    found = client.committed_by_groups([*groups, f"no-{topic}"], soon())

    assert [] == found.pop(f"no-{topic}")
    assert {group: [(0, 1, ""), (1, number, "m")] for number, group in enumerate(groups)} == {
        group: [each[1:4] for each in entries] for group, entries in found.items()
    }
    assert {} == client.committed_by_groups([], soon())


@pytest.mark.broker
def test_an_open_transaction_is_not_waited_for(bootstrap: str, client: Cluster, topic: str) -> None:
    """What was committed before it is there."""
    group = f"g-{topic}"
    client.commit_entries(group, [GroupEntry(topic, 0, 5)], soon())
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": f"id-{topic}"})
    producer.init_transactions(20)
    producer.begin_transaction()
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group})
    moved = [TheirPartition(topic, number, 6) for number in (0, 1)]
    producer.send_offsets_to_transaction(moved, consumer.consumer_group_metadata(), 20)

    found = client.committed_by_groups([group], soon())

    producer.abort_transaction()
    consumer.close()
    assert [(0, 5)] == [(each.partition, each.offset) for each in found[group]]


@pytest.mark.parametrize(
    ("members", "protocol", "is_so"),
    [
        ("consumer", "Classic", True),
        ("consumer", "Consumer", True),
        ("", "", True),
        ("connect", "Classic", False),
        ("consumer", "Share", False),
        ("streams", "Streams", False),
    ],
)
def test_only_groups_of_consumers_have_positions(members: str, protocol: str, *, is_so: bool):
    """As MirrorMaker sees it."""
    assert is_so == ListedGroup("g", members, DEAD, protocol).is_of_consumers
