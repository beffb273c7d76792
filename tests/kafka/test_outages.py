"""What senders and readers do while a broker is away, and when a transaction outlives its time."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import closing

import pyarrow as pa
import pytest

from headrace.broker import Broker
from headrace.connect.errors import RetriableError, StaleTokenError, TransactionTimedOutError
from headrace.kafka.admin import CompactedTopic, KafkaAdmin
from headrace.kafka.client_config import client_config, producer_config
from headrace.kafka.client_sender import make_sender
from headrace.kafka.compacted_topic import CompactedLog, LogRecord
from headrace.kafka.deadline import Deadline
from headrace.kafka.sender import EncodedRecords, Sender
from headrace.kafka.topic_partition import TopicPartition
from headrace.kafka.wire.cluster import LATEST, Cluster
from headrace.kafka.wire.settings import wire_settings
from headrace.kafka.wire_sender import make_wire_sender
from headrace.testing.judge import committed_records
from waiting import until

pytestmark = [pytest.mark.broker, pytest.mark.kill]

Making = Callable[..., Sender]
ENTRIES = [(b"key %d" % number, b"value") for number in range(9)]


@pytest.fixture(params=[make_sender, make_wire_sender], ids=["client", "wire"])
def make(request: pytest.FixtureRequest) -> Making:
    """Makes senders of either kind."""
    return request.param


def opened(broker: Broker, name: str, make: Making = make_sender, **options: object) -> Sender:
    """An opened transactional sender."""
    config = producer_config({"bootstrap.servers": broker.bootstrap}, transactional_id=name)
    sender = make(config, **options)
    sender.open()
    return sender


def records(topic: str, count: int) -> EncodedRecords:
    """A batch of numbers."""
    return EncodedRecords(topic=topic, values=pa.array([b"%d" % one for one in range(count)]))


def followed(broker: Broker, topic: str) -> tuple[CompactedLog, list[LogRecord]]:
    """A reader of a new compacted topic, and what it has seen."""
    admin = KafkaAdmin(client_config({"bootstrap.servers": broker.bootstrap}))
    wanted = CompactedTopic(name=topic, partitions=2, replication=1)
    admin.ensure_compacted_topic(wanted, Deadline.after(20))
    seen: list[LogRecord] = []
    config = client_config({"bootstrap.servers": broker.bootstrap})
    return CompactedLog(topic, config, on_record=seen.append), seen


def test_a_reader_survives_a_restart(broker: Broker) -> None:
    """While the broker is away reading fails at its deadline; then it goes on where it was."""
    log, seen = followed(broker, "followed")
    sender = opened(broker, "followed")
    sender.begin()
    sender.send_offsets("followed", ENTRIES)
    sender.commit()
    log.read_to_end(Deadline.after(10))
    broker.kill()
    with pytest.raises(RetriableError, match="followed"):
        log.read_to_end(Deadline.after(1))
    broker.start()
    sender.begin()
    sender.send_offsets("followed", ENTRIES)
    sender.commit()
    log.read_to_end(Deadline.after(30))

    assert 2 * len(ENTRIES) == len(seen)
    sender.close()
    log.close()


def test_a_commit_waits_out_a_restart(broker: Broker, make: Making) -> None:
    """The broker comes back while the commit is told to be waiting; nothing is lost, nothing twice."""
    name = f"waited-{make.__name__}"
    told: list[str] = []

    def started(what: str) -> None:
        told.append(what)
        broker.start()

    log, seen = followed(broker, name)
    sender = opened(broker, name, make, waiting=started)
    sender.begin()
    sender.send_offsets(name, ENTRIES)
    broker.kill()
    sender.commit()
    log.read_to_end(Deadline.after(30))

    assert told
    assert sorted(key for key, _ in ENTRIES) == sorted(record.key or b"" for record in seen)
    sender.close()
    log.close()


def test_closing_does_not_wait_for_a_broker_that_is_away(broker: Broker, make: Making) -> None:
    """A slot whose token was withdrawn ends at once, whatever is in its queue."""
    name = f"closed-{make.__name__}"

    def withdrawn(what: str) -> None:
        if "commit" in what or "acknowledged" in what:
            raise StaleTokenError("withdrawn")

    sender = opened(broker, name, make, waiting=withdrawn)
    sender.begin()
    sender.send(records(name, 1000))
    broker.kill()
    with pytest.raises(StaleTokenError):
        sender.commit()
    started = time.monotonic()
    sender.abort()
    sender.close()
    took = time.monotonic() - started
    broker.start()

    assert took < 1


def test_a_transaction_that_outlived_its_time_is_reported_as_such(
    broker: Broker, make: Making
) -> None:
    """To the client it looks like a newer owner; the advice is Kafka Connect's."""
    name = f"late-{make.__name__}"
    config = producer_config(
        {"bootstrap.servers": broker.bootstrap, "transaction.timeout.ms": "1000"},
        transactional_id=name,
    )
    sender = make(config, owner="task c-0")
    sender.open()
    sender.begin()
    sender.send(records(name, 1))
    sender.flush()
    deadline, place = Deadline.after(30), TopicPartition(name, 0)
    settings = client_config({"bootstrap.servers": broker.bootstrap}).settings
    with closing(Cluster(wire_settings(settings))) as cluster:
        # The broker's abort marker is the second thing in the log.
        until(lambda: cluster.list_offsets({place: LATEST}, deadline)[place].offset == 2)

    with pytest.raises(
        TransactionTimedOutError, match="The task c-0 was unable to finish writing"
    ) as told:
        sender.commit()
    sender.abort()
    sender.close()

    assert not told.value.in_outage
    assert told.value.open_seconds > told.value.timeout_seconds == 1


