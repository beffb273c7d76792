"""Fencing ends what older producers have open, and is harmless where there is none."""

from __future__ import annotations

import uuid
from collections.abc import Callable

import pyarrow as pa
import pytest

from headrace.connect.errors import FencedError, RetriableError
from headrace.kafka.client_config import producer_config
from headrace.kafka.client_sender import make_sender
from headrace.kafka.deadline import Deadline
from headrace.kafka.fencing import fence
from headrace.kafka.sender import EncodedRecords


@pytest.mark.broker
def test_every_id_is_fenced(bootstrap: str, new_topic: str, read_committed: Callable) -> None:
    """More ids than are fenced at once, among them one that nobody ever used."""
    config = producer_config({"bootstrap.servers": bootstrap})
    ids = [f"{new_topic}-{number}" for number in range(6)]
    senders = [
        make_sender(producer_config({"bootstrap.servers": bootstrap}, transactional_id=one))
        for one in ids[:5]
    ]
    for sender in senders:
        sender.open()
        sender.begin()
        sender.send(EncodedRecords(topic=new_topic, values=pa.array([b"late"])))
        sender.flush()
    fence(config, ids, Deadline.after(30))

    for sender in senders:
        with pytest.raises(FencedError):
            sender.commit()
        sender.close()
    assert [] == read_committed(new_topic)


def test_no_ids_need_no_broker() -> None:
    """Nothing to fence is done at once."""
    fence(producer_config({"bootstrap.servers": "127.0.0.1:1"}), [], Deadline.after(0))


def test_a_broker_that_is_away_is_told_at_the_deadline() -> None:
    """The id is named, and fencing may be tried again."""
    config = producer_config({"bootstrap.servers": "127.0.0.1:1"})
    with pytest.raises(RetriableError, match="my-id"):
        fence(config, [f"my-id-{uuid.uuid4()}"], Deadline.after(1))


def test_whoever_waits_may_end_the_attempt() -> None:
    """A stop does not wait for a broker that is away."""
    config = producer_config({"bootstrap.servers": "127.0.0.1:1"}, transactional_id="x")

    def stopping(waited_for: str) -> None:
        raise RetriableError(f"stopped, waiting for {waited_for}")

    with pytest.raises(RetriableError, match="stopped, waiting for the fencing of 'c-1'"):
        fence(config, ["c-1", "c-2"], Deadline.after(60), waiting=stopping)
