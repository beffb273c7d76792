"""Coordinators on a real broker: who has a transactional id is known, proven, and taken."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator

import pyarrow as pa
import pytest

from headrace.connect.errors import FencedError, RetriableError
from headrace.kafka.client_config import producer_config
from headrace.kafka.client_sender import make_sender
from headrace.kafka.deadline import Deadline
from headrace.kafka.sender import EncodedRecords
from headrace.kafka.transaction_coordinator import TransactionCoordinator

NOWHERE = {"bootstrap.servers": "127.0.0.1:1"}


@pytest.fixture
def coordinator(bootstrap: str) -> Iterator[TransactionCoordinator]:
    """On the shared broker."""
    made = TransactionCoordinator(producer_config({"bootstrap.servers": bootstrap}))
    yield made
    made.close()


@pytest.fixture
def away() -> Iterator[TransactionCoordinator]:
    """On a broker that is not there."""
    made = TransactionCoordinator(producer_config(NOWHERE))
    yield made
    made.close()


@pytest.mark.broker
def test_the_owner_of_an_id_proves_it_again_and_again(coordinator: TransactionCoordinator) -> None:
    """Each proof gives the next epoch; one whose answer was lost is repeated."""
    name, deadline = f"guard-{uuid.uuid4()}", Deadline.after(30)
    taken = coordinator.take(name, deadline)
    first = coordinator.prove(name, taken, deadline)
    again = coordinator.prove(name, taken, deadline)
    second = coordinator.prove(name, again, deadline)

    assert first == again
    assert [taken.epoch + 1, taken.epoch + 2] == [first.epoch, second.epoch]


@pytest.mark.broker
def test_an_owner_that_was_replaced_proves_nothing(coordinator: TransactionCoordinator) -> None:
    """Neither by the epoch that it had last nor by one before."""
    name, deadline = f"guard-{uuid.uuid4()}", Deadline.after(30)
    taken = coordinator.take(name, deadline)
    proven = coordinator.prove(name, taken, deadline)
    coordinator.take(name, deadline)

    for stale in (taken, proven):
        with pytest.raises(FencedError, match=name):
            coordinator.prove(name, stale, deadline)


@pytest.mark.broker
def test_ids_of_producers_are_listed(bootstrap: str, coordinator: TransactionCoordinator) -> None:
    """Those that have begun nothing are, too."""
    name = f"listed-{uuid.uuid4()}"
    sender = make_sender(producer_config({"bootstrap.servers": bootstrap}, transactional_id=name))
    sender.open()
    sender.close()
    listed = coordinator.transactional_ids(Deadline.after(30))

    assert listed is not None
    assert name in listed


@pytest.mark.broker
def test_every_id_is_fenced(
    bootstrap: str, new_topic: str, read_committed: Callable, coordinator: TransactionCoordinator
) -> None:
    """Open transactions end, and an id that no one ever used does no harm."""
    config = {"bootstrap.servers": bootstrap}
    ids = [f"{new_topic}-{number}" for number in range(6)]
    senders = [make_sender(producer_config(config, transactional_id=one)) for one in ids[:5]]
    for sender in senders:
        sender.open()
        sender.begin()
        sender.send(EncodedRecords(topic=new_topic, values=pa.array([b"late"])))
        sender.flush()
    coordinator.fence(ids, Deadline.after(30))

    for sender in senders:
        with pytest.raises(FencedError):
            sender.commit()
        sender.close()
    assert [] == read_committed(new_topic)


def test_no_ids_need_no_broker(away: TransactionCoordinator) -> None:
    """Nothing to fence is done at once."""
    away.fence([], Deadline.after(0))


def test_a_broker_that_is_away_is_reported_at_the_deadline(away: TransactionCoordinator) -> None:
    """The id is named, and fencing may be tried again."""
    with pytest.raises(RetriableError, match="my-id"):
        away.fence(["my-id"], Deadline.after(1))


def test_a_caller_that_waits_may_end_the_attempt(away: TransactionCoordinator) -> None:
    """A stop does not wait for a broker that is away."""

    def stopping(waited_for: str) -> None:
        raise RetriableError(f"stopped, waiting for {waited_for}")

    with pytest.raises(RetriableError, match="stopped, waiting for the fencing of 'c-1'"):
        away.fence(["c-1", "c-2"], Deadline.after(60), waiting=stopping)
