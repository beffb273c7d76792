"""A real broker's topics, offsets and record batches."""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import suppress

import pytest
from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, Producer
from confluent_kafka import TopicPartition as TheirPartition
from confluent_kafka.admin import AdminClient, NewTopic

from headrace.broker import Broker
from headrace.connect.errors import RetriableError, TaskFailedError
from headrace.connect.group_offsets import GroupEntry
from headrace.kafka.client_config import client_config
from headrace.kafka.deadline import Deadline
from headrace.kafka.topic_partition import TopicPartition
from headrace.kafka.wire.cluster import EARLIEST, LATEST, Cluster, IsolationLevel
from headrace.kafka.wire.fetcher import (
    FetchedRecords,
    Fetcher,
    FetchRange,
    FetchSettings,
    OffsetOutOfRangeError,
    TopicRecreatedError,
)
from headrace.kafka.wire.group_requests import GroupDescription
from headrace.kafka.wire.settings import wire_settings

pytestmark = pytest.mark.broker


def soon(seconds: float = 30) -> Deadline:
    """Time enough."""
    return Deadline.after(seconds)


def client_of(address: str) -> Cluster:
    """A client of the broker there."""
    return Cluster(wire_settings(client_config({"bootstrap.servers": address}).settings))


@pytest.fixture
def client(bootstrap: str) -> Iterator[Cluster]:
    """A client of the shared broker."""
    made = client_of(bootstrap)
    yield made
    made.close()


def create(address: str, partitions: int = 1) -> str:
    """A topic of the test's own."""
    topic = f"wire-{uuid.uuid4().hex[:8]}"
    recreate(address, topic, partitions)
    return topic


def recreate(address: str, topic: str, partitions: int = 1) -> None:
    """The topic, which may still be on its way out."""
    admin, ends = AdminClient({"bootstrap.servers": address}), time.monotonic() + 30
    while True:
        try:
            admin.create_topics([NewTopic(topic, partitions, 1)])[topic].result()
            return
        except Exception:
            if time.monotonic() > ends:
                raise
            time.sleep(0.1)


def write(address: str, place: TopicPartition, count: int, *, size: int = 10) -> None:
    """So many records, in several batches."""
    producer = Producer({"bootstrap.servers": address, "batch.num.messages": 100, "linger.ms": 20})
    for number in range(count):
        producer.produce(place.topic, f"{number:0{size}}", partition=place.partition)
    assert 0 == producer.flush(30)


def read(fetcher: Fetcher) -> list[FetchedRecords]:
    """All that comes until every range is finished."""
    found = list[FetchedRecords]()
    while not fetcher.finished:
        found += fetcher.poll(soon())
    fetcher.close()
    return found


def offsets_of(found: list[FetchedRecords], place: TopicPartition) -> list[int]:
    """Every offset in the batches of a partition."""
    return [
        offset
        for each in found
        if each.place == place
        for header in each.headers
        for offset in range(header.base_offset, header.last_offset + 1)
    ]


def test_every_record_is_fetched_once_and_in_order(bootstrap: str, client: Cluster) -> None:
    """Of partitions of several topics, in answers that are far too small for them."""
    topics = [create(bootstrap, 2) for _ in range(2)]
    places = [TopicPartition(topic, number) for topic in topics for number in (0, 1)]
    for place in places:
        write(bootstrap, place, 1_000, size=100)
    ends = client.list_offsets(dict.fromkeys(places, LATEST), soon())
    ranges = [FetchRange(place=each, start=0, end=ends[each].offset) for each in places]
    settings = FetchSettings(max_bytes=50_000, max_partition_bytes=20_000)
    found = read(Fetcher(client, ranges, settings))

    for place in places:
        assert list(range(1_000)) == offsets_of(found, place)
    assert len(found) > len(places)


