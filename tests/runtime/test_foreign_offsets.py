"""Offsets that others stored under bytes of their own are ours from the moment of the take-over on."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from headrace.connect.connector import Plan, PlanRequest
from headrace.connect.errors import RetriableError
from headrace.connect.partition import SourcePartition
from headrace.connect.task import Offsets
from headrace.kafka.admin import CompactedTopic, KafkaAdmin
from headrace.kafka.client_config import client_config, producer_config
from headrace.kafka.client_sender import make_sender
from headrace.kafka.deadline import Deadline
from headrace.offsets.connector_stores import ConnectorOffsetStores
from headrace.offsets.kafka_store import KafkaOffsetStore
from headrace.offsets.store import LockedOffsetStore
from headrace.offsets.target import OffsetTopic
from headrace.runtime.driver_offsets import DriverOffsetCommitter
from headrace.runtime.services import RunSpec
from headrace.task.connector_spec import Delivery, SenderKind
from headrace.testing.judge import committed_records
from runtime.desk import SPEC, Desk

OURS = b'["c",{"cluster":"x","partition":0,"topic":"t"}]'
THEIRS = b'["c",{"topic":"t","partition":0,"cluster":"x"}]'
OTHER_TEXT = b'["c",{"scale":1e3}]'
PARTITION = SourcePartition({"topic": "t", "partition": 0, "cluster": "x"})
SCALE = SourcePartition(scale=1000.0)


class Run:
    """A connector's run with these records in its store; *done* is what happened, in order."""

    def __init__(self, *entries: tuple[bytes, bytes | None]) -> None:
        self.desk = Desk(lambda *_: None, self._plan)
        self.desk.offsets._pending += entries
        self.done = self.desk.done
        self.desk.commit = self._commit
        self.failures: Iterator[Exception] = iter(())

    def _plan(self, request: PlanRequest) -> Plan:
        self.done.append(("planned", dict(request.offsets.known())))
        return Plan()

    def _commit(self, spec: RunSpec, offsets: Offsets) -> None:
        for failure in self.failures:
            raise failure
        self.done.append(("committed", dict(offsets)))
        self.desk.offsets.put(spec.name, offsets)

    def run(self) -> None:
        """Run the connector to its end."""
        try:
            assert self.desk.run().failure is None
        finally:
            self.desk.channel.close()


FENCED = ("fenced", ["g-c-0", "g-c-1"])


def test_they_are_rewritten_after_the_fence_and_before_the_first_plan() -> None:
    """No one else writes by then, and no slot has written ours beside them yet."""
    run = Run((THEIRS, b'{"o":2}'))
    run.run()

    known = {PARTITION: {"o": 2}}
    assert [FENCED, ("committed", known), ("planned", known)] == run.done
    assert [(OURS, None)] == run.desk.offsets.entries_for("c", {PARTITION: None})


def test_nothing_is_written_where_nothing_is_foreign() -> None:
    """A take-over costs no transaction of its own."""
    run = Run((OURS, b'{"o":2}'))
    run.run()

    assert [FENCED, ("planned", {PARTITION: {"o": 2}})] == run.done


def test_a_rewrite_that_failed_is_fenced_and_tried_again() -> None:
    """Its transaction may be open still, and what it held may be there or not."""
    run = Run((THEIRS, b'{"o":2}'))
    run.failures = iter([RetriableError("lost the answer")])
    run.run()

    known = {PARTITION: {"o": 2}}
    done = [FENCED, FENCED, ("committed", known), ("planned", known), ("committed", known)]
    assert done == run.done


@pytest.fixture
def offsets_topic(bootstrap: str) -> str:
    """A compacted topic of the test's own."""
    topic = f"foreign-offsets-{uuid.uuid4().hex[:8]}"
    admin = KafkaAdmin(client_config({"bootstrap.servers": bootstrap}))
    wanted = CompactedTopic(name=topic, partitions=3, replication=1)
    admin.ensure_compacted_topic(wanted, Deadline.after(20))
    return topic


@pytest.fixture
def open_desk(bootstrap: str, offsets_topic: str) -> Iterator[Callable[[], LockedOffsetStore]]:
    """Opens desks as a worker does; they are closed with the test."""
    opened: list[LockedOffsetStore] = []
    reach = {"bootstrap.servers": bootstrap}

    def open_one() -> LockedOffsetStore:
        store = KafkaOffsetStore(
            offsets_topic, client=client_config(reach), producer=producer_config(reach)
        )
        opened.append(LockedOffsetStore(store))
        return opened[-1]

    yield open_one
    for each in opened:
        each.close()


@pytest.mark.broker
@pytest.mark.parametrize("sender", SenderKind)
@pytest.mark.parametrize("delivery", [Delivery.EXACTLY_ONCE, Delivery.AT_LEAST_ONCE])
def test_the_topic_holds_one_form_of_each_offset_afterwards(
    bootstrap: str,
    offsets_topic: str,
    open_desk: Callable[[], LockedOffsetStore],
    *,
    delivery: Delivery,
    sender: SenderKind,
) -> None:
    """Kafka Connect's own form, also where that was there with an older offset."""
    theirs = [(OURS, b'{"o":1}'), (THEIRS, b'{"o":2}'), (OTHER_TEXT, b'{"o":3}')]
    other = make_sender(producer_config({"bootstrap.servers": bootstrap}))
    for entry in theirs:
        other.send_offsets(offsets_topic, [entry])
        other.flush()
    other.close()
    desk = open_desk()
    spec = replace(
        SPEC,
        delivery=delivery,
        sender=sender,
        producer={"bootstrap.servers": bootstrap},
        offsets=OffsetTopic(name=offsets_topic),
    )
    commits = DriverOffsetCommitter(ConnectorOffsetStores(desk), group_id=offsets_topic)

    commits.commit(spec, desk.differently_encoded("c"), lambda: None)

    left = {each.key: each.value for each in committed_records(bootstrap, offsets_topic)}
    ours = {OURS: b'{"o":2}', b'["c",{"scale":1000.0}]': b'{"o":3}'}
    assert {**ours, THEIRS: None, OTHER_TEXT: None} == left
    assert {} == desk.differently_encoded("c")
    assert {PARTITION: {"o": 2}, SCALE: {"o": 3}} == open_desk().current("c").known()
