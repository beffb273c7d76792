"""A producer of our own on real brokers, of both versions of transactions; the client library says what is there."""

from __future__ import annotations

import random
import struct
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import pytest
from confluent_kafka import (
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    Producer,
)
from confluent_kafka import TopicPartition as TheirPartition
from confluent_kafka.admin import AdminClient, NewTopic

from headrace.broker import Broker
from headrace.connect.errors import (
    FencedError,
    ReplanError,
    RetriableError,
    TransactionTimedOutError,
)
from headrace.connect.group_offsets import GroupEntry
from headrace.kafka.batches.producer_batch import UnstampedBatch
from headrace.kafka.client_config import producer_config
from headrace.kafka.deadline import Deadline
from headrace.kafka.topic_partition import TopicPartition
from headrace.kafka.wire.cluster import Cluster
from headrace.kafka.wire.connection import uvarint
from headrace.kafka.wire.producer import WireProducer
from headrace.kafka.wire.producer_errors import BatchRefusedError
from headrace.kafka.wire.producer_settings import ProducerWireSettings
from headrace.kafka.wire.settings import wire_settings
from record_batches import Row, batch

pytestmark = pytest.mark.broker

# As far as nothing else is said: 2023-11-14.
TIME_MS = 1_700_000_000_000
Values = list[bytes]


class Entry(NamedTuple):
    """What a group has committed for a partition."""

    offset: int
    metadata: str = ""
    leader_epoch: int = -1


def soon(seconds: float = 30) -> Deadline:
    """Time enough."""
    return Deadline.after(seconds)


@pytest.fixture(params=[1, 2], ids=["first", "second"])
def address(request: pytest.FixtureRequest) -> str:
    """A broker with transactions of that version."""
    return request.getfixturevalue({1: "first_bootstrap", 2: "bootstrap"}[request.param])


@pytest.fixture
def players() -> Iterator[Players]:
    """Producers of the test, which ends them."""
    made = Players()
    yield made
    made.close()


class Players:
    """Makes producers, and closes them."""

    def __init__(self) -> None:
        self._made: list[tuple[WireProducer, Cluster]] = []

    def producer(
        self,
        address: str,
        transactional_id: str | None,
        *,
        transaction_ms: int = 60_000,
        waiting: Callable[[str], None] = lambda _what: None,
        **settings: float,
    ) -> WireProducer:
        """One that is not open yet."""
        config = producer_config({"bootstrap.servers": address}, transactional_id=transactional_id)
        cluster = Cluster(wire_settings(config.settings))
        made = WireProducer(
            cluster,
            transactional_id=transactional_id,
            settings=ProducerWireSettings(**settings),  # pyright: ignore[reportArgumentType]
            owner="task c-0",
            waiting=waiting,
            transaction_ms=transaction_ms,
        )
        self._made.append((made, cluster))
        return made

    def opened(
        self,
        address: str,
        transactional_id: str | None,
        *,
        waiting: Callable[[str], None] = lambda _what: None,
        **given: float,
    ) -> WireProducer:
        """One that is open."""
        made = self.producer(address, transactional_id, waiting=waiting, **given)  # pyright: ignore[reportArgumentType]
        made.open(soon())
        return made

    def close(self) -> None:
        """End them all."""
        for producer, cluster in self._made:
            producer.close()
            cluster.close()


def create(address: str, partitions: int = 1, **config: str) -> str:
    """A topic of the test's own; settings have underscores."""
    topic = f"producing-{uuid.uuid4().hex[:8]}"
    settings = {key.replace("_", "."): value for key, value in config.items()}
    admin = AdminClient({"bootstrap.servers": address})
    admin.create_topics([NewTopic(topic, partitions, 1, config=settings)])[topic].result()
    return topic


def batch_of(values: Sequence[bytes], *, time_ms: int = TIME_MS) -> UnstampedBatch:
    """A batch with these values."""
    rows = [Row(offset, time_ms, None, value) for offset, value in enumerate(values)]
    return UnstampedBatch(batch(rows), len(values))


def committed(address: str, topic: str, partitions: int = 1) -> list[Values]:
    """The committed values of each partition, in order, once no transaction is open there."""
    found = read(address, topic, partitions, isolation="read_committed")
    return [[message.value() or b"" for message in messages] for messages in found]