def test_a_broker_that_does_not_answer_is_an_outage(broker: Broker, make: Making) -> None:
    """It keeps its connections, so the client says nothing of it; the transaction was late for that."""
    name = f"frozen-{make.__name__}"
    config = producer_config(
        {"bootstrap.servers": broker.bootstrap, "transaction.timeout.ms": "2000"},
        transactional_id=name,
    )
    sender = make(config)
    sender.open()
    sender.begin()
    sender.send(records(name, 1))
    sender.flush()
    broker.pause()
    try:
        with pytest.raises(TransactionTimedOutError) as told:
            sender.commit()
    finally:
        broker.resume()
    sender.close()

    assert told.value.in_outage


def test_a_topic_that_is_not_there_yet_when_the_broker_dies_is_no_missing_topic(
    broker: Broker,
) -> None:
    """The outage was longer than a missing topic is waited for; another producer makes it."""
    props = {
        "bootstrap.servers": broker.bootstrap,
        "topic.metadata.propagation.max.ms": "500",
    }
    sender = make_sender(producer_config(props, transactional_id="too-early"))
    sender.open()
    sender.begin()
    broker.kill()
    sender.send(records("not-yet", 3))
    away = threading.Timer(3.0, broker.start)
    away.start()
    with pytest.raises(RetriableError, match="during an outage"):
        sender.commit()
    away.join()
    sender.close()

    again = opened(broker, "too-early")
    again.begin()
    again.send(records("not-yet", 3))
    again.commit()
    again.close()
    assert 3 == len(list(committed_records(broker.bootstrap, "not-yet")))


def test_a_record_that_is_late_without_transactions_may_be_sent_again(
    broker: Broker, make: Making
) -> None:
    """Only a user's own limit ends the wait; no one knows then whether the broker has it, so no offset moves."""
    name = f"overdue-{make.__name__}"
    props = {"bootstrap.servers": broker.bootstrap, "delivery.timeout.ms": "1500"}
    sender = make(producer_config(props))
    sender.open()
    sender.send(records(name, 1))
    sender.flush()
    broker.kill()
    sender.send(records(name, 1))

    with pytest.raises(RetriableError, match=r"overdue"):
        sender.flush()
    sender.close()
    broker.start()
