"""Rows of every kind that the wire's sender sends, as Kafka's own consumer and the client library read them."""

from __future__ import annotations

import random
import time
import uuid
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import pyarrow as pa
import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Message
from confluent_kafka import TopicPartition as TheirPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewPartitions, NewTopic

from headrace.kafka.batches.compression import COMPRESSIONS
from headrace.kafka.batches.headers import HEADER_BYTES
from headrace.kafka.client_config import producer_config
from headrace.kafka.errors import LateRefusalError
from headrace.kafka.partitioner import java_partition
from headrace.kafka.sender import EncodedRecords, TooLargeError
from headrace.kafka.wire_sender import WireSender, make_wire_sender
from judges.java_judge import JavaJudge
from waiting import until

pytestmark = pytest.mark.broker

PARTITIONS, LIMIT = 3, 1_048_576
# Around every border of integers in variable length, of views, and of what is laid out together.
SIZES = (None, 0, 1, 10, 11, 12, 13, 63, 64, 127, 128, 8_191, 8_192, 16_384, 100_000)
HEADERS = [("h", b"1"), ("h", None), ("h", b""), ("", b"2"), ("é", b"3" * 70), ("n" * 130, b"4")]
WHEN = 1_700_000_000_000


class Sent(NamedTuple):
    """A row; without a time when that is None or negative."""

    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes | None]]
    time: int | None


class Landed(NamedTuple):
    """A record of a partition, as somebody reads it."""

    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes | None]]
    time: int


def drawn_rows(chance: random.Random, count: int, *, large: int = 0) -> list[Sent]:
    """Rows of all kinds, and *large* ones of nearly a megabyte among them."""
    rows = [
        Sent(
            _drawn(chance, chance.choice([None, 0, 1, 5, 12, 13, 64, 300])),
            _drawn(chance, chance.choice(SIZES)),
            [chance.choice(HEADERS) for _ in range(chance.choice([0, 0, 1, 2, 7]))],
            chance.choice([None, -1, -(1 << 40), 0, 1, WHEN, chance.randrange(WHEN)]),
        )
        for _ in range(count)
    ]
    for at in chance.sample(range(count), large):
        rows[at] = rows[at]._replace(value=_drawn(chance, LIMIT - 10_000))
    return rows


