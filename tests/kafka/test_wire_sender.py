"""The wire's sender alone: its settings, and what only it does with rows."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator

import pyarrow as pa
import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from headrace.connect.errors import ConfigError, TaskFailedError
from headrace.kafka.batches.compression import Compression
from headrace.kafka.client_config import producer_config
from headrace.kafka.sender import EncodedRecords, TooLargeError
from headrace.kafka.wire_sender import WireSender, batch_settings, make_wire_sender
from waiting import until

SERVER = {"bootstrap.servers": "127.0.0.1:1"}


def test_the_settings_are_those_of_a_producer() -> None:
    """With headrace's defaults, and Java's names."""
    defaults = batch_settings(producer_config(SERVER).settings)
    given = batch_settings(
        producer_config(
            {
                **SERVER,
                "batch.size": "16384",
                "max.request.size": "5000000",
                "compression.type": "zstd",
                "compression.zstd.level": "7",
            }
        ).settings
    )

    assert (Compression(), 1_000_000, 1_048_576) == (
        defaults.compression,
        defaults.batch_bytes,
        defaults.max_bytes,
    )
    assert (Compression(4, 7), 16_384, 5_000_000) == (
        given.compression,
        given.batch_bytes,
        given.max_bytes,
    )


def test_what_is_rebuilt_keeps_its_compression_unless_one_is_set() -> None:
    """What a topic takes bounds what is sent; the producer's own limit does so, too."""
    plain = batch_settings(producer_config(SERVER).settings)
    packed = batch_settings(producer_config({**SERVER, "compression.type": "lz4"}).settings)

    assert plain.forwarding(2_000).compression is None
    assert Compression(3) == packed.forwarding(2_000).compression
    assert (2_000, 2_000) == (plain.forwarding(2_000).max_bytes, plain.encoding(2_000).max_bytes)
    assert 1_048_576 == plain.forwarding(9_000_000).max_bytes


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("batch.size", "soon"),
        ("batch.size", "-1"),
        ("max.request.size", "large"),
        ("compression.type", "zip"),
        ("partitioner", "random"),
    ],
)
def test_settings_without_a_counterpart_are_the_users_problem(key: str, value: str) -> None:
    """The key is the one that the user wrote."""
    with pytest.raises(ConfigError) as caught:
        make_wire_sender(producer_config({**SERVER, key: value}))

    assert [key] == [each for each, _ in caught.value.problems]


# ------------------------------------------------------------------ on a broker


@pytest.fixture
def sender(bootstrap: str) -> Iterator[WireSender]:
    """A sender without transactions."""
    made = make_wire_sender(producer_config({"bootstrap.servers": bootstrap}))
    made.open()
    yield made
    made.close()


@pytest.fixture
def narrow_topic(bootstrap: str) -> str:
    """A topic that takes batches of 50,000 bytes."""
    topic = f"kafka-tests-{uuid.uuid4().hex[:8]}"
    admin = AdminClient({"bootstrap.servers": bootstrap})
    config = {"max.message.bytes": "50000"}
    admin.create_topics([NewTopic(topic, 1, 1, config=config)])[topic].result()
    return topic


def records(topic: str, *values: bytes) -> EncodedRecords:
    """A batch of *values*."""
    return EncodedRecords(topic=topic, values=pa.array(values, pa.binary()))


@pytest.mark.broker
def test_batches_are_as_large_as_their_topic_takes(
    sender: WireSender, narrow_topic: str, read_committed: Callable
) -> None:
    """What is larger alone is told by its row before anything is handed over, and the sender goes on."""
    values = [b"%04d" % number * 400 for number in range(200)]
    sender.send(records(narrow_topic, *values))
    with pytest.raises(TooLargeError, match=r"takes 50000.*max\.message\.bytes") as caught:
        sender.send(records(narrow_topic, b"before", b"x" * 60_000))
    sender.send(records(narrow_topic, b"last"))
    sender.flush()

    assert 1 == caught.value.row
    assert [*values, b"last"] == [value for _, _, value in read_committed(narrow_topic)]


@pytest.mark.broker
def test_without_transactions_records_do_not_wait_for_a_flush(
    sender: WireSender, new_topic: str, read_committed: Callable
) -> None:
    """However few they are, once the leader of their partition is known."""
    sender.send(records(new_topic, b"first"))
    sender.flush()
    sender.send(records(new_topic, b"early"))

    until(lambda: [value for _, _, value in read_committed(new_topic)] == [b"first", b"early"])


@pytest.mark.broker
def test_an_offset_that_is_too_large_fails_the_task(sender: WireSender, new_topic: str) -> None:
    """It is no record of the connector that could be passed over."""
    with pytest.raises(TaskFailedError, match=r"Source offsets cannot be stored: .*too large"):
        sender.send_offsets(new_topic, [(b"key", b"x" * 2_000_000)])
