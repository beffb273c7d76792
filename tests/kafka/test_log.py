"""Reading a compacted topic to its end, whatever its last records are."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from headrace.connect.errors import RetriableError, TaskFailedError
from headrace.kafka.admin import KafkaAdmin
from headrace.kafka.client_config import client_config, producer_config
from headrace.kafka.client_sender import make_sender
from headrace.kafka.compacted_topic import CompactedLog, LogRecord
from headrace.kafka.deadline import Deadline
from headrace.kafka.sender import Sender
from headrace.kafka.topic_partition import TopicPartition
from headrace.kafka.wire.cluster import Cluster
from headrace.kafka.wire.fetcher import (
    FetchedRecords,
    Fetcher,
    FetchRange,
    FetchSettings,
    UnfetchableError,
)
from waiting import until

pytestmark = pytest.mark.broker

ENTRIES = [(b"key %d" % number, b"value") for number in range(9)]


@pytest.fixture
def log_sender(bootstrap: str, compacted_topic: str) -> Iterator[Callable[[str], Sender]]:
    """Opens senders with a transaction begun."""
    opened: list[Sender] = []

    def open_one(name: str) -> Sender:
        config = producer_config(
            {"bootstrap.servers": bootstrap}, transactional_id=f"{compacted_topic}-{name}"
        )
        opened.append(make_sender(config))
        opened[-1].open()
        opened[-1].begin()
        return opened[-1]

    yield open_one
    for sender in opened:
        sender.close()


@pytest.fixture
def seen() -> list[LogRecord]:
    """What has been handed over."""
    return []


@pytest.fixture
def log(bootstrap: str, compacted_topic: str, seen: list[LogRecord]) -> Iterator[CompactedLog]:
    """A reader that adds to what was seen."""
    reading = CompactedLog(
        compacted_topic, client_config({"bootstrap.servers": bootstrap}), on_record=seen.append
    )
    yield reading
    reading.close()


def keys(seen: list[LogRecord]) -> list[bytes | None]:
    """The keys alone, sorted."""
    return sorted(record.key or b"" for record in seen)


def test_an_empty_topic_ends_at_once(log: CompactedLog, seen: list[LogRecord]) -> None:
    """Nothing to read needs no waiting, not even the consumer's start."""
    log.read_to_end(Deadline.after(10))

    assert [] == seen


def test_connections_that_deliver_nothing_are_replaced(
    bootstrap: str,
    compacted_topic: str,
    seen: list[LogRecord],
    log_sender: Callable[[str], Sender],
) -> None:
    """Within a request's time, by one that goes on where the first one was, with nothing twice."""
    opened = list[Fetcher]()

    def remembered(cluster: Cluster, ranges: list[FetchRange], settings: FetchSettings) -> Fetcher:
        opened.append(Fetcher(cluster, ranges, settings))
        return opened[-1]

    def write(entries: Sequence[tuple[bytes, bytes]], sender: Sender) -> None:
        sender.send_offsets(compacted_topic, entries)
        sender.commit()

    config = client_config({"bootstrap.servers": bootstrap})
    reading = CompactedLog(compacted_topic, config, on_record=seen.append, fetcher=remembered)
    try:
        write(ENTRIES[:4], log_sender("one"))
        reading.read_to_end(Deadline.after(10))
        opened[0].remove(list(opened[0].positions))
        write(ENTRIES[4:], log_sender("two"))

        reading.read_to_end(Deadline.after(10))
    finally:
        reading.close()

    assert [key for key, _ in ENTRIES] == keys(seen)
    assert 2 == len(opened)


def test_a_control_marker_at_the_end_does_not_hang(
    log: CompactedLog,
    seen: list[LogRecord],
    compacted_topic: str,
    log_sender: Callable[[str], Sender],
) -> None:
    """A commit marker is the last thing in the log and is never delivered."""
    sender = log_sender("one")
    sender.send_offsets(compacted_topic, ENTRIES)
    sender.commit()
    log.read_to_end(Deadline.after(10))

    assert sorted(key for key, _ in ENTRIES) == keys(seen)


def test_an_aborted_transaction_at_the_end_does_not_hang(
    log: CompactedLog,
    seen: list[LogRecord],
    compacted_topic: str,
    log_sender: Callable[[str], Sender],
) -> None:
    """Its records are passed without being seen, at the start and while following."""
    sender = log_sender("one")
    for _ in range(2):
        sender.send_offsets(compacted_topic, ENTRIES)
        sender.flush()
        sender.abort()
        log.read_to_end(Deadline.after(10))
        sender.begin()

    assert [] == seen


def test_another_open_transaction_is_waited_for(
    log: CompactedLog,
    seen: list[LogRecord],
    compacted_topic: str,
    log_sender: Callable[[str], Sender],
) -> None:
    """What was committed behind it is not missed: the read fails in time and goes well afterwards."""
    blocker, sender = log_sender("blocker"), log_sender("one")
    blocker.send_offsets(compacted_topic, [(b"blocker %d" % number, b"") for number in range(9)])
    blocker.flush()
    sender.send_offsets(compacted_topic, ENTRIES)
    sender.commit()
    with pytest.raises(RetriableError, match=compacted_topic):
        log.read_to_end(Deadline.after(1.5))
    assert [] == seen
    blocker.abort()
    log.read_to_end(Deadline.after(10))

    assert sorted(key for key, _ in ENTRIES) == keys(seen)