def _drawn(chance: random.Random, size: int | None) -> bytes | None:
    if size is None:
        return None
    # Half of it can be compressed.
    return chance.randbytes(size // 2) + b"z" * (size - size // 2)


def encoded(topic: str, rows: Sequence[Sent], partition: int | None = None) -> EncodedRecords:
    """The columns of *rows*, which lie in the middle of others."""
    values = pa.array([b"before" * 9, *(row.value for row in rows)], pa.binary())
    keys = pa.array([b"before" * 9, *(row.key for row in rows)], pa.binary())
    return EncodedRecords(
        topic=topic,
        values=values.slice(1),
        keys=keys.slice(1),
        headers=[row.headers for row in rows],
        timestamps=pa.array([row.time for row in rows], pa.int64()),
        partition=partition,
    )


def create(address: str, partitions: int = PARTITIONS, **config: str) -> str:
    """A topic of the test's own."""
    topic = f"wire-rows-{uuid.uuid4().hex[:8]}"
    named = {key.replace("_", "."): value for key, value in config.items()}
    admin = AdminClient({"bootstrap.servers": address})
    admin.create_topics([NewTopic(topic, partitions, 1, config=named)])[topic].result()
    return topic


def by_client(address: str, topic: str, partitions: int = PARTITIONS) -> list[list[Landed]]:
    """What the client library reads of each partition."""
    reader = Consumer(
        {
            "bootstrap.servers": address,
            "group.id": f"judge-{uuid.uuid4().hex[:8]}",
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
            "enable.auto.commit": False,
        }
    )
    reader.assign([TheirPartition(topic, number, 0) for number in range(partitions)])
    found: list[list[Landed]] = [[] for _ in range(partitions)]
    left, ends = set(range(partitions)), time.monotonic() + 60
    while left:
        assert time.monotonic() < ends, f"the end of {topic} was not reached"
        for message in reader.consume(1_000, 0.5):
            error = message.error()
            if error is None:
                found[message.partition() or 0].append(_landed(message))
            elif error.code() == KafkaError._PARTITION_EOF:
                left.discard(message.partition() or 0)
            else:
                raise KafkaException(error)
    reader.close()
    return found


def _landed(message: Message) -> Landed:
    headers = [(key, value) for key, value in message.headers() or []]
    return Landed(message.key(), message.value(), headers, message.timestamp()[1])  # type: ignore[arg-type]


def by_java(judge: JavaJudge, address: str, topic: str) -> list[list[Landed]]:
    """What Kafka's own consumer reads of each partition."""
    config = {"bootstrap_servers": address, "isolation_level": "read_committed"}
    return [
        [
            Landed(
                each["key"],
                each["value"],
                [(header["key"], header["value"]) for header in each["headers"]],
                each["timestamp"],
            )
            for each in judge.consumed(topic, partition=partition, **config)
        ]
        for partition in range(PARTITIONS)
    ]


class Senders:
    """Opens senders of a test, and ends them."""

    def __init__(self) -> None:
        self._opened = list[WireSender]()

    def opened(self, address: str, *, transactional: bool = False, **properties: str) -> WireSender:
        """A sender; keywords are producer settings."""
        named = {key.replace("_", "."): value for key, value in properties.items()}
        name = f"wire-rows-{uuid.uuid4().hex[:8]}" if transactional else None
        given = {"bootstrap.servers": address, **named}
        self._opened.append(make_wire_sender(producer_config(given, transactional_id=name)))
        self._opened[-1].open()
        return self._opened[-1]

    def close(self) -> None:
        """End them all."""
        for each in self._opened:
            each.close()


@pytest.fixture
def senders() -> Iterator[Senders]:
    """Senders that are closed with the test."""
    made = Senders()
    yield made
    made.close()


@pytest.fixture(params=["idempotent", "first", "second"])
def kind(request: pytest.FixtureRequest) -> str:
    """Without transactions, and with each of their versions."""
    return request.param


@pytest.mark.slow
@pytest.mark.parametrize("codec", COMPRESSIONS)
def test_two_other_clients_read_what_was_sent(
    request: pytest.FixtureRequest, judge: JavaJudge, senders: Senders, kind: str, *, codec: str
) -> None:
    """Nulls, empty bytes, headers that are repeated or null, times in no order, 10 bytes beside a megabyte."""
    address = request.getfixturevalue("first_bootstrap" if kind == "first" else "bootstrap")
    topic, chance = create(address), random.Random(f"{kind} {codec}")
    sender = senders.opened(
        address,
        transactional=kind != "idempotent",
        compression_type=codec,
        batch_size=chance.choice(["1", "16384", "1000000"]),
    )
    blocks = [drawn_rows(chance, count) for count in (1, 5, 60)]
    blocks += [drawn_rows(chance, 60, large=3)]
    given = drawn_rows(chance, 9)
    if kind != "idempotent":
        sender.begin()
        sender.send(encoded(topic, blocks[0]))
        sender.flush()
        sender.abort()
    began = int(time.time() * 1000)
    sender.begin()
    for block in blocks:
        sender.send(encoded(topic, block))
    sender.send(encoded(topic, given, partition=1))
    sender.commit()
    ended = int(time.time() * 1000)

    found = by_client(address, topic)
    assert found == by_java(judge, address, topic)
    rows = [row for block in blocks for row in block]
    for partition, landed in enumerate(found):
        timed = [each._replace(time=0) if began <= each.time <= ended else each for each in landed]
        expected = [row for row in rows if _belongs(row) == partition]
        own = given if partition == 1 else []
        before = timed[: len(timed) - len(own)]
        assert _times_as_sent(expected) == [each for each in before if each.key is not None]
        assert _times_as_sent(own) == timed[len(before) :]
    keyless = [each._replace(time=0) for part in found for each in part if each.key is None]
    sent = [row for row in [*rows, *given] if row.key is None]
    assert sorted(map(repr, (Landed(*row)._replace(time=0) for row in sent))) == sorted(
        map(repr, keyless)
    )


def _belongs(row: Sent) -> int | None:
    """The partition of its key, if it has one."""
    return None if row.key is None else java_partition(row.key, PARTITIONS)


def _times_as_sent(rows: Sequence[Sent]) -> list[Landed]:
    """As they are to land, with 0 for the time of sending."""
    return [Landed(*row[:3], max(0, row.time or 0)) for row in rows]


def refused_row(sender: WireSender, records: EncodedRecords) -> int | None:
    """Which of *records* is too large; otherwise they are sent."""
    try:
        sender.send(records)
    except TooLargeError as error:
        return error.row
    return None


def test_values_up_to_the_limit_are_sent_and_those_beyond_are_named(
    bootstrap: str, senders: Senders
) -> None:
    """The limit is that of a batch of one record; the sender goes on."""
    topic = create(bootstrap, 1)
    sender = senders.opened(bootstrap)
    # The record's attributes, deltas, null key, number of headers, and two lengths of three bytes.
    largest = LIMIT - HEADER_BYTES - 5 - 2 * 3 - 1
    small = Sent(None, b"small", [], WHEN)

    def refused(size: int) -> int | None:
        rows = [small, Sent(None, b"x" * size, [], WHEN)]
        return refused_row(sender, encoded(topic, rows, partition=0))

    sizes = [largest + 2 - over for over in range(20)]
    answers = [refused(size) for size in sizes]
    sender.flush()

    # As with Java's, what a record may need at most is counted, which is some bytes more.
    taken = [size for size, row in zip(sizes, answers, strict=True) if row is None]
    assert {None, 1} == set(answers)
    assert sizes[-len(taken) :] == taken
    assert taken[0] > largest - 16
    assert [1, 1] == [refused(taken[0] + 1), refused(2 * LIMIT)]
    (landed,) = by_client(bootstrap, topic, 1)
    assert [len(each.value or b"") for each in landed[1::2]] == taken


@pytest.mark.parametrize("limit", [1_000, 20_000, 100_000, 2_000_000])
def test_each_topic_gets_batches_that_it_takes(
    bootstrap: str, senders: Senders, limit: int
) -> None:
    """However small: what a topic takes one by one it takes together; one byte more than it takes is named by its row."""
    topic = create(bootstrap, 1, max_message_bytes=str(limit))
    sender = senders.opened(bootstrap, max_request_size="3000000")
    part = [Sent(None, b"%03d" % at + bytes(limit // 20), [], WHEN) for at in range(50)]
    largest = Sent(None, bytes(limit - 100), [], WHEN)
    sender.send(encoded(topic, part))
    sender.send(encoded(topic, [largest]))
    beyond = [part[0], Sent(None, bytes(limit + 1), [], WHEN), part[1]]
    refused = refused_row(sender, encoded(topic, beyond))
    sender.flush()

    assert [_times_as_sent([*part, largest])] == by_client(bootstrap, topic, 1)
    assert 1 == refused


def test_partitions_that_a_topic_gets_are_written_to(bootstrap: str, senders: Senders) -> None:
    """By records that name them, at once; from then on also by those whose keys belong there, as with Java's producer."""
    topic = create(bootstrap, 1)
    sender = senders.opened(bootstrap)
    first, second, third = (Sent(b"k", each, [], WHEN) for each in (b"1", b"2", b"3"))
    sender.send(encoded(topic, [first]))
    sender.flush()
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_partitions([NewPartitions(topic, 3)])[topic].result()
    until(lambda: len(admin.list_topics(topic).topics[topic].partitions) == 3)
    sender.send(encoded(topic, [second], partition=2))
    sender.send(encoded(topic, [third]))
    sender.flush()

    expected: list[list[Sent]] = [[first], [], [second]]
    expected[java_partition(b"k", 3)].append(third)
    assert [_times_as_sent(each) for each in expected] == by_client(bootstrap, topic, 3)


def test_the_row_is_told_that_the_broker_refuses_for_its_content(
    bootstrap: str, senders: Senders
) -> None:
    """A compacted topic takes none without a key; the broker says which of the batch it is."""
    topic = create(bootstrap, 1, cleanup_policy="compact")
    sender = senders.opened(bootstrap, transactional=True)
    rows = [Sent(b"key", b"v" * size, [], None) for size in range(100)]
    rows[57] = rows[57]._replace(key=None)

    sender.begin()
    sender.send(encoded(topic, rows))
    with pytest.raises(LateRefusalError, match="INVALID_RECORD") as caught:
        sender.flush()
    sender.abort()

    assert (topic, None, 57) == (
        caught.value.topic,
        caught.value.key_bytes,
        caught.value.value_bytes,
    )


@pytest.mark.slow
def test_a_thousand_partitions_share_a_small_buffer(bootstrap: str, senders: Senders) -> None:
    """Each has the records of its keys in their order."""
    partitions = 1_000
    topic = create(bootstrap, partitions)
    sender = senders.opened(
        bootstrap, transactional=True, buffer_memory="65536", max_request_size="32768"
    )
    keys = [b"key %d" % (number % 4_000) for number in range(20_000)]
    sender.begin()
    for at in range(0, len(keys), 5_000):
        values = [b"%d" % number for number in range(at, at + 5_000)]
        part = pa.array(keys[at : at + 5_000])
        sender.send(EncodedRecords(topic=topic, values=pa.array(values), keys=part))
        assert sender._producer._delivery.nbytes <= 65_536
    sender.commit()

    expected: list[list[bytes]] = [[] for _ in range(partitions)]
    for number, key in enumerate(keys):
        expected[java_partition(key, partitions)].append(b"%d" % number)
    found = by_client(bootstrap, topic, partitions)
    assert expected == [[each.value for each in part] for part in found]
