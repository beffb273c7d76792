"""Rows of every kind, as connectors send them by the wire's sender, read again by two other client libraries."""

from __future__ import annotations

import random
import time
import uuid
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from typing import NamedTuple

import pyarrow as pa
import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewPartitions, NewTopic

from headrace.kafka.client_config import producer_config
from headrace.kafka.partitioner import java_partition
from headrace.kafka.sender import EncodedRecords, TooLargeError
from headrace.kafka.wire_sender import WireSender, make_wire_sender
from headrace.testing.judge import committed_records
from waiting import until

pytestmark = pytest.mark.broker

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
# What kafka-python reads without further libraries.
PYTHONS = ("none", "gzip", "zstd")
LARGEST = 1_048_576
Headers = list[tuple[str, bytes | None]]


class Sent(NamedTuple):
    """A record; *timestamp* is ``None`` for the time of sending, as is a negative one."""

    key: bytes | None
    value: bytes | None
    timestamp: int | None
    headers: Headers

    @property
    def seen(self) -> tuple[object, ...]:
        """As a consumer has it; no one knows the time of sending."""
        has_time = self.timestamp is not None and self.timestamp >= 0
        return self.key, self.value, self.timestamp if has_time else None, self.headers


def drawn(chance: random.Random, sizes: Sequence[int]) -> Sent:
    """Nulls, empty bytes, headers that are repeated and null, and times in no order."""
    size = chance.choice(sizes)
    value = chance.choice([None, b"", chance.randbytes(1), chance.randbytes(12), b"v" * 13])
    header = chance.choice(["", "h", "é" * 40]), chance.choice([None, b"", b"x" * 300])
    return Sent(
        chance.choice([None, b"", b"k", chance.randbytes(chance.randrange(1, 40))]),
        chance.randbytes(size) if chance.random() < 0.6 else value,
        chance.choice([None, -1, -5, 0, 1, 1_700_000_000_000, chance.randrange(1 << 40)]),
        chance.choice([[], [header], [("h", b"1"), ("h", b"1"), ("h", None)], [header] * 3]),
    )


def block(topic: str, rows: Sequence[Sent], **named: object) -> EncodedRecords:
    """The columns of *rows*."""
    return EncodedRecords(
        topic=topic,
        keys=pa.array([each.key for each in rows], pa.binary()),
        values=pa.array([each.value for each in rows], pa.binary()),
        timestamps=pa.array([each.timestamp for each in rows], pa.int64()),
        headers=[each.headers for each in rows],
        **named,  # type: ignore[arg-type]
    )


def create(address: str, partitions: int, **config: str) -> str:
    """A topic of the test's own, which keeps records however old their times are."""
    topic = f"kafka-tests-{uuid.uuid4().hex[:8]}"
    config = {"retention.ms": "-1", **config}
    named = {key.replace("_", "."): value for key, value in config.items()}
    admin = AdminClient({"bootstrap.servers": address})
    admin.create_topics([NewTopic(topic, partitions, 1, config=named)])[topic].result()
    return topic


def by_python(address: str, topic: str) -> Iterator[tuple[int, tuple[object, ...]]]:
    """Partition and record, as kafka-python reads them."""
    for each in committed_records(address, topic):
        headers = [*map(tuple, each.headers)]
        yield each.partition, (each.key, each.value, each.timestamp, headers)


def by_librdkafka(
    address: str, topic: str, partitions: int, count: int
) -> Iterator[tuple[int, tuple[object, ...]]]:
    """Partition and record, as librdkafka reads them, with the checksums of batches."""
    settings = {
        "bootstrap.servers": address,
        "group.id": uuid.uuid4().hex,
        "check.crcs": True,
        "isolation.level": "read_committed",
    }
    with closing(Consumer(settings)) as consumer:
        consumer.assign(
            [TopicPartition(topic, number, OFFSET_BEGINNING) for number in range(partitions)]
        )
        deadline = time.monotonic() + 60
        while count and time.monotonic() < deadline:
            for each in consumer.consume(1_000, 0.2):
                assert each.error() is None, each.error()
                yield (
                    each.partition() or 0,
                    (each.key(), each.value(), each.timestamp()[1], each.headers() or []),
                )
                count -= 1
    assert not count, f"{count} records did not come"


