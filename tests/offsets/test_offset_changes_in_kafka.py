"""Changes of offsets in a topic: one transaction each, and what a killed writer leaves open does not count."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta

import pytest

from headrace.connect.errors import ReplanError
from headrace.kafka.admin import CompactedTopic, KafkaAdmin
from headrace.kafka.client_config import client_config, producer_config
from headrace.kafka.client_sender import make_sender
from headrace.kafka.deadline import Deadline
from headrace.offsets.administration import OffsetChanges
from headrace.offsets.codec import encoded_entries
from headrace.offsets.connector_stores import ConnectorOffsetStores
from headrace.offsets.kafka_store import KafkaOffsetStore
from headrace.offsets.target import OffsetTopic
from headrace.runtime.driver_offsets import DriverOffsetCommitter
from headrace.runtime.fencing import coordinator_of
from headrace.runtime.services import RunSpec
from headrace.storage.memory import MemoryChangeStore, MemoryConfigStore, MemoryOffsetStore
from headrace.storage.protocols import (
    HistoryEntry,
    Intent,
    Operation,
    Retention,
    TaskCount,
)
from headrace.testing.judge import committed_records
from offsets.changing import STORED, A, B, Stage, change

pytestmark = pytest.mark.broker


@pytest.fixture
def topic(bootstrap: str) -> str:
    """A compacted topic of the test's own, also the name of its worker group."""
    name = f"changes-{uuid.uuid4().hex[:8]}"
    wanted = CompactedTopic(name=name, partitions=3, replication=1)
    client = client_config({"bootstrap.servers": bootstrap})
    KafkaAdmin(client).ensure_compacted_topic(wanted, Deadline.after(20))
    return name


@pytest.fixture
def stage(bootstrap: str, topic: str) -> Iterator[Stage]:
    """A connector with offsets for two files in the topic."""
    configs = MemoryConfigStore()
    offsets = KafkaOffsetStore(
        topic,
        client=client_config({"bootstrap.servers": bootstrap}),
        producer=producer_config({"bootstrap.servers": bootstrap}),
        refresh_seconds=20,
    )
    changes = MemoryChangeStore(MemoryOffsetStore(), configs)
    stage = Stage(changes_store=changes, offsets=offsets, configs=configs)
    stage.put({A: {"position": 1}, B: {"position": 5}})
    yield stage
    offsets.close()


@pytest.fixture
def spec(stage: Stage, bootstrap: str, topic: str) -> RunSpec:
    """The connector, writing to the broker."""
    return replace(
        stage.spec, producer={"bootstrap.servers": bootstrap}, offsets=OffsetTopic(name=topic)
    )


@pytest.fixture
def changes(stage: Stage, topic: str) -> OffsetChanges:
    """What is tested, writing to the broker."""
    services = replace(
        stage._services(),
        group_id=topic,
        coordinator=coordinator_of,
        commit_offsets=DriverOffsetCommitter(ConnectorOffsetStores(stage.locked), topic).commit,
    )
    return OffsetChanges(services, stage.changes_store)


def test_a_creation_wipes_and_sets_in_one_transaction(
    stage: Stage, spec: RunSpec, changes: OffsetChanges, *, bootstrap: str, topic: str
):
    """The topic shows the initial offsets only, and holds what Kafka Connect would read."""
    changes.create(spec, STORED, [change({"filename": "b"}, {"position": 7})], who=None)

    assert {B: {"position": 7}} == stage.known()
    last = {one.key: one.value for one in committed_records(bootstrap, topic)}
    assert {b'["c",{"filename":"a"}]': None, b'["c",{"filename":"b"}]': b'{"position":7}'} == last
    assert {"c": STORED} == stage.configs.connectors()


def test_what_a_killed_writer_left_open_is_undone(
    stage: Stage, spec: RunSpec, changes: OffsetChanges, *, bootstrap: str, topic: str
):
    """Recovery does not wait for the transaction to time out, and the dead writer cannot come back."""
    stage.configs.put_connector(STORED)
    stage.configs.put_task_count("c", TaskCount(slots=2))
    before, after = {A: {"position": 1}}, {A: {"position": 9}}
    entry = HistoryEntry(
        connector="c", operation=Operation.ALTER, who=None, at_ms=0, before=before, after=after
    )
    stage.changes_store.begin(Intent(entry=entry), Retention(max_age=timedelta(days=36500)))
    config = producer_config({"bootstrap.servers": bootstrap}, transactional_id=f"{topic}-c-0")
    dead = make_sender(config, owner="the dead one")
    dead.open()
    dead.begin()
    dead.send_offsets(topic, encoded_entries("c", after))
    began = time.monotonic()

    assert changes.recover(stage.configs.connectors(), lambda _: spec) == {}

    assert time.monotonic() - began < 30
    assert {A: {"position": 1}, B: {"position": 5}} == stage.known()
    assert list(stage.changes_store.open_intents()) == []
    with pytest.raises(ReplanError):
        dead.commit()
    dead.close()
