"""An outage of the broker blocks no one who shares the offset store for longer than its deadline."""

from __future__ import annotations

import threading
import time

import pytest

from headrace.broker import Broker
from headrace.connect.errors import RetriableError
from headrace.connect.partition import SourcePartition
from headrace.kafka.admin import CompactedTopic, KafkaAdmin
from headrace.kafka.client_config import client_config, producer_config
from headrace.kafka.deadline import Deadline
from headrace.offsets.kafka_store import KafkaOffsetStore
from headrace.offsets.store import LockedOffsetStore
from waiting import until

pytestmark = [pytest.mark.broker, pytest.mark.kill]

FILE = SourcePartition(filename="f")


def opened_store(broker: Broker, topic: str) -> LockedOffsetStore:
    """A store on a new topic, without transactions, as in at-least-once; it has written already."""
    properties = {"bootstrap.servers": broker.bootstrap}
    wanted = CompactedTopic(name=topic, partitions=2, replication=1)
    KafkaAdmin(client_config(properties)).ensure_compacted_topic(wanted, Deadline.after(20))
    inner = KafkaOffsetStore(
        topic,
        client=client_config(properties),
        producer=producer_config(properties),
        refresh_seconds=2,
    )
    store = LockedOffsetStore(inner)
    until(lambda: stored(store, 1))
    return store


def stored(store: LockedOffsetStore, position: int) -> bool:
    """Whether *position* could be stored now; a broker that has just started may take its time."""
    try:
        store.put("c", {FILE: {"position": position}})
    except RetriableError:
        return False
    return True


def test_a_put_gives_up_and_may_be_tried_again(broker: Broker) -> None:
    """Whoever waits for the same lock hears of the outage as well, and goes on after it."""
    store = opened_store(broker, "outage")
    heard: list[str] = []

    def put_during_the_outage() -> None:
        try:
            store.put("c", {FILE: {"position": 2}})
        except RetriableError as error:
            heard.append(str(error))

    broker.pause()
    try:
        puts = threading.Thread(target=put_during_the_outage, daemon=True)
        puts.start()
        with pytest.raises(RetriableError):
            store.current("other")
        puts.join(20)
    finally:
        broker.resume()
    until(lambda: stored(store, 3))

    [sentence] = heard
    assert "'outage'" in sentence
    assert {"position": 3} == store.current("c").offset(FILE)
    store.close()


def test_closing_does_not_wait_for_the_broker(broker: Broker) -> None:
    """A worker that is stopped during an outage ends."""
    store = opened_store(broker, "closed-in-an-outage")
    broker.pause()
    try:
        # What a thread of the broker was doing at that moment may still be answered.
        with pytest.raises(RetriableError):
            until(lambda: store.put("c", {FILE: {"position": 2}}))
        started = time.monotonic()
        store.close()
        took = time.monotonic() - started
    finally:
        broker.resume()

    assert took < 5
