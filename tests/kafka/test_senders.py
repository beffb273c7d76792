"""Both senders on a real broker: transactions, refusals, full queues and lost ownership."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator

import pyarrow as pa
import pytest

from headrace.connect.errors import (
    ConfigError,
    FencedError,
    RecordError,
    ReplanError,
    RetriableError,
    StaleTokenError,
    TaskFailedError,
)
from headrace.kafka.client_config import producer_config
from headrace.kafka.client_sender import make_sender
from headrace.kafka.partitioner import java_partition
from headrace.kafka.sender import EncodedRecords, Sender, TooLargeError
from headrace.kafka.wire_sender import make_wire_sender
from spark.kafka.tables import Topics

pytestmark = pytest.mark.broker

Opening = Callable[..., Sender]
Making = Callable[..., Sender]


@pytest.fixture(params=[make_sender, make_wire_sender], ids=["client", "wire"])
def make(request: pytest.FixtureRequest) -> Making:
    """Makes senders of either kind."""
    return request.param


@pytest.fixture
def open_sender(bootstrap: str, make: Making) -> Iterator[Opening]:
    """Opens senders that are closed with the test; keywords are producer settings."""
    opened: list[Sender] = []

    def open_one(
        transactional_id: str | None = None, *, reports_metadata: bool = False, **properties: str
    ) -> Sender:
        named = {key.replace("_", "."): value for key, value in properties.items()}
        config = producer_config(
            {"bootstrap.servers": bootstrap, **named}, transactional_id=transactional_id
        )
        opened.append(make(config, owner="task c-0", reports_metadata=reports_metadata))
        opened[-1].open()
        return opened[-1]

    yield open_one
    for sender in opened:
        sender.close()


@pytest.fixture
def transactional_id() -> str:
    """An id that no other test uses."""
    return f"kafka-tests-{uuid.uuid4().hex[:8]}"


def records(topic: str, *values: bytes | None, **columns: object) -> EncodedRecords:
    """A batch of *values*."""
    return EncodedRecords(topic=topic, values=pa.array(values, pa.binary()), **columns)  # type: ignore[arg-type]


def values_of(committed: list[tuple[int, bytes | None, bytes | None]]) -> set[bytes | None]:
    """The values alone."""
    return {value for _, _, value in committed}


def sent_and_ended(sender: Sender, batch: EncodedRecords, end: str = "commit") -> None:
    """What must not go well as a whole; where it fails depends on what the client knows already."""
    sender.send(batch)
    getattr(sender, end)()


def test_a_transaction_is_all_or_nothing(
    open_sender: Opening, new_topic: str, transactional_id: str, read_committed: Callable
) -> None:
    """Records and offsets of a committed transaction are there, those of an aborted one are not."""
    sender = open_sender(transactional_id)
    sender.begin()
    sender.send(records(new_topic, b"lost"))
    sender.flush()
    sender.abort()
    sender.begin()
    sender.send(records(new_topic, b"kept", None))
    sender.send_offsets(new_topic, [(b"key", b"offset"), (b"gone", None)])
    sender.commit()

    assert {b"kept", None, b"offset"} == values_of(read_committed(new_topic))


def test_abort_without_a_transaction_does_nothing(
    open_sender: Opening, transactional_id: str
) -> None:
    """Cleaning up needs no knowledge of what was begun."""
    sender = open_sender(transactional_id)
    sender.abort()
    sender.begin()
    sender.abort()
    sender.abort()


def test_keys_land_where_java_puts_them(
    open_sender: Opening, new_topic: str, read_committed: Callable
) -> None:
    """murmur2 of the key, positive, modulo three partitions: values from Java's own partitioner."""
    sender = open_sender()
    keys = pa.array([b"21", b"foobar", b"a-little-bit-long-string"])
    sender.send(records(new_topic, b"1", b"2", b"3", keys=keys))
    sender.flush()

    hashes = {b"21": -973932308, b"foobar": -790332482, b"a-little-bit-long-string": -985981536}
    expected = {(key, (value & 0x7FFFFFFF) % 3) for key, value in hashes.items()}
    assert expected == {(key, partition) for partition, key, _ in read_committed(new_topic)}