def read(address: str, topic: str, partitions: int, *, isolation: str) -> list[list[Message]]:
    """All that there is in each partition."""
    reader = Consumer(
        {
            "bootstrap.servers": address,
            "group.id": f"judge-{uuid.uuid4().hex[:8]}",
            "isolation.level": isolation,
            "enable.partition.eof": True,
            "enable.auto.commit": False,
            "fetch.queue.backoff.ms": 5,
        }
    )
    reader.assign([TheirPartition(topic, number, 0) for number in range(partitions)])
    found: list[list[Message]] = [[] for _ in range(partitions)]
    left, ends = set(range(partitions)), time.monotonic() + 60
    while left:
        assert time.monotonic() < ends, f"the end of {topic} was not reached"
        for message in reader.consume(1_000, 1.0):
            error = message.error()
            if error is None:
                found[message.partition() or 0].append(message)
            elif error.code() == KafkaError._PARTITION_EOF:
                left.discard(message.partition() or 0)
            else:
                raise KafkaException(error)
    reader.close()
    return found


def stored(address: str, group: str, topic: str, partitions: int = 1) -> list[int]:
    """The offset that the group has committed for each partition, -1001 without one; what is pending is waited for."""
    reader = Consumer({"bootstrap.servers": address, "group.id": group})
    wanted = [TheirPartition(topic, number) for number in range(partitions)]
    ends = time.monotonic() + 40
    while True:
        try:
            found = [each.offset for each in reader.committed(wanted, timeout=40)]
            break
        except KafkaException:
            # A broker that has just started does not know yet what it coordinates.
            if time.monotonic() > ends:
                raise
            time.sleep(0.1)
    reader.close()
    return found


def entries(address: str, group: str, topic: str, partitions: int = 1) -> list[Entry | None]:
    """What the group has committed for each partition, as the coordinator has written it down.

    The client library gives metadata with whatever lies behind it in memory.
    """
    offsets = stored(address, group, topic, partitions)
    found = dict[int, Entry]()
    for key, value in (
        (message.key(), message.value())
        for messages in read(address, "__consumer_offsets", 4, isolation="read_uncommitted")
        for message in messages
    ):
        entry_of = key and value and _entry(group, topic, key, value)
        if entry_of and entry_of[1].offset == offsets[entry_of[0]]:
            found[entry_of[0]] = entry_of[1]
    return [found.get(number) for number in range(partitions)]


def _entry(group: str, topic: str, key: bytes, value: bytes) -> tuple[int, Entry] | None:
    """Partition and entry in a record of the coordinator's topic; ``None`` for those of others."""
    names = b"".join(struct.pack(">h", len(each)) + each.encode() for each in (group, topic))
    if key[:2] not in (b"\0\0", b"\0\1") or key[2:-4] != names:
        return None
    version, offset, epoch, length = struct.unpack_from(">hqih", value)
    at = 16
    if version >= 4:
        length, at = uvarint(memoryview(value), 14)
        length -= 1
    metadata = value[at : at + length].decode()
    return struct.unpack(">i", key[-4:])[0], Entry(offset, metadata, epoch)


def test_what_is_committed_is_there_and_what_is_aborted_is_not(
    address: str, players: Players
) -> None:
    """In order, in batches of all sizes, several of which are in flight."""
    topic, draw = create(address, 3), random.Random(7)
    producer = players.opened(address, topic, max_request_bytes=60_000)
    expected: list[Values] = [[], [], []]
    for number in range(12):
        producer.begin()
        written: list[Values] = [[], [], []]
        for each in range(40):
            values = [
                f"{number}.{each}.{row}".encode() + bytes(draw.choice((0, 0, 2_000)))
                for row in range(draw.choice((1, 5, 30)))
            ]
            producer.send(TopicPartition(topic, each % 3), batch_of(values))
            written[each % 3] += values
        if draw.random() < 0.5:
            producer.abort()
            continue
        producer.commit()
        expected = [[*before, *now] for before, now in zip(expected, written, strict=True)]

    assert expected == committed(address, topic, 3)


def test_an_aborted_transaction_that_was_sent_is_not_there(address: str, players: Players) -> None:
    """All of it had arrived."""
    topic = create(address)
    producer = players.opened(address, topic)
    for value, end in ((b"a", producer.abort), (b"b", producer.commit), (b"c", producer.abort)):
        producer.begin()
        producer.send(TopicPartition(topic, 0), batch_of([value]))
        producer.flush()
        end()

    assert [[b"b"]] == committed(address, topic)


