"""What the client gets, row by row, whatever it refuses; with a client that is none."""

from __future__ import annotations

from functools import partial
from typing import cast

import pyarrow as pa
import pytest
from confluent_kafka import KafkaError, KafkaException, Producer
from hypothesis import given
from hypothesis import strategies as st

from headrace.connect.errors import RecordError
from headrace.kafka.client_config import producer_config
from headrace.kafka.client_sender import MAX_ROWS, ClientSender
from headrace.kafka.deadline import Deadline
from headrace.kafka.producer import TrackedProducer
from headrace.kafka.sender import EncodedRecords


class NarrowClient:
    """A client whose queue holds *room* records until it is polled, and that refuses the value ``bad``."""

    def __init__(self, room: int) -> None:
        self.taken: list[tuple[object, ...]] = []
        self._room = room
        self._queued = 0

    def produce(self, *row: object) -> None:
        """Take it, or say why not."""
        if self._queued == self._room:
            raise BufferError
        if row[1] == b"bad":
            raise KafkaException(KafkaError(KafkaError.MSG_SIZE_TOO_LARGE))
        self._queued += 1
        self.taken.append(row)

    def poll(self, _: float) -> int:
        """Everything is delivered."""
        self._queued = 0
        return 0

    def __len__(self) -> int:
        return self._queued


def sender_to(client: NarrowClient) -> ClientSender:
    """A sender whose client is *client*."""
    producer = TrackedProducer(producer_config({"bootstrap.servers": "127.0.0.1:1"}))
    producer.raw = cast("Producer", client)
    return ClientSender(
        producer,
        opening=partial(Deadline.after, 1.0),
        max_bytes=1_000,
        is_transactional=False,
        reports_metadata=False,
        partitions_as_java=True,
    )


@given(st.integers(0, 2 * MAX_ROWS + 1), st.integers(1, MAX_ROWS + 1))
def test_a_queue_of_any_size_gets_every_row_once(count: int, room: int) -> None:
    """In order, and with its own key and timestamp, however often the queue is full in between."""
    client = NarrowClient(max(room, count // 50 + 1))
    values = [b"%d" % row for row in range(count)]
    sender_to(client).send(
        EncodedRecords(
            topic="t",
            values=pa.array(values, pa.binary()),
            keys=pa.array([b"k" + value for value in values], pa.binary()),
            timestamps=pa.array(range(1, count + 1), pa.int64()),
        )
    )

    assert [
        ("t", value, b"k" + value, -1, None, None, row, None) for row, value in enumerate(values, 1)
    ] == client.taken


@pytest.mark.parametrize("room", [MAX_ROWS * 2, 7], ids=["at once", "behind a full queue"])
@pytest.mark.parametrize("row", [0, 5, 7, MAX_ROWS, MAX_ROWS + 9])
def test_the_row_that_is_refused_is_named(room: int, row: int) -> None:
    """And nothing behind it is handed over."""
    client = NarrowClient(room)
    values = [b"good"] * row + [b"bad", b"good"]
    with pytest.raises(RecordError) as caught:
        sender_to(client).send(EncodedRecords(topic="t", values=pa.array(values, pa.binary())))

    assert (row, row) == (caught.value.row, len(client.taken))
