"""Batches that the client library has written and a broker has kept, against what it and Java's consumer read."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from headrace.kafka import topic_partition
from headrace.kafka.batches.decoding import Decoding, decoded
from headrace.kafka.deadline import Deadline
from headrace.kafka.wire.cluster import Cluster, IsolationLevel
from headrace.kafka.wire.fetcher import Fetcher, FetchRange, FetchSettings
from headrace.kafka.wire.settings import wire_settings
from judges.java_judge import JavaJudge
from record_batches import Row, rows_in

pytestmark = pytest.mark.broker

COMPRESSIONS = ("none", "gzip", "snappy", "lz4", "zstd")
TIME = 1_700_000_000_000


def new_topic(bootstrap: str, **config: str) -> str:
    """A topic of one partition; *config* with underscores for dots."""
    topic = f"batches-{uuid.uuid4().hex[:8]}"
    settings = {key.replace("_", "."): value for key, value in config.items()}
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(topic, 1, 1, config=settings)])[topic].result()
    return topic


def produce(producer: Producer, topic: str, numbers: range) -> None:
    """Records of every kind: null and empty keys and values, repeated and null headers, values of many sizes."""
    for number in numbers:
        producer.produce(
            topic,
            key=(None, b"", b"key-%d" % number)[number % 3],
            value=(None, b"", b"small", b"%d," % number * 40, b"z" * 9_000)[number % 5],
            headers=[("h", b"%d" % number), ("h", None), ("é", b"")][: number % 4],
            timestamp=TIME + number * 7 % 1000,
        )
    producer.flush(30)


def expected_rows(bootstrap: str, topic: str, *, isolation: str) -> list[Row]:
    """What the client library reads of the topic."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "unused",
            "isolation.level": isolation,
            "enable.auto.commit": False,
            "enable.partition.eof": True,
        }
    )
    consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
    return list(_until_the_end(consumer))


def _until_the_end(consumer: Consumer) -> Iterator[Row]:
    while True:
        message = consumer.poll(30)
        assert message is not None
        if message.error():
            consumer.close()
            return
        kind, time = message.timestamp()
        yield Row(
            offset=message.offset() or 0,
            timestamp=time,
            key=message.key(),
            value=message.value(),
            headers=[tuple(header) for header in message.headers() or ()],
            timestamp_type=kind - 1,
        )


def read_rows(bootstrap: str, topic: str, *, isolation: IsolationLevel, how: Decoding) -> list[Row]:
    """What is fetched and decoded of the topic, in small answers."""
    deadline = Deadline.after(60)
    place = topic_partition.TopicPartition(topic, 0)
    cluster = Cluster(wire_settings({"bootstrap.servers": bootstrap, "client.id": "batches"}))
    ends = cluster.list_offsets({place: -1}, deadline, isolation=isolation)
    ranges = [FetchRange(place=place, start=0, end=ends[place].offset)]
    settings = FetchSettings(isolation=isolation, max_partition_bytes=50_000)
    fetcher, found = Fetcher(cluster, ranges, settings), list[Row]()
    while not fetcher.finished:
        for fetched in fetcher.poll(deadline):
            for columns in decoded(
                fetched.data,
                fetched.headers,
                place=place,
                start=fetched.fetch_offset,
                aborted=fetched.aborted,
                how=how,
            ):
                found += rows_in(columns)
    fetcher.close()
    cluster.close()
    return found


def java_rows(judge: JavaJudge, bootstrap: str, topic: str, *, isolation: str) -> list[Row]:
    """What Java's consumer reads of the topic."""
    records = judge.consumed(topic, bootstrap_servers=bootstrap, isolation_level=isolation)
    return [
        Row(
            **record
            | {"headers": [(header["key"], header["value"]) for header in record["headers"]]}
        )
        for record in records
    ]


def assert_same(
    judge: JavaJudge, bootstrap: str, topic: str, *, count: int, committed: bool = True
) -> None:
    """All three clients read the same *count* records, however they are decoded."""
    isolation = IsolationLevel.READ_COMMITTED if committed else IsolationLevel.READ_UNCOMMITTED
    name = "read_committed" if committed else "read_uncommitted"
    expected = expected_rows(bootstrap, topic, isolation=name)

    assert count == len(expected)
    assert expected == java_rows(judge, bootstrap, topic, isolation=name)
    for how in (Decoding(with_headers=True), Decoding(with_headers=True, group_bytes=2_000)):
        assert expected == read_rows(bootstrap, topic, isolation=isolation, how=how)


@pytest.mark.parametrize("kind", ["CreateTime", "LogAppendTime"])
@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_records_are_those_that_other_clients_read(
    judge: JavaJudge, bootstrap: str, compression: str, kind: str
) -> None:
    """Of both kinds of time, in every compression, in small batches and large ones."""
    topic = new_topic(bootstrap, message_timestamp_type=kind)
    settings = {"bootstrap.servers": bootstrap, "compression.type": compression}
    produce(Producer({**settings, "batch.num.messages": 7}), topic, range(100))
    produce(Producer({**settings, "linger.ms": 100}), topic, range(100, 1500))

    assert_same(judge, bootstrap, topic, count=1500)


def test_transactions_are_those_that_other_clients_read(judge: JavaJudge, bootstrap: str) -> None:
    """Committed and aborted ones, interleaved, in every compression, and records without one between them."""
    topic = new_topic(bootstrap)
    producers = [
        Producer(
            {
                "bootstrap.servers": bootstrap,
                "transactional.id": f"{topic}-{compression}",
                "compression.type": compression,
            }
        )
        for compression in COMPRESSIONS
    ]
    plain = Producer({"bootstrap.servers": bootstrap})
    for producer in producers:
        producer.init_transactions(30)
    committed = 0
    for turn in range(4):
        for producer in producers:
            producer.begin_transaction()
        for part in range(2):
            for number, producer in enumerate(producers):
                produce(producer, topic, range(part * 100, part * 100 + 20 + number))
            produce(plain, topic, range(3))
        for number, producer in enumerate(producers):
            if (turn + number) % 3:
                producer.commit_transaction(30)
                committed += 2 * (20 + number)
            else:
                producer.abort_transaction(30)

    assert_same(judge, bootstrap, topic, count=committed + 4 * 2 * 3)
    assert_same(judge, bootstrap, topic, count=4 * 2 * (20 * 5 + 10 + 3), committed=False)


def test_an_open_transaction_is_not_read(judge: JavaJudge, bootstrap: str) -> None:
    """Nor what comes after it, before it has ended."""
    topic = new_topic(bootstrap)
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": topic})
    produce(Producer({"bootstrap.servers": bootstrap}), topic, range(5))
    producer.init_transactions(30)
    producer.begin_transaction()
    produce(producer, topic, range(10))
    produce(Producer({"bootstrap.servers": bootstrap}), topic, range(5))

    found = read_rows(
        bootstrap, topic, isolation=IsolationLevel.READ_COMMITTED, how=Decoding(with_headers=True)
    )

    assert list(range(5)) == [row.offset for row in found]
    producer.abort_transaction(30)
    assert_same(judge, bootstrap, topic, count=10)