def test_base_offsets_are_where_the_records_are(address: str, players: Players) -> None:
    """Known before the commit."""
    topic = create(address)
    producer = players.opened(address, topic)
    found = list[int | None]()
    for _ in range(2):
        producer.begin()
        numbers = [
            producer.send(TopicPartition(topic, 0), batch_of([b"x"] * count)) for count in (3, 1, 2)
        ]
        producer.flush()
        found += [producer.base_offset(each) for each in numbers]
        producer.commit()

    # A marker is between.
    assert [0, 3, 4, 7, 10, 11] == found


def test_offsets_of_a_group_are_committed_with_the_records(address: str, players: Players) -> None:
    """With metadata and leader epoch; or not at all."""
    topic = create(address, 2)
    producer, group = players.opened(address, topic), f"group-{topic}"
    for number, end in enumerate((producer.commit, producer.abort)):
        producer.begin()
        producer.send(TopicPartition(topic, 0), batch_of([b"x"]))
        producer.send_group_offsets(
            group,
            [
                GroupEntry(topic, 0, 10 + number, '{"of": "ä"}', 4),
                GroupEntry(topic, 1, 20 + number, "", -1),
            ],
        )
        end()

    assert [Entry(10, '{"of": "ä"}', 4), Entry(20)] == entries(address, group, topic, 2)


def test_offsets_that_do_not_fit_into_one_request_are_cut(address: str, players: Players) -> None:
    """The coordinator would refuse them together; they are one transaction all the same."""
    topic = create(address, 320)
    producer, group = players.opened(address, topic), f"group-{topic}"
    producer.begin()
    producer.send_group_offsets(
        group, [GroupEntry(topic, number, number, "m" * 4_000) for number in range(320)]
    )
    producer.commit()

    assert [Entry(number, "m" * 4_000) for number in range(320)] == (
        entries(address, group, topic, 320)
    )


def test_offsets_without_transactions_are_committed_at_once(
    bootstrap: str, players: Players
) -> None:
    """After the records."""
    topic = create(bootstrap)
    producer, group = players.opened(bootstrap, None), f"group-{topic}"
    producer.send(TopicPartition(topic, 0), batch_of([b"x", b"y"]))
    producer.flush()
    producer.send_group_offsets(group, [GroupEntry(topic, 0, 2, "at", 1)])

    assert [Entry(2, "at", 1)] == entries(bootstrap, group, topic)
    assert [[b"x", b"y"]] == committed(bootstrap, topic)


def test_an_offset_for_a_partition_that_is_not_there_is_an_error(
    address: str, players: Players
) -> None:
    """It says what to do; the next transaction is not affected."""
    topic = create(address)
    producer, group = players.opened(address, topic), f"group-{topic}"
    producer.begin()
    producer.send(TopicPartition(topic, 0), batch_of([b"a"]))
    with pytest.raises(ReplanError, match=r"must exist"):
        producer.send_group_offsets(group, [GroupEntry(topic, 7, 1)])
    producer.abort()
    producer.begin()
    producer.send(TopicPartition(topic, 0), batch_of([b"b"]))
    producer.commit()

    assert [[b"b"]] == committed(address, topic)


def test_a_topic_that_is_not_there_fails_the_transaction_only(
    address: str, players: Players
) -> None:
    """Nothing of it was sent; it is aborted all the same."""
    topic = create(address)
    producer = players.opened(address, topic)
    producer.begin()
    producer.send(TopicPartition(topic, 3), batch_of([b"nowhere"]))
    with pytest.raises(ReplanError, match="UNKNOWN_TOPIC_OR_PARTITION"):
        producer.flush()
    producer.abort()
    producer.begin()
    producer.send(TopicPartition(topic, 0), batch_of([b"here"]))
    producer.commit()

    assert [[b"here"]] == committed(address, topic)


def test_a_newer_producer_fences_and_aborts(address: str, players: Players) -> None:
    """The older one hears of it at its next request, and does not get its id back."""
    topic = create(address)
    place = TopicPartition(topic, 0)
    old = players.opened(address, topic)
    old.begin()
    old.send(place, batch_of([b"old"]))
    old.flush()
    new = players.opened(address, topic)
    with pytest.raises(FencedError, match=topic):
        old.commit()
    with pytest.raises(FencedError, match=topic):
        old.open(soon())
    new.begin()
    new.send(place, batch_of([b"new"]))
    new.commit()

    assert [[b"new"]] == committed(address, topic)


def test_the_client_library_fences_ours(address: str, players: Players) -> None:
    """While records are sent."""
    topic = create(address)
    producer = players.opened(address, topic)
    producer.begin()
    producer.send(TopicPartition(topic, 0), batch_of([b"ours"]))
    producer.flush()
    theirs = Producer({"bootstrap.servers": address, "transactional.id": topic})
    theirs.init_transactions(20)
    producer.send(TopicPartition(topic, 0), batch_of([b"late"]))
    with pytest.raises(FencedError, match=topic):
        producer.flush()

    assert [[]] == committed(address, topic)