@pytest.mark.parametrize("make", [make_sender])
def test_keys_of_offsets_land_there_whatever_the_partitioner(
    open_sender: Opening, new_topic: str, transactional_id: str, read_committed: Callable
) -> None:
    """Otherwise one offset would lie in several partitions, where no order says which is the last."""
    sender = open_sender(transactional_id, partitioner="random")
    entries = [(b"key %d" % number, b"value") for number in range(20)]
    sender.begin()
    sender.send_offsets(new_topic, entries)
    sender.commit()

    expected = {(java_partition(key, 3), key) for key, _ in entries}
    assert expected == {(partition, key) for partition, key, _ in read_committed(new_topic)}


def test_a_partition_can_be_given(
    open_sender: Opening, new_topic: str, read_committed: Callable
) -> None:
    """A record with a partition ignores its key, in both ways of sending."""
    sender = open_sender()
    keys = pa.array([b"21"])
    sender.send(records(new_topic, b"batch", keys=keys, partition=2))
    sender.send(records(new_topic, b"row", keys=keys, partition=1, timestamps=5))
    sender.flush()

    expected = {(2, b"21", b"batch"), (1, b"21", b"row")}
    assert expected == set(read_committed(new_topic))


@pytest.mark.parametrize("timestamps", [None, 1_700_000_000_000], ids=["batches", "rows"])
def test_a_full_queue_keeps_the_order(
    open_sender: Opening, new_topic: str, read_committed: Callable, timestamps: int | None
) -> None:
    """Many times what the queue holds arrives once, in order."""
    sender = open_sender(new_topic, buffer_memory="65536", max_request_size="65536")
    values = [b"%06d" % number + b"x" * 100 for number in range(20_000)]
    sender.begin()
    sender.send(records(new_topic, *values, partition=0, timestamps=timestamps))
    sender.commit()

    assert values == [value for _, _, value in read_committed(new_topic)]


@pytest.mark.parametrize("timestamps", [None, 1_700_000_000_000], ids=["batches", "rows"])
def test_a_record_that_is_too_large_is_named(
    open_sender: Opening, new_topic: str, read_committed: Callable, timestamps: int | None
) -> None:
    """Nothing of the call is handed over, and the sender goes on."""
    sender = open_sender(new_topic, max_request_size="1000000")
    sender.begin()
    with pytest.raises(TooLargeError, match=r"max\.request\.size") as caught:
        sender.send(records(new_topic, b"a", b"x" * 1_000_000, b"b", timestamps=timestamps))
    sender.send(records(new_topic, b"c", timestamps=timestamps))
    sender.commit()

    assert 1 == caught.value.row
    assert {b"c"} == values_of(read_committed(new_topic))


def test_a_record_of_javas_default_size_fits(
    open_sender: Opening, new_topic: str, read_committed: Callable
) -> None:
    """What the check lets through, the broker takes: its own limit is Java's."""
    sender = open_sender()
    largest = b"x" * (1_048_576 - 100)
    sender.send(records(new_topic, largest))
    sender.flush()

    assert {largest} == values_of(read_committed(new_topic))


def test_a_partition_that_does_not_exist_never_commits(
    open_sender: Opening, new_topic: str, transactional_id: str, read_committed: Callable
) -> None:
    """Whether the client knows the topic's partitions yet or not, the record is not lost in silence."""
    sender = open_sender(transactional_id)
    sender.begin()
    sender.send(records(new_topic, b"first"))
    sender.flush()
    with pytest.raises((RecordError, TaskFailedError)):
        sent_and_ended(sender, records(new_topic, b"astray", partition=77))
    sender.abort()

    assert [] == read_committed(new_topic)


@pytest.mark.parametrize("end", ["commit", "flush"])
def test_a_late_failure_fails_the_task(
    open_sender: Opening, transactional_id: str, end: str
) -> None:
    """A topic that the broker refuses is told at the latest when the records are awaited."""
    sender = open_sender(transactional_id)
    sender.begin()
    with pytest.raises(TaskFailedError, match="no such/topic"):
        sent_and_ended(sender, records("no such/topic", b"1"), end)
    sender.abort()
    sender.begin()
    sender.abort()


