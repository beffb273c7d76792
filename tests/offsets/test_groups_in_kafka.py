"""A connector's offsets in a consumer group of a real broker."""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Iterator
from dataclasses import replace

import pytest
from confluent_kafka import Consumer
from confluent_kafka.admin import AdminClient, NewTopic

from doubles.copied_positions import PATH, copied
from headrace.config.client_settings import ConnectorOffsetsGroup
from headrace.connect.errors import ReplanError, RetriableError, TaskFailedError
from headrace.connect.group_offsets import GroupEntry, OffsetGroup
from headrace.connect.partition import SourcePartition
from headrace.kafka.admin import CompactedTopic, KafkaAdmin
from headrace.kafka.client_config import client_config, producer_config
from headrace.kafka.deadline import Deadline
from headrace.kafka.wire_sender import WireSender, make_wire_sender
from headrace.offsets.connector_stores import (
    ConnectorOffsets,
    ConnectorOffsetStores,
    NamedConnector,
)
from headrace.offsets.consumer_group import GroupOffsets, connector_group
from headrace.offsets.kafka_store import KafkaOffsetStore
from headrace.offsets.store import LockedOffsetStore
from headrace.offsets.target import TargetGroup
from headrace.runtime.driver_offsets import DriverOffsetCommitter
from headrace.runtime.services import RunSpec
from headrace.storage.memory import MemoryOffsetStore
from headrace.task.connector_spec import Delivery
from offsets.connector_offsets_suite import ConnectorOffsetsSuite
from runtime.desk import SPEC

pytestmark = pytest.mark.broker


@pytest.fixture
def offsets_topic(bootstrap: str) -> str:
    """A worker's topic of offsets."""
    topic = f"groups-offsets-{uuid.uuid4().hex[:8]}"
    admin = KafkaAdmin(client_config({"bootstrap.servers": bootstrap}))
    wanted = CompactedTopic(name=topic, partitions=3, replication=1)
    admin.ensure_compacted_topic(wanted, Deadline.after(20))
    return topic


@pytest.fixture
def topic(bootstrap: str) -> str:
    """A source topic's name; its copy exists, with two partitions."""
    name = f"groups-{uuid.uuid4().hex[:8]}"
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(f"a.{name}", 2, 1)])[f"a.{name}"].result()
    return name


@pytest.fixture
def own(bootstrap: str, topic: str) -> ConnectorOffsetsGroup:
    """A group of the test's own."""
    group = OffsetGroup(group_id=f"of-{topic}", codec=PATH, config={"alias": "a"})
    return ConnectorOffsetsGroup(group=group, connection={"bootstrap.servers": bootstrap})


@pytest.fixture
def offsets(own: ConnectorOffsetsGroup) -> Iterator[GroupOffsets]:
    """What is tested."""
    made = connector_group(own, "c")
    yield made
    made.close()


class TestTheContract(ConnectorOffsetsSuite):
    """The group keeps the contract of all stores."""

    @pytest.fixture
    def offsets(self, own: ConnectorOffsetsGroup, topic: str) -> Iterator[ConnectorOffsets]:
        """Its topic is there."""
        made = connector_group(own, "c")
        yield made
        made.close()

    @pytest.fixture
    def source(self, topic: str) -> str:
        """The topic whose copy is there."""
        return topic


@pytest.fixture
def spec(bootstrap: str, own: ConnectorOffsetsGroup) -> RunSpec:
    """A connector with its offsets there, exactly once."""
    group = own.group
    return replace(
        SPEC,
        producer={"bootstrap.servers": bootstrap},
        offsets=TargetGroup(group_id=group.group_id, codec=group.codec, config=dict(group.config)),
        offsets_group=own,
        delivery=Delivery.EXACTLY_ONCE,
    )


def places(topic: str) -> tuple[SourcePartition, SourcePartition]:
    """Its two source partitions."""
    return copied(topic), copied(topic, 1)


def opened(bootstrap: str, transactional_id: str) -> WireSender:
    """A sender with that id, which has begun a transaction."""
    made = make_wire_sender(
        producer_config({"bootstrap.servers": bootstrap}, transactional_id=transactional_id)
    )
    made.open()
    made.begin()
    return made


@pytest.mark.parametrize("commits", [True, False])
def test_a_transaction_of_another_writer_is_waited_for(
    bootstrap: str, topic: str, offsets: GroupOffsets, *, commits: bool
) -> None:
    """What it holds is neither read nor passed over."""
    zero, _ = places(topic)
    offsets.put({zero: {"offset": 4}})
    other = opened(bootstrap, f"other-{topic}")
    other.send_group_offsets(f"of-{topic}", [GroupEntry(f"a.{topic}", 0, 9, '"a"')])
    timer = threading.Timer(1.0, other.commit if commits else other.abort)
    timer.start()
    began = time.monotonic()

    found = offsets.current().offset(zero)

    assert time.monotonic() - began > 0.8
    timer.join()
    other.close()
    assert {"offset": 8 if commits else 4} == found


