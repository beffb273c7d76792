"""Batches of one topic copied to another by the wire's sender, on a real broker, judged by two other clients."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import pyarrow as pa
import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer
from confluent_kafka import TopicPartition as ClientPartition
from confluent_kafka.admin import AdminClient, NewTopic

from headrace.connect.encoded import EncodedBatches, EncodedHeader
from headrace.connect.group_offsets import GroupEntry
from headrace.kafka.batches.errors import UnforwardableError
from headrace.kafka.batches.forwarding import Reason
from headrace.kafka.batches.headers import with_records
from headrace.kafka.client_config import producer_config
from headrace.kafka.deadline import Deadline
from headrace.kafka.sender import EncodedRecords
from headrace.kafka.topic_partition import TopicPartition
from headrace.kafka.wire.cluster import Cluster, IsolationLevel
from headrace.kafka.wire.fetcher import Fetcher, FetchRange, FetchSettings
from headrace.kafka.wire.settings import wire_settings
from headrace.kafka.wire_sender import WireSender, make_wire_sender
from judges.java_judge import JavaJudge
from record_batches import Row

pytestmark = pytest.mark.broker

COMPRESSIONS = ("none", "gzip", "snappy", "lz4", "zstd")
TIME = 1_700_000_000_000
Opening = Callable[..., WireSender]


@pytest.fixture
def open_sender(bootstrap: str) -> Iterator[Opening]:
    """Opens senders that are closed with the test; keywords are producer settings."""
    opened: list[WireSender] = []

    def open_one(transactional_id: str | None = None, **properties: str) -> WireSender:
        named = {key.replace("_", "."): value for key, value in properties.items()}
        config = producer_config(
            {"bootstrap.servers": bootstrap, **named}, transactional_id=transactional_id
        )
        opened.append(make_wire_sender(config, owner="task c-0"))
        opened[-1].open()
        return opened[-1]

    yield open_one
    for sender in opened:
        sender.close()


def made_topic(bootstrap: str, **config: str) -> str:
    """A topic of one partition; *config* with underscores for dots."""
    topic = f"copied-{uuid.uuid4().hex[:8]}"
    settings = {key.replace("_", "."): value for key, value in config.items()}
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(topic, 1, 1, config=settings)])[topic].result()
    return topic


def produce(producer: Producer, topic: str, numbers: range, *, size: int = 0) -> None:
    """Records of every kind, or of *size* bytes each."""
    for number in numbers:
        producer.produce(
            topic,
            key=(None, b"", b"key-%d" % number)[number % 3],
            value=b"%09d" % number * (size // 9)
            if size
            else (None, b"", b"small", b"%d," % number * 40, b"z" * 9_000)[number % 5],
            headers=[("h", b"%d" % number), ("h", None), ("é", b"")][: number % 4],
            timestamp=TIME + number * 7 % 1000,
        )
    producer.flush(30)


@pytest.fixture(scope="module")
def mixed_topic(bootstrap: str) -> str:
    """A topic with every compression, batches of few and of many records, transactions of either end."""
    topic = made_topic(bootstrap)
    for number, name in enumerate(COMPRESSIONS):
        settings = {"bootstrap.servers": bootstrap, "compression.type": name}
        produce(Producer({**settings, "batch.num.messages": 3}), topic, range(20))
        produce(Producer({**settings, "linger.ms": 100}), topic, range(500))
        transactional = Producer({**settings, "transactional.id": f"{topic}-{name}"})
        transactional.init_transactions(30)
        for end in (transactional.commit_transaction, transactional.abort_transaction):
            transactional.begin_transaction()
            produce(transactional, topic, range(30 + number))
            end(30)
    return topic


def fetched(bootstrap: str, topic: str, remote: str, *, start: int = 0) -> list[EncodedBatches]:
    """The committed batches of *topic* from the offset *start* on, to be copied to *remote*."""
    deadline = Deadline.after(60)
    place = TopicPartition(topic, 0)
    cluster = Cluster(wire_settings({"bootstrap.servers": bootstrap, "client.id": "copying"}))
    ends = cluster.list_offsets({place: -1}, deadline, isolation=IsolationLevel.READ_COMMITTED)
    ranges = [FetchRange(place=place, start=start, end=ends[place].offset)]
    settings = FetchSettings(isolation=IsolationLevel.READ_COMMITTED, max_partition_bytes=200_000)
    fetcher, found = Fetcher(cluster, ranges, settings), list[EncodedBatches]()
    while not fetcher.finished:
        for answer in fetcher.poll(deadline):
            kept = list(
                with_records(
                    answer.data,
                    answer.headers,
                    place=place,
                    start=answer.fetch_offset,
                    aborted=answer.aborted,
                )
            )
            octets = memoryview(answer.data)
            found.append(
                EncodedBatches(
                    topic=remote,
                    partition=0,
                    source_partition={"cluster": "source", "topic": topic, "partition": 0},
                    data=[octets[each.position : each.end] for each in kept],
                    headers=[
                        EncodedHeader(each.base_offset, each.last_offset, each.record_count)
                        for each in kept
                    ],
                    start=answer.fetch_offset,
                    next_offset=answer.next_offset,
                    offset={"offset": answer.next_offset},
                )
            )
    fetcher.close()
    cluster.close()
    return found


def copy(sender: WireSender, pieces: Sequence[EncodedBatches]) -> None:
    """Send *pieces*, and wait until they are acknowledged."""
    for batches in pieces:
        sender.send_batches(batches)
    sender.flush()


def consumed(bootstrap: str, topic: str) -> list[Row]:
    """What the client library reads of what is committed in *topic*."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "unused",
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
        }
    )
    consumer.assign([ClientPartition(topic, 0, OFFSET_BEGINNING)])
    found: list[Row] = []
    while True:
        message = consumer.poll(30)
        assert message is not None
        if message.error():
            consumer.close()
            return found
        kind, time = message.timestamp()
        found.append(
            Row(
                offset=message.offset() or 0,
                timestamp=time,
                key=message.key(),
                value=message.value(),
                headers=[tuple(header) for header in message.headers() or ()],
                timestamp_type=kind - 1,
            )
        )