def test_following_sees_each_record_once(
    log: CompactedLog,
    seen: list[LogRecord],
    compacted_topic: str,
    log_sender: Callable[[str], Sender],
) -> None:
    """Each read hands over what is new, in the order of each partition."""
    sender = log_sender("one")
    for number in range(5):
        sender.send_offsets(compacted_topic, [(b"key", b"%d" % number)])
        sender.commit()
        log.read_to_end(Deadline.after(10))
        sender.begin()

    assert [b"0", b"1", b"2", b"3", b"4"] == [record.value for record in seen]


def test_what_arrives_is_handed_over_without_asking_for_the_end(
    log: CompactedLog,
    seen: list[LogRecord],
    compacted_topic: str,
    log_sender: Callable[[str], Sender],
) -> None:
    """Committed records alone; nothing before the first read."""
    sender = log_sender("one")
    sender.send_offsets(compacted_topic, ENTRIES)
    sender.commit()
    log.take_arrived()
    assert [] == seen
    log.read_to_end(Deadline.after(10))

    def arrived(count: int) -> bool:
        log.take_arrived()
        return len(seen) == count

    for count in (2, 3):
        sender.begin()
        sender.send_offsets(compacted_topic, ENTRIES)
        sender.flush()
        log.take_arrived()
        assert (count - 1) * len(ENTRIES) == len(seen)
        sender.commit()
        until(lambda count=count: arrived(count * len(ENTRIES)))


def made_again(bootstrap: str, topic: str) -> None:
    """Another topic of that name in its place."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.delete_topics([topic])[topic].result(20)
    until(lambda: topic not in admin.list_topics(timeout=10).topics)
    made = NewTopic(topic, 3, 1, config={"cleanup.policy": "compact"})
    admin.create_topics([made])[topic].result(20)


def test_another_topic_of_the_same_name_is_refused_each_time(
    bootstrap: str,
    log: CompactedLog,
    compacted_topic: str,
    log_sender: Callable[[str], Sender],
) -> None:
    """Offsets of the one that was deleted mean nothing in it, although there are as many."""

    def write(name: str) -> None:
        sender = log_sender(name)
        sender.send_offsets(compacted_topic, ENTRIES)
        sender.commit()

    def is_refused() -> bool:
        try:
            log.take_arrived()
        except TaskFailedError as error:
            return "is not the one that was read before" in str(error)
        return False

    write("one")
    log.read_to_end(Deadline.after(10))
    made_again(bootstrap, compacted_topic)
    write("two")

    until(is_refused)
    assert is_refused()


def test_who_waits_may_ask_while_the_connections_are_replaced(
    bootstrap: str, compacted_topic: str
) -> None:
    """It is another thread than the one that reads; between two connections there is nothing to wait for."""
    opened = list[Fetcher]()

    def remembered(cluster: Cluster, ranges: list[FetchRange], settings: FetchSettings) -> Fetcher:
        opened.append(Fetcher(cluster, ranges, settings))
        return opened[-1]

    config = client_config({"bootstrap.servers": bootstrap})
    with closing(
        CompactedLog(compacted_topic, config, on_record=lambda _: None, fetcher=remembered)
    ) as log:
        assert log.descriptor is None
        log.read_to_end(Deadline.after(10))
        assert opened[0].fileno() == log.descriptor
        opened[0].close()

        assert log.descriptor is None


def test_what_is_not_handed_out_is_asked_for_again(
    bootstrap: str,
    compacted_topic: str,
    seen: list[LogRecord],
    log_sender: Callable[[str], Sender],
) -> None:
    """Each call says so, such as while a right is missing: otherwise it would look as if nothing came."""
    refusing = threading.Event()

    class Refused(Fetcher):
        """Is asked for nothing any more after what it has raised."""

        def poll(self, deadline: Deadline) -> list[FetchedRecords]:
            if refusing.is_set() and self.positions:
                self.remove(list(self.positions))
                place = TopicPartition(compacted_topic, 0)
                raise UnfetchableError(place, 0, "This client may not read.")
            return super().poll(deadline)

    def has_arrived() -> bool:
        log.take_arrived()
        return len(seen) == len(ENTRIES)

    refusing.set()
    sender = log_sender("one")
    sender.send_offsets(compacted_topic, ENTRIES)
    sender.commit()
    config = client_config({"bootstrap.servers": bootstrap})
    with closing(
        CompactedLog(compacted_topic, config, on_record=seen.append, fetcher=Refused)
    ) as log:
        for read in (
            lambda: log.read_to_end(Deadline.after(10)),
            log.take_arrived,
            log.take_arrived,
        ):
            with pytest.raises(UnfetchableError, match="may not read"):
                read()
        refusing.clear()

        until(has_arrived)


def test_a_missing_topic_fails(bootstrap: str) -> None:
    """It is not created by reading it."""
    config = client_config({"bootstrap.servers": bootstrap})
    reading = CompactedLog("kafka-tests-missing", config, on_record=lambda _: None)
    with pytest.raises(TaskFailedError, match="kafka-tests-missing"):
        reading.read_to_end(Deadline.after(10))
    reading.close()

    assert not KafkaAdmin(config).exists("kafka-tests-missing", Deadline.after(10))