def test_an_identity_that_the_driver_has_proven_is_used(address: str, players: Players) -> None:
    """Whoever takes the id later stops the slot at its first request."""
    topic = create(address)
    place = TopicPartition(topic, 0)
    driver = players.opened(address, topic)
    driver.open(soon())
    slot = players.producer(address, topic)
    slot.open(soon(), identity=driver.identity)
    slot.begin()
    slot.send(place, batch_of([b"slot"]))
    slot.commit()
    late = players.producer(address, topic)
    late.open(soon(), identity=slot.identity)
    players.opened(address, topic)
    late.begin()
    late.send(place, batch_of([b"late"]))
    with pytest.raises(FencedError):
        late.flush()

    assert [[b"slot"]] == committed(address, topic)


def test_a_transaction_that_is_open_for_too_long_is_told_from_fencing(
    address: str, players: Players
) -> None:
    """The broker has ended it; only on the second version does it give the same producer another epoch."""
    topic = create(address)
    place = TopicPartition(topic, 0)
    producer = players.opened(address, topic, transaction_ms=1_000)
    producer.begin()
    producer.send(place, batch_of([b"slow"]))
    producer.flush()
    with pytest.raises(TransactionTimedOutError, match="task c-0") as raised:
        send_until_it_fails(producer, place)
    try:
        producer.open(soon())
    except TransactionTimedOutError:
        producer = players.opened(address, topic)
    producer.begin()
    producer.send(place, batch_of([b"next"]))
    producer.commit()

    assert raised.value.timeout_seconds == 1.0 < raised.value.open_seconds
    assert [[b"next"]] == committed(address, topic)


def send_until_it_fails(producer: WireProducer, place: TopicPartition) -> None:
    """Go on with a transaction, slowly."""
    ends = time.monotonic() + 40
    while time.monotonic() < ends:
        time.sleep(0.2)
        producer.send(place, batch_of([b"slow"]))
        producer.flush()


def test_a_batch_that_the_topic_does_not_take_is_named_and_may_be_dropped(
    address: str, players: Players
) -> None:
    """Those behind it, which were in flight, follow in the same transaction."""
    topic = create(address, max_message_bytes="3000", message_timestamp_after_max_ms="60000")
    place = TopicPartition(topic, 0)
    producer = players.opened(address, topic, max_request_bytes=1_000)
    refused = {3: batch_of([bytes(5_000)]), 7: batch_of([b"7"], time_ms=4_000_000_000_000)}
    numbers, found = list[int](), dict[int, tuple[TopicPartition, str]]()
    producer.begin()
    while True:
        try:
            while len(numbers) < 12:
                number = len(numbers)
                made = refused.get(number) or batch_of([f"{number}".encode(), b"more"])
                numbers.append(producer.send(place, made))
            producer.commit()
        except BatchRefusedError as error:
            found[numbers.index(error.number)] = error.place, error.error
            producer.drop(error.number)
        else:
            break
    left = [f"{number}".encode() for number in range(12) if number not in refused]

    assert {3: (place, "MESSAGE_TOO_LARGE"), 7: (place, "INVALID_TIMESTAMP")} == found
    assert [left] == [
        [value for value in values if value != b"more"] for values in committed(address, topic)
    ]


def test_a_transaction_goes_on_after_the_abort_of_a_refused_one(
    address: str, players: Players
) -> None:
    """Though sequences of the epoch were lost."""
    topic = create(address, 2, max_message_bytes="3000")
    producer = players.opened(address, topic, max_request_bytes=1_000)
    for number in range(3):
        producer.begin()
        producer.send(TopicPartition(topic, 0), batch_of([f"lost {number}".encode()]))
        producer.send(TopicPartition(topic, 1), batch_of([bytes(5_000)]))
        with pytest.raises(BatchRefusedError):
            producer.commit()
        producer.abort()
        producer.begin()
        for partition in (0, 1):
            producer.send(TopicPartition(topic, partition), batch_of([f"{number}".encode()]))
        producer.commit()

    assert [[b"0", b"1", b"2"]] * 2 == committed(address, topic, 2)