def test_a_batch_that_is_larger_than_an_answer_comes_all_the_same(
    bootstrap: str, client: Cluster
) -> None:
    """Alone."""
    place = TopicPartition(create(bootstrap), 0)
    write(bootstrap, place, 300, size=1_000)
    settings = FetchSettings(max_bytes=1_000, max_partition_bytes=1_000)
    found = read(Fetcher(client, [FetchRange(place=place, start=0, end=300)], settings))

    assert list(range(300)) == offsets_of(found, place)


def test_offsets_of_logs(bootstrap: str, client: Cluster) -> None:
    """Begin, end, and the first one at a time, of which there may be none."""
    place = TopicPartition(create(bootstrap), 0)
    producer = Producer({"bootstrap.servers": bootstrap})
    for number in range(3):
        producer.produce(place.topic, b"value", timestamp=1_000 + number)
    producer.flush()
    found = {
        spec: client.list_offsets({place: spec}, soon())[place]
        for spec in (EARLIEST, LATEST, 1_001, 9_999)
    }

    assert [0, 3, 1] == [found[spec].offset for spec in (EARLIEST, LATEST, 1_001)]
    assert 1_001 == found[1_001].timestamp
    assert (None, None) == (found[9_999].offset, found[9_999].error)


def test_the_end_is_where_the_reader_may_read_to(bootstrap: str, client: Cluster) -> None:
    """An open transaction is after it for who reads committed records."""
    place = TopicPartition(create(bootstrap), 0)
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": place.topic})
    producer.init_transactions()
    producer.begin_transaction()
    producer.produce(place.topic, b"value")
    producer.flush()
    ends = [
        client.list_offsets({place: LATEST}, soon(), isolation=isolation)[place].offset
        for isolation in IsolationLevel
    ]
    producer.abort_transaction()

    assert [1, 0] == ends


def test_aborted_transactions_are_named(bootstrap: str, client: Cluster) -> None:
    """With the batches that are theirs; and not to who reads uncommitted records."""
    place = TopicPartition(create(bootstrap), 0)
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": place.topic})
    producer.init_transactions()
    for end in (producer.commit_transaction, producer.abort_transaction):
        producer.begin_transaction()
        producer.produce(place.topic, b"value")
        producer.flush()
        end()
    ranges = [FetchRange(place=place, start=0, end=4)]
    committed = read(Fetcher(client, ranges))
    uncommitted = read(
        Fetcher(client, ranges, FetchSettings(isolation=IsolationLevel.READ_UNCOMMITTED))
    )

    assert [2] == [one.first_offset for each in committed for one in each.aborted]
    assert [] == [one for each in uncommitted for one in each.aborted]
    assert list(range(4)) == offsets_of(committed, place) == offsets_of(uncommitted, place)


def test_offsets_of_groups(bootstrap: str, client: Cluster) -> None:
    """What we commit others see, and what they commit we do."""
    topic = create(bootstrap, 2)
    places = [TopicPartition(topic, number) for number in (0, 1)]
    group = f"group-of-{topic}"
    client.commit_offsets(group, {places[0]: 7}, soon())
    admin = AdminClient({"bootstrap.servers": bootstrap})
    asked = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)])
    seen = asked[group].result().topic_partitions
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group})
    consumer.commit(offsets=[TheirPartition(topic, 1, 8)], asynchronous=False)
    consumer.close()

    assert [(0, 7)] == [(each.partition, each.offset) for each in seen]
    assert {places[0]: 7, places[1]: 8} == client.committed_offsets(group, places, soon())
    assert dict.fromkeys(places) == client.committed_offsets(f"no-{group}", places, soon())


def test_a_group_with_members_is_not_overwritten(bootstrap: str, client: Cluster) -> None:
    """Its consumers would lose their positions."""
    topic = create(bootstrap)
    group = f"group-of-{topic}"
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group})
    consumer.subscribe([topic])
    deadline = soon()
    while not consumer.assignment():
        consumer.poll(0.1)
        assert not deadline.expired
    with pytest.raises(TaskFailedError, match="no consumer has joined"):
        client.commit_offsets(group, {TopicPartition(topic, 0): 1}, soon())
    consumer.close()