def java_consumed(judge: JavaJudge, bootstrap: str, topic: str) -> list[Row]:
    """What Java's consumer reads of it."""
    records = judge.consumed(topic, bootstrap_servers=bootstrap, isolation_level="read_committed")
    return [
        Row(
            **record
            | {"headers": [(header["key"], header["value"]) for header in record["headers"]]}
        )
        for record in records
    ]


def contents(rows: Sequence[Row]) -> list[Row]:
    """*rows* without their offsets."""
    return [row._replace(offset=0) for row in rows]


def test_rows_that_were_handed_over_before_come_before_a_copy(
    bootstrap: str, open_sender: Opening
) -> None:
    """Although rows may wait for others."""
    topic, remote = made_topic(bootstrap), made_topic(bootstrap)
    produce(Producer({"bootstrap.servers": bootstrap}), topic, range(5))
    sender = open_sender(f"first-{remote}")
    sender.begin()
    sender.send(EncodedRecords(topic=remote, values=pa.array([b"first"]), partition=0))
    for batches in fetched(bootstrap, topic, remote):
        sender.send_batches(batches)
    sender.commit()

    values = [row.value for row in consumed(bootstrap, remote)]
    assert [b"first", *(row.value for row in consumed(bootstrap, topic))] == values


@pytest.mark.parametrize("ends", [True, False], ids=["transactions", "idempotent"])
def test_a_copy_has_the_same_records(
    judge: JavaJudge,
    bootstrap: str,
    open_sender: Opening,
    mixed_topic: str,
    *,
    ends: bool,
) -> None:
    """Every compression, aborted and committed transactions, batches forwarded and put together; nothing of what was aborted."""
    topic, remote = mixed_topic, made_topic(bootstrap)
    written = consumed(bootstrap, topic)
    sender = open_sender(f"copy-{remote}" if ends else None)
    pieces = fetched(bootstrap, topic, remote)
    sender.begin()
    sender.send_batches(pieces[0])
    sender.abort() if ends else sender.flush()

    sent = 0
    for batches in pieces if ends else pieces[1:]:
        sender.begin()
        sent += sender.send_batches(batches)
        sender.send_group_offsets(f"group-{remote}", [GroupEntry(remote, 0, batches.next_offset)])
        sender.commit()

    found = consumed(bootstrap, remote)
    assert contents(written) == contents(found)
    assert found == java_consumed(judge, bootstrap, remote)
    assert not ends or len(written) == sent
    assert {"forwarded", Reason.SMALL} <= sender.counted.keys()


def test_what_was_copied_where_is_known_before_the_commit(
    bootstrap: str, open_sender: Opening, mixed_topic: str
) -> None:
    """Each record lies where its run says."""
    topic, remote = mixed_topic, made_topic(bootstrap)
    sender = open_sender(f"copy-{remote}")
    runs = []
    for batches in fetched(bootstrap, topic, remote, start=7):
        sender.begin()
        sender.send_batches(batches)
        sender.flush()
        runs += sender.copied_runs()
        sender.commit()

    source = {row.offset: row for row in consumed(bootstrap, topic)}
    target = {row.offset: row for row in consumed(bootstrap, remote)}
    offsets = [(run.first + at, run.target_first + at) for run in runs for at in range(run.records)]
    assert sorted(offset for offset in source if offset >= 7) == [first for first, _ in offsets]
    assert sorted(target) == [second for _, second in offsets]
    for first, second in offsets:
        assert contents([source[first]]) == contents([target[second]])


def test_the_broker_s_time_becomes_a_producer_s(bootstrap: str, open_sender: Opening) -> None:
    """Whatever the producer had written into the records; and the target's own time is left to it."""
    topic = made_topic(bootstrap, message_timestamp_type="LogAppendTime")
    produce(Producer({"bootstrap.servers": bootstrap, "linger.ms": 50}), topic, range(300))
    written = consumed(bootstrap, topic)
    sender = open_sender()
    for kind in ("CreateTime", "LogAppendTime"):
        remote = made_topic(bootstrap, message_timestamp_type=kind)
        copy(sender, fetched(bootstrap, topic, remote))
        found = consumed(bootstrap, remote)

        expected = [row._replace(timestamp_type=0, offset=0) for row in written]
        if kind == "CreateTime":
            assert expected == contents(found)
        else:
            assert {1} == {row.timestamp_type for row in found}
    assert {Reason.LOG_APPEND_TIME} == sender.counted.keys()