def assert_same(
    expected: Mapping[int, Sequence[Sent]],
    found: Iterable[tuple[int, tuple[object, ...]]],
    *,
    now: float,
) -> None:
    """In each partition what is expected, in that order; times of sending are those since *now*."""
    logs = defaultdict[int, list[tuple[object, ...]]](list)
    for partition, record in found:
        logs[partition].append(record)
    assert {each: len(rows) for each, rows in expected.items()} == {
        each: len(rows) for each, rows in logs.items()
    }
    for partition, rows in expected.items():
        for row, (key, value, time_ms, headers) in zip(rows, logs[partition], strict=True):
            if row.seen[2] is None:
                assert isinstance(time_ms, int)
                assert now - 1_000 <= time_ms <= time.time() * 1_000 + 1_000
            expected_time = time_ms if row.seen[2] is None else row.seen[2]
            assert (row.key, row.value, expected_time, row.headers) == (
                key,
                value,
                time_ms,
                headers,
            )


def assert_same_without_time(expected: Iterable[Sent], found: Iterable[tuple[object, ...]]) -> None:
    """As many of each kind, wherever they are."""
    assert Counter(repr((row.key, row.value, row.headers)) for row in expected) == Counter(
        repr((key, value, headers)) for key, value, _, headers in found
    )


@pytest.fixture(params=["bootstrap", "first_bootstrap"], ids=["second", "first"])
def address(request: pytest.FixtureRequest) -> str:
    """A broker with either version of transactions."""
    return request.getfixturevalue(request.param)


@pytest.fixture
def made() -> Iterator[list[WireSender]]:
    """Senders that are closed with the test."""
    senders: list[WireSender] = []
    yield senders
    for each in senders:
        each.close()


def opened(
    made: list[WireSender], address: str, transactional_id: str | None = None, **settings: str
) -> WireSender:
    """A sender with *settings*."""
    named = {key.replace("_", "."): value for key, value in settings.items()}
    config = producer_config(
        {"bootstrap.servers": address, **named}, transactional_id=transactional_id
    )
    made.append(make_wire_sender(config, owner="task c-0"))
    made[-1].open()
    return made[-1]


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("batch_size", ["1", "16384", "1000000"])
def test_any_rows_are_read_as_they_were_sent(
    address: str, made: list[WireSender], codec: str, batch_size: str
) -> None:
    """In blocks of any number of rows, in transactions of which every third is thrown away."""
    chance = random.Random(f"{codec} {batch_size}")
    topic, now = create(address, 5), time.time() * 1_000
    sender = opened(made, address, f"id-{topic}", batch_size=batch_size, compression_type=codec)
    written = defaultdict[int | None, list[Sent]](list)
    for number in range(9):
        sender.begin()
        for _ in range(3):
            count = chance.choice([1, 2, 30, 300])
            rows = [drawn(chance, [0, 1, 11, 12, 13, 63, 64, 500]) for _ in range(count)]
            partition = chance.choice([None, None, 3])
            sender.send(block(topic, rows, partition=partition))
            for row in rows if number % 3 else ():
                chosen = partition
                if chosen is None and row.key is not None:
                    chosen = java_partition(row.key, 5)
                written[chosen].append(row)
        if number % 3:
            sender.commit()
        else:
            sender.abort()

    count = sum(map(len, written.values()))
    found = list(by_librdkafka(address, topic, 5, count))
    if codec in PYTHONS:
        assert sorted(found, key=repr) == sorted(by_python(address, topic), key=repr)
    # Where records without a key land is the sender's choice.
    keyless = [row for rows in written.values() for row in rows if row.key is None]
    assert_same_without_time(keyless, [record for _, record in found if record[0] is None])
    keyed = {
        each: [row for row in rows if row.key is not None]
        for each, rows in written.items()
        if each is not None
    }
    assert_same(keyed, [each for each in found if each[1][0] is not None], now=now)