def test_entries_of_groups(bootstrap: str, client: Cluster) -> None:
    """With metadata and epoch; one is removed, which the client library cannot do, and the other stays."""
    topic = create(bootstrap, 3)
    group = f"group-of-{topic}"
    entries = [GroupEntry(topic, number, 7 + number, '{"of":"a"}', 0) for number in (0, 1)]
    client.commit_entries(group, entries, soon())
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group})
    theirs = TheirPartition(topic, 2, 9, metadata="by C")
    consumer.commit(offsets=[theirs], asynchronous=False)
    consumer.close()
    third = client.committed_entries(group, [topic], soon())[2]

    assert (9, "by C") == (third.offset, third.metadata)
    assert [*entries, third] == client.committed_entries(group, None, soon())
    client.delete_offsets(group, [TopicPartition(topic, 0), TopicPartition(topic, 2)], soon())
    assert entries[1:] == client.committed_entries(group, None, soon())
    client.delete_offsets(f"no-{group}", [TopicPartition(topic, 0)], soon())


def test_an_entry_in_a_transaction_is_waited_for(bootstrap: str, client: Cluster) -> None:
    """What it says after an abort is what it said before, and a first one is seen where its topic is named."""
    topic = create(bootstrap, 2)
    group = f"group-of-{topic}"
    client.commit_entries(group, [GroupEntry(topic, 0, 5)], soon())
    for commits in (False, True):
        producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": f"id-of-{topic}"})
        producer.init_transactions(20)
        producer.begin_transaction()
        consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group})
        moved = [TheirPartition(topic, number, 6) for number in (0, 1)]
        producer.send_offsets_to_transaction(moved, consumer.consumer_group_metadata(), 20)
        with pytest.raises(RetriableError, match="UNSTABLE_OFFSET_COMMIT"):
            client.committed_entries(group, None, soon(0.5))
        timer = threading.Timer(
            0.5, producer.commit_transaction if commits else producer.abort_transaction
        )
        timer.start()
        found = client.committed_entries(group, None, soon())
        timer.join()
        consumer.close()

        offsets = [(each.partition, each.offset) for each in found]
        assert ([(0, 6), (1, 6)] if commits else [(0, 5)]) == offsets


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_members_of_groups_are_named(bootstrap: str, client: Cluster, protocol: str) -> None:
    """Whichever protocol they have joined with."""
    topic = create(bootstrap)
    group = f"group-of-{topic}"
    assert GroupDescription("Dead") == client.describe_group(group, soon())
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "client.id": "a-reader",
            "group.protocol": protocol,
        }
    )
    consumer.subscribe([topic])
    deadline = soon()
    while not consumer.assignment():
        consumer.poll(0.1)
        assert not deadline.expired
    found = client.describe_group(group, soon())
    consumer.close()

    [member] = found.members
    assert "a-reader" == member.client_id
    assert "127.0.0.1" in member.host
    assert () == client.describe_group(group, soon()).members


def test_a_deleted_topics_offsets_are_not_those_of_its_successor(
    bootstrap: str, client: Cluster
) -> None:
    """It is made again while it is fetched, and longer than before."""
    place = TopicPartition(create(bootstrap), 0)
    write(bootstrap, place, 5)
    fetcher = Fetcher(client, [FetchRange(place=place, start=0)], FetchSettings(max_wait_ms=100))
    assert 5 == fetcher.poll(soon())[0].next_offset
    before = client.metadata([place.topic], soon()).topics[place.topic].topic_id
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.delete_topics([place.topic])[place.topic].result()
    recreate(bootstrap, place.topic)
    write(bootstrap, place, 10)
    with pytest.raises(TopicRecreatedError) as raised:
        keep_polling(fetcher)
    fetcher.close()

    assert before == raised.value.expected


def keep_polling(fetcher: Fetcher) -> None:
    """Until it raises; nothing may come before."""
    deadline = soon()
    while not deadline.expired:
        assert [] == fetcher.poll(soon(5))