def test_an_idempotent_failure_is_reported_until_the_sender_is_closed(
    open_sender: Opening, new_topic: str, compacted_topic: str
) -> None:
    """Without a transaction the record is gone, so nothing after it may pass for complete."""
    sender = open_sender()
    sender.send(records(new_topic, b"1"))
    sender.flush()
    sender.send(records(compacted_topic, b"without a key"))
    for _ in range(2):
        with pytest.raises(TaskFailedError):
            sender.flush()


def test_a_fenced_sender_stays_fenced(
    open_sender: Opening, new_topic: str, transactional_id: str, read_committed: Callable
) -> None:
    """Whatever it is asked afterwards, it writes nothing and says why; abort is quiet."""
    old = open_sender(transactional_id)
    old.begin()
    old.send(records(new_topic, b"old"))
    new = open_sender(transactional_id)
    for step in (old.commit, old.begin, old.flush, old.commit):
        with pytest.raises(FencedError):
            step()
    old.abort()
    new.begin()
    new.send(records(new_topic, b"new"))
    new.commit()

    assert {b"new"} == values_of(read_committed(new_topic))


def test_metadata_is_reported(open_sender: Opening, new_topic: str, transactional_id: str) -> None:
    """Each record's place in Kafka, in the order of the rows."""
    sender = open_sender(transactional_id, reports_metadata=True)
    sender.begin()
    sender.send(records(new_topic, b"0", partition=1))
    batch = records(new_topic, b"1", None, b"3", partition=1, timestamps=7)
    places = sender.send_each(batch)
    sender.commit()

    assert [(1, 1, 7), (1, 2, 7), (1, 3, 7)] == [
        (place.partition, place.offset, place.timestamp) for place in places
    ]


def test_where_the_broker_sets_the_time_that_is_reported(
    bootstrap: str, open_sender: Opening
) -> None:
    """As Java's clients do, and not the time that the record was made at."""
    topic = Topics(bootstrap).create("appended", message_timestamp_type="LogAppendTime")
    sender = open_sender(None, reports_metadata=True)
    before = time.time_ns() // 1_000_000
    [place] = sender.send_each(records(topic, b"0", partition=0, timestamps=7))

    assert before <= place.timestamp <= time.time_ns() // 1_000_000


def test_a_sender_that_reports_metadata_still_collects_failures(
    open_sender: Opening, transactional_id: str
) -> None:
    """A failure of one record is not taken for its place."""
    sender = open_sender(transactional_id, reports_metadata=True)
    sender.begin()
    with pytest.raises(TaskFailedError):
        sender.send_each(records("no such/topic", b"1"))
    sender.abort()


@pytest.mark.parametrize("make", [make_sender])
def test_places_need_a_sender_made_for_them(open_sender: Opening, new_topic: str) -> None:
    """Without it nothing is sent."""
    with pytest.raises(ValueError, match="reports_metadata"):
        open_sender().send_each(records(new_topic, b"1"))


def unreachable(make: Making, **options: object) -> Sender:
    """A sender to a port where no one listens."""
    config = producer_config({"bootstrap.servers": "127.0.0.1:1"}, transactional_id="no one")
    return make(config, **options)


def test_a_broker_that_is_away_at_the_start_is_waited_for_until_the_deadline(make: Making) -> None:
    """While it lasts the wait is told, with what the client says."""
    told: list[str] = []
    sender = unreachable(make, open_seconds=4.5, waiting=told.append)
    with pytest.raises(RetriableError, match="did not answer"):
        sender.open()
    sender.close()

    assert 2 <= len(told)
    assert "Connection refused" in told[-1]


def test_a_wait_can_be_ended(make: Making) -> None:
    """What the watcher raises comes out at once; then there is nothing to abort, only to close."""

    def withdrawn(_: str) -> None:
        raise StaleTokenError("withdrawn")

    sender = unreachable(make, waiting=withdrawn)
    with pytest.raises(StaleTokenError):
        sender.open()
    sender.abort()
    with pytest.raises(ReplanError):
        sender.begin()
    sender.close()


def test_settings_that_the_client_refuses_are_the_users_problem() -> None:
    """The key is the one that the user wrote, not the client's own name for it."""
    with pytest.raises(ConfigError) as caught:
        make_sender(producer_config({"bootstrap.servers": "127.0.0.1:1", "linger.ms": "soon"}))

    assert ["linger.ms"] == [key for key, _ in caught.value.problems]