@pytest.mark.parametrize("codec", ["none", "zstd"])
def test_small_values_and_the_largest_lie_in_one_block(
    bootstrap: str, made: list[WireSender], codec: str
) -> None:
    """Ten bytes beside a megabyte, up to the last byte that a topic takes, in order."""
    chance = random.Random(codec)
    topic, now = create(bootstrap, 1), time.time() * 1_000
    sender = opened(made, bootstrap, compression_type=codec)
    sizes = [10, 1_000_000, 10, 11, LARGEST - 100, 1, 12, 500_000, 499_000, 10, 8_192] * 2
    rows = [Sent(None, chance.randbytes(size), size, []) for size in sizes]
    sender.send(block(topic, rows))
    for row in rows:
        sender.send(block(topic, [row]))
    sender.flush()

    assert_same({0: rows * 2}, by_python(bootstrap, topic), now=now)
    assert_same({0: rows * 2}, by_librdkafka(bootstrap, topic, 1, 2 * len(rows)), now=now)


@pytest.mark.parametrize("limit", [1_000, 20_000, 100_000, 2_000_000])
def test_each_topic_gets_batches_that_it_takes(
    bootstrap: str, made: list[WireSender], limit: int
) -> None:
    """However small: what a topic takes one by one it takes together; one byte more than it takes is named by its row."""
    topic, now = create(bootstrap, 1, max_message_bytes=str(limit)), time.time() * 1_000
    sender = opened(made, bootstrap, f"id-{topic}", max_request_size="3000000")
    part = [Sent(None, b"%03d" % at + bytes(limit // 20), 1, []) for at in range(50)]
    sender.begin()
    sender.send(block(topic, part))
    largest = Sent(None, bytes(limit - 100), 1, [])
    sender.send(block(topic, [largest]))
    sender.commit()

    assert_same({0: [*part, largest]}, by_python(bootstrap, topic), now=now)
    sender.begin()
    with pytest.raises(TooLargeError) as caught:
        sender.send(block(topic, [part[0], Sent(None, bytes(limit + 1), 1, []), part[1]]))
    assert 1 == caught.value.row


@pytest.mark.slow
def test_a_thousand_partitions_keep_their_order(bootstrap: str, made: list[WireSender]) -> None:
    """Each key's records are where Java's partitioner puts them, in the order of sending."""
    topic, now = create(bootstrap, 1_000), time.time() * 1_000
    sender = opened(made, bootstrap, f"id-{topic}")
    expected = defaultdict[int, list[Sent]](list)
    for number in range(5):
        rows = [Sent(b"%d" % at, b"%d %d" % (number, at), at, []) for at in range(4_000)]
        sender.begin()
        sender.send(block(topic, rows))
        sender.commit()
        for row in rows:
            assert row.key is not None
            expected[java_partition(row.key, 1_000)].append(row)

    assert_same(expected, by_python(bootstrap, topic), now=now)


def test_partitions_that_a_topic_gets_are_written_to(
    bootstrap: str, made: list[WireSender]
) -> None:
    """By records that name them, at once; from then on also by those whose keys belong there, as with Java's producer."""
    topic = create(bootstrap, 1)
    sender = opened(made, bootstrap)
    sender.send(block(topic, [Sent(b"k", b"first", 1, [])]))
    sender.flush()
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_partitions([NewPartitions(topic, 3)])[topic].result()
    until(lambda: len(admin.list_topics(topic).topics[topic].partitions) == 3)
    sender.send(block(topic, [Sent(b"k", b"second", 1, [])], partition=2))
    sender.send(block(topic, [Sent(b"k", b"third", 1, [])]))
    sender.flush()

    found = {(partition, record[1]) for partition, record in by_python(bootstrap, topic)}
    assert {(0, b"first"), (2, b"second"), (java_partition(b"k", 3), b"third")} == found
