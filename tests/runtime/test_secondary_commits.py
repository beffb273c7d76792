"""Copies of offsets on a real broker: a worker that takes a connector over fences those of the worker before it."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import pytest

from headrace.connect.errors import ConnectorFencedError, FencedError
from headrace.connect.partition import SourcePartition
from headrace.kafka.admin import CompactedTopic, KafkaAdmin
from headrace.kafka.client_config import client_config, producer_config
from headrace.kafka.deadline import Deadline
from headrace.offsets.kafka_store import KafkaOffsetStore
from headrace.offsets.store import LockedOffsetStore
from headrace.runtime.secondary_offsets import SecondaryOffsetTopic

pytestmark = pytest.mark.broker
A = SourcePartition(filename="a")


@pytest.fixture
def topic(bootstrap: str) -> str:
    """The worker's topic of offsets."""
    name = f"copies-{uuid.uuid4().hex[:8]}"
    admin = KafkaAdmin(client_config({"bootstrap.servers": bootstrap}))
    wanted = CompactedTopic(name=name, partitions=2, replication=1)
    admin.ensure_compacted_topic(wanted, Deadline.after(20))
    return name


@pytest.fixture
def desk(bootstrap: str, topic: str) -> Iterator[LockedOffsetStore]:
    """What reads it."""
    reach = {"bootstrap.servers": bootstrap}
    store = KafkaOffsetStore(topic, client=client_config(reach), producer=producer_config(reach))
    opened = LockedOffsetStore(store)
    yield opened
    opened.close()


@pytest.mark.parametrize("by_wire", [False, True], ids=["client", "wire"])
def test_a_late_copy_does_not_come_back_after_a_reset(
    bootstrap: str, topic: str, desk: LockedOffsetStore, *, by_wire: bool
) -> None:
    """The worker that was held still has its writer; once fenced, it finds out whose the connector is."""
    reach = {"bootstrap.servers": bootstrap}
    secondary = SecondaryOffsetTopic(desk, topic, producer=reach, group_id=topic)
    proofs = iter([None, None, ConnectorFencedError("taken over")])

    def prove() -> None:
        failure = next(proofs)
        if failure is not None:
            raise failure

    held = secondary.writer("c", prove, by_wire=by_wire)
    held.put("c", {A: {"at": 1}})
    secondary.fence("c", is_used=False, give_up=lambda: False)
    taker = secondary.writer("c", lambda: None, by_wire=by_wire)
    taker.put("c", {A: None})

    with pytest.raises(FencedError):
        held.put("c", {A: {"at": 2}})
    with pytest.raises(ConnectorFencedError):
        held.put("c", {A: {"at": 2}})
    assert {} == desk.current("c").known()
    for each in (held, taker):
        each.close()