def test_deleted_records_are_out_of_range(bootstrap: str, client: Cluster) -> None:
    """With the log's bounds; as are offsets after its end."""
    place = TopicPartition(create(bootstrap), 0)
    write(bootstrap, place, 20)
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for each in admin.delete_records([TheirPartition(place.topic, 0, 15)]).values():
        each.result()
    for start in (3, 100):
        fetcher = Fetcher(client, [FetchRange(place=place, start=start)])
        with pytest.raises(OffsetOutOfRangeError) as raised:
            keep_polling(fetcher)
        fetcher.close()
        assert (start, 15, 20) == (
            raised.value.offset,
            raised.value.log_start,
            raised.value.log_end,
        )


def test_no_topic_is_created(bootstrap: str, client: Cluster) -> None:
    """Although this broker would: another client still does not find it."""
    missing = f"missing-{uuid.uuid4().hex[:8]}"
    client.metadata([missing], soon())
    client.list_offsets({TopicPartition(missing, 0): LATEST}, soon())
    fetcher = Fetcher(client, [FetchRange(place=TopicPartition(missing, 0), start=0)])
    with pytest.raises(TaskFailedError, match=missing):
        keep_polling(fetcher)
    fetcher.close()

    assert (
        missing not in AdminClient({"bootstrap.servers": bootstrap}).list_topics(timeout=30).topics
    )


def test_internal_topics_are_marked(bootstrap: str, client: Cluster) -> None:
    """As the broker marks them."""
    client.commit_offsets("any-group", {TopicPartition(create(bootstrap), 0): 1}, soon())
    topics = client.metadata(None, soon()).topics

    assert topics["__consumer_offsets"].is_internal


@pytest.mark.kill
@pytest.mark.slow
def test_a_broker_that_is_killed_and_started_again(broker: Broker) -> None:
    """Everything comes once, and while it is away that is what a poll says."""
    place = TopicPartition(create(broker.bootstrap), 0)
    write(broker.bootstrap, place, 500)
    client = client_of(broker.bootstrap)
    fetcher = Fetcher(
        client, [FetchRange(place=place, start=0, end=1_000)], FetchSettings(max_wait_ms=100)
    )
    found = fetcher.poll(soon())
    broker.kill()
    with pytest.raises(RetriableError, match=str(place)):
        keep_polling(fetcher)
    broker.start()
    write(broker.bootstrap, place, 500)
    deadline = soon()
    while not fetcher.finished:
        with suppress(RetriableError):
            found += fetcher.poll(soon(2))
        assert not deadline.expired
    fetcher.close()
    client.close()

    assert list(range(1_000)) == offsets_of(found, place)


@pytest.mark.kill
def test_a_broker_that_is_paused_is_waited_for(broker: Broker) -> None:
    """Its connections are open, and nothing comes."""
    place = TopicPartition(create(broker.bootstrap), 0)
    client = client_of(broker.bootstrap)
    fetcher = Fetcher(
        client, [FetchRange(place=place, start=0, end=10)], FetchSettings(max_wait_ms=100)
    )
    assert [] == fetcher.poll(soon(3))
    broker.pause()
    assert [] == fetcher.poll(soon(1))
    broker.resume()
    write(broker.bootstrap, place, 10)

    assert list(range(10)) == offsets_of(read(fetcher), place)
    client.close()


@pytest.mark.slow
def test_five_hundred_partitions(bootstrap: str, client: Cluster) -> None:
    """In one request for each kind of question."""
    topic = create(bootstrap, 500)
    places = [TopicPartition(topic, number) for number in range(500)]
    for place in places[::50]:
        write(bootstrap, place, 10)
    began = time.thread_time()
    ends = client.list_offsets(dict.fromkeys(places, LATEST), soon())
    ranges = [FetchRange(place=each, start=0, end=ends[each].offset) for each in places]
    found = read(Fetcher(client, ranges))

    assert sum(len(offsets_of(found, place)) for place in places) == 100
    assert time.thread_time() - began < 1