def test_records_refused_for_their_content_are_counted_by_the_broker(
    address: str, players: Players
) -> None:
    """A compacted topic takes none without a key."""
    topic = create(address, cleanup_policy="compact")
    producer = players.opened(address, topic)
    producer.begin()
    producer.send(TopicPartition(topic, 0), batch_of([b"a", b"b"]))
    with pytest.raises(BatchRefusedError, match="INVALID_RECORD") as raised:
        producer.flush()
    producer.abort()

    assert (0, 1) == raised.value.rows
    assert raised.value.detail


def test_nothing_without_the_transactional_bit_leaves_in_a_transaction(
    address: str, players: Players
) -> None:
    """The broker would take it, and show it at once."""
    topic = create(address)
    producer = players.opened(address, topic)
    producer.begin()
    for attributes in (0, 0x10):
        rows = [Row(0, TIME_MS, None, b"x")]
        made = batch(rows, producer_id=-1, attributes=attributes)
        producer.send(TopicPartition(topic, 0), UnstampedBatch(made, 1))
    producer.flush()
    visible = committed(address, topic)
    producer.abort()

    assert [[]] == visible == committed(address, topic)


@pytest.mark.kill
@pytest.mark.slow
@pytest.mark.parametrize("round_", range(3))
def test_a_broker_that_is_killed_while_records_are_sent_has_them_once(
    broker: Broker, players: Players, round_: int
) -> None:
    """Where a request was not answered, a new producer sends the transaction again; the one before it is aborted.

    Where none was in flight, the same one goes on.
    Nothing is killed while a transaction ends: a lone broker of this version may then leave it open for ever.
    """
    address = broker.bootstrap
    topic, draw = create(address, 2), random.Random(round_)
    values = [f"{number}".encode() for number in range(400)]
    producer = players.opened(
        address, topic, max_request_bytes=2_000, waiting=lambda _what: broker.start() and None
    )
    kill_at, at = draw.randrange(1, len(values) - 1), 0
    while at < len(values):
        assert [at] == [max(0, each) for each in stored(address, topic, topic)]
        producer.begin()
        piece = values[at : at + 100]
        try:
            for number, value in enumerate(piece, at):
                producer.send(TopicPartition(topic, number % 2), batch_of([value]))
                if number == kill_at:
                    broker.kill()
                    kill_at = -1
            producer.flush()
            producer.send_group_offsets(topic, [GroupEntry(topic, 0, at + len(piece))])
        except RetriableError:
            producer.abort()
            producer.close()
            broker.start()
            producer = players.opened(address, topic)
            continue
        producer.commit()
        at += len(piece)

    assert -1 == kill_at
    assert [values[::2], values[1::2]] == committed(address, topic, 2)


@pytest.mark.kill
def test_a_broker_that_is_frozen_leaves_no_late_records(broker: Broker, players: Players) -> None:
    """What it has received, and not answered, is aborted with its transaction when it wakes."""
    address = broker.bootstrap
    topic = create(address)
    place = TopicPartition(topic, 0)
    producer = players.opened(address, topic, request_seconds=1.0)
    producer.begin()
    producer.send(place, batch_of([b"before"]))
    producer.flush()
    broker.pause()
    producer.send(place, batch_of([b"frozen"]))
    with pytest.raises(RetriableError):
        producer.flush()
    producer.close()
    broker.resume()
    following = players.opened(address, topic)
    following.begin()
    following.send(place, batch_of([b"after"]))
    following.commit()

    assert [[b"after"]] == committed(address, topic)


@pytest.mark.kill
@pytest.mark.slow
@pytest.mark.parametrize("round_", range(2))
def test_without_transactions_a_killed_broker_has_all_records_once_and_in_order(
    broker: Broker, players: Players, round_: int
) -> None:
    """What was not answered is sent again with its sequences.

    The records are of now: a broker that starts knows no producer any more whose last record is older than a day, unless it is in
    a transaction; it would take what it has already.
    """
    address = broker.bootstrap
    topic, draw = create(address, 2), random.Random(round_)
    producer = players.opened(
        address,
        None,
        max_request_bytes=2_000,
        buffer_bytes=20_000,
        waiting=lambda _what: broker.start() and None,
    )
    kill_at = draw.randrange(50, 350)
    values = [f"{number}".encode() for number in range(400)]
    now_ms = int(time.time() * 1000)
    for number, value in enumerate(values):
        producer.send(TopicPartition(topic, number % 2), batch_of([value], time_ms=now_ms))
        if number == kill_at:
            broker.kill()
    producer.flush()
    found = committed(address, topic, 2)

    assert [len(values[::2]), len(values[1::2])] == [len(each) for each in found]
    assert [values[::2], values[1::2]] == found