def test_a_transaction_that_stays_open_is_told(
    bootstrap: str, topic: str, own: ConnectorOffsetsGroup
) -> None:
    """In time, and with the partition; a driver fences before it reads."""
    zero, _ = places(topic)
    other = opened(bootstrap, f"other-{topic}")
    other.send_group_offsets(f"of-{topic}", [GroupEntry(f"a.{topic}", 1, 9, '"a"')])
    patient = connector_group(own, "c")
    patient.put({zero: {"offset": 4}})
    patient._seconds = 1.0

    with pytest.raises(RetriableError, match=f"a.{topic}-1: UNSTABLE_OFFSET_COMMIT"):
        patient.current()
    other.abort()
    assert {zero: {"offset": 4}} == patient.current().known()
    other.close()
    patient.close()


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_group_that_someone_consumes_with_is_refused(
    bootstrap: str, topic: str, offsets: GroupOffsets, protocol: str
) -> None:
    """Until it is left; with the client's name."""
    zero, _ = places(topic)
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": f"of-{topic}",
            "client.id": "a-reader",
            "group.protocol": protocol,
        }
    )
    consumer.subscribe([f"a.{topic}"])
    deadline = Deadline.after(30)
    while not consumer.assignment():
        consumer.poll(0.1)
        assert not deadline.expired
    with pytest.raises(TaskFailedError, match=r"1 member \('a-reader' at 127\.0\.0\.1\)"):
        offsets.put({zero: {"offset": 4}})
    consumer.close()

    offsets.put({zero: {"offset": 4}})
    assert {"offset": 4} == offsets.current().offset(zero)


def test_the_driver_fences_commits_and_removes(
    bootstrap: str, topic: str, spec: RunSpec, offsets: GroupOffsets
) -> None:
    """A dead task's open transaction neither holds it up nor counts."""
    zero, one = places(topic)
    offsets.put({one: {"offset": 1}})
    stores = ConnectorOffsetStores(LockedOffsetStore(MemoryOffsetStore()))
    dead = opened(bootstrap, f"{topic}-c-0")
    dead.send_group_offsets(f"of-{topic}", [GroupEntry(f"a.{topic}", 0, 99, '"a"')])
    seen = list[object]()

    DriverOffsetCommitter(stores, topic).commit(
        spec,
        {zero: {"offset": 4}, one: None},
        lambda: seen.append(dict(offsets.current().known())),
    )

    assert [{one: {"offset": 1}}] == seen
    assert {zero: {"offset": 4}} == stores.of(spec).current().known()
    with pytest.raises(ReplanError):
        dead.commit()
    dead.close()
    stores.close()


def test_offsets_in_the_worker_s_topic_are_moved_in_one_transaction(
    bootstrap: str,
    offsets_topic: str,
    topic: str,
    *,
    spec: RunSpec,
    own: ConnectorOffsetsGroup,
) -> None:
    """As MirrorMaker has left them; the topic has their tombstones, and only the copy that exists is moved."""
    zero, one = places(topic)
    absent = copied(f"{topic}-absent")
    worker = LockedOffsetStore(
        KafkaOffsetStore(
            offsets_topic,
            client=client_config({"bootstrap.servers": bootstrap}),
            producer=producer_config({"bootstrap.servers": bootstrap}),
        )
    )
    worker.put("c", {each: {"offset": 7} for each in (zero, one, absent)})
    stores = ConnectorOffsetStores(worker, worker_topic=offsets_topic)
    moving = stores.of(spec)
    assert {zero, one} == set(moving.differently_encoded())

    DriverOffsetCommitter(stores, topic).commit(spec, moving.differently_encoded(), lambda: None)

    assert {absent} == set(worker.current("c").known())
    assert {} == moving.differently_encoded()
    alone = connector_group(own, "c")
    assert {zero: {"offset": 7}, one: {"offset": 7}} == alone.current().known()
    assert {zero, one, absent} == set(moving.current().known())
    alone.close()
    stores.close()
    worker.close()


def test_a_group_is_shared_by_nobody_else(own: ConnectorOffsetsGroup, topic: str) -> None:
    """What is read through a worker's stores is what is read alone."""
    zero, _ = places(topic)
    stores = ConnectorOffsetStores(LockedOffsetStore(MemoryOffsetStore()))
    named = NamedConnector(name="c", offsets_group=own)

    stores.of(named).put({zero: {"offset": 3}})

    assert {zero: {"offset": 3}} == stores.of(named).current().known()
    stores.close()