def test_batches_are_split_for_a_topic_that_takes_less(
    bootstrap: str, open_sender: Opening
) -> None:
    """Its limit is asked for; a record that is larger is told with its place and what to do."""
    topic, remote = made_topic(bootstrap), made_topic(bootstrap, max_message_bytes="50000")
    produce(
        Producer({"bootstrap.servers": bootstrap, "linger.ms": 200}), topic, range(300), size=1800
    )
    sender = open_sender(f"copy-{remote}")
    sender.begin()
    copy(sender, fetched(bootstrap, topic, remote))
    sender.commit()

    assert contents(consumed(bootstrap, topic)) == contents(consumed(bootstrap, remote))
    assert Reason.TOO_LARGE in sender.counted
    produce(Producer({"bootstrap.servers": bootstrap}), topic, range(1), size=60_000)
    sender.begin()
    with pytest.raises(UnforwardableError, match=rf"offset 300 of {topic}-0 .*{remote}"):
        copy(sender, fetched(bootstrap, topic, remote, start=300))
    sender.abort()


def test_what_the_target_refuses_is_told_with_its_place(
    bootstrap: str, open_sender: Opening
) -> None:
    """Here, a record without a key in a compacted topic: the record's source offset, and what to do."""
    topic = made_topic(bootstrap)
    remote = made_topic(bootstrap, cleanup_policy="compact")
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 100})
    for number in range(5):
        producer.produce(topic, b"v", None if number == 3 else b"k")
    producer.flush(30)
    sender = open_sender(f"copy-{remote}")
    sender.begin()
    with pytest.raises(
        UnforwardableError, match=rf"offset 3 of {topic}-0 .*INVALID_RECORD.*compacted topic"
    ):
        copy(sender, fetched(bootstrap, topic, remote))
    sender.abort()
    sender.begin()
    sender.abort()

    assert [] == consumed(bootstrap, remote)


def test_refused_records_are_tolerated_and_the_others_copied(
    bootstrap: str, open_sender: Opening
) -> None:
    """One that the broker refuses, one that is too large, and a damaged batch; nothing is committed before they are known."""
    topic = made_topic(bootstrap)
    remote = made_topic(bootstrap, cleanup_policy="compact", max_message_bytes="50000")
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 100})
    for numbers in (range(5), range(5, 7), range(7, 9)):
        for number in numbers:
            value = b"v%d" % number + (b"x" * 60_000 if number == 6 else b"")
            producer.produce(topic, value, None if number == 3 else b"k%d" % number)
        producer.flush(30)
    [found] = fetched(bootstrap, topic, remote)
    spoilt = bytearray(found.data[-1])
    spoilt[-1] ^= 1
    found = replace(found, data=[*found.data[:-1], memoryview(spoilt)])
    sender = open_sender(f"copy-{remote}")
    sender.tolerate_refused()
    sender.begin()
    assert 6 == sender.send_batches(found)
    with pytest.raises(UnforwardableError, match=f"offset 6 of {topic}-0"):
        sender.commit()

    refused = {each.first: each for each in sender.refused()}

    assert {3: 3, 6: 6, 7: 8} == {each.first: each.last for each in refused.values()}
    assert [b"v3"] == [error.bad and error.bad.raw for _, error in refused[3].errors()]
    assert [bytes(spoilt)] == [error.bad and error.bad.raw for _, error in refused[7].errors()]
    assert [(0, 0, 3), (4, 3, 2)] == [
        (run.first, run.target_first, run.records) for run in sender.copied_runs()
    ]
    assert [] == sender.refused()
    sender.commit()
    assert [b"v0", b"v1", b"v2", b"v4", b"v5"] == [row.value for row in consumed(bootstrap, remote)]


def test_group_offsets_are_part_of_the_transaction(bootstrap: str, open_sender: Opening) -> None:
    """What is aborted moves nothing; what is removed is gone."""
    remote = made_topic(bootstrap)
    group, place = f"group-{remote}", TopicPartition(remote, 0)
    cluster = Cluster(wire_settings({"bootstrap.servers": bootstrap, "client.id": "looking"}))

    def committed() -> int | None:
        return cluster.committed_offsets(group, [place], Deadline.after(30))[place]

    sender = open_sender(f"copy-{remote}")
    for offset, end in ((5, sender.commit), (9, sender.abort)):
        sender.begin()
        sender.send_group_offsets(group, [GroupEntry(remote, 0, offset, "metadata", 3)])
        end()
    assert 5 == committed()
    sender.delete_group_offsets(group, [(remote, 0), (remote, 7)])
    assert committed() is None
    cluster.close()
