"""Records that the broker does not take: which one is to blame, and which topic."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from functools import partial
from typing import cast

import pyarrow as pa
import pytest
from confluent_kafka import KafkaError, KafkaException, Producer
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)

from headrace.broker import Broker
from headrace.connect.errors import TaskFailedError
from headrace.kafka.client_config import producer_config
from headrace.kafka.client_sender import ClientSender, make_sender
from headrace.kafka.deadline import Deadline
from headrace.kafka.errors import Context, LateRefusalError, translated
from headrace.kafka.producer import TrackedProducer, Undelivered
from headrace.kafka.sender import EncodedRecords, Sender, TooLargeError
from headrace.kafka.wire_sender import WireSender, make_wire_sender

INNOCENT = "_INVALID_DIFFERENT_RECORD"


def lost(name: str, value_bytes: int | None = 1) -> Undelivered:
    """A record that failed with the client's error of that name."""
    error = KafkaError(getattr(KafkaError, name))
    return Undelivered(error=error, topic="t", key_bytes=None, value_bytes=value_bytes)


def test_a_partition_that_lacks_after_all_is_reported() -> None:
    """The topic may have been made again with fewer of them since it was asked for."""
    error = KafkaError(KafkaError._UNKNOWN_PARTITION)
    late = Undelivered(error=error, topic="t", key_bytes=None, value_bytes=1, partition=7)

    told = str(translated(error, Context(doing=late.doing, topic=late.topic)))

    assert told.startswith("Kafka refused writing to partition 7 of topic 't': ")
    assert "writing to" == lost("INVALID_RECORD").doing


@pytest.mark.parametrize(
    ("first", "later", "expected"),
    [
        (lost("MSG_SIZE_TOO_LARGE", 5), lost("MSG_SIZE_TOO_LARGE", 9), True),
        (lost("MSG_SIZE_TOO_LARGE", 9), lost("MSG_SIZE_TOO_LARGE", None), False),
        (lost("MSG_SIZE_TOO_LARGE", 5), lost("INVALID_RECORD", 9), False),
        (lost(INNOCENT), lost("INVALID_RECORD"), True),
        (lost(INNOCENT), lost(INNOCENT), False),
        (lost("INVALID_RECORD", 5), lost("INVALID_RECORD", 9), False),
        (lost("TOPIC_AUTHORIZATION_FAILED", 5), lost("MSG_SIZE_TOO_LARGE", 9), False),
    ],
)
def test_the_record_to_blame_is_not_always_the_first(
    first: Undelivered,
    later: Undelivered,
    expected: bool,  # noqa: FBT001
) -> None:
    """A request fails as a whole: its largest record is named, or the one that is said to be invalid."""
    assert expected is first.is_less_specific_than(later)


@pytest.mark.parametrize("name", ["TOPIC_AUTHORIZATION_FAILED", "_MSG_TIMED_OUT", INNOCENT])
def test_what_would_befall_any_record_is_no_refusal_of_one(name: str) -> None:
    """It is told of the topic."""
    assert lost(name).refusal() is None


def test_a_refusal_survives_pickling() -> None:
    """It travels from Spark's processes to the driver."""
    told = lost("MSG_SIZE_TOO_LARGE", 7).refusal()
    again = pickle.loads(pickle.dumps(told))

    assert str(told) == str(again)
    assert 7 == again.value_bytes


# ------------------------------------------------------------------ on a broker that refuses


def denied(topic: str, operation: AclOperation) -> AclBinding:
    """The rule that no one may do that with *topic*."""
    return AclBinding(
        ResourceType.TOPIC,
        topic,
        ResourcePatternType.LITERAL,
        "User:ANONYMOUS",
        "*",
        operation,
        AclPermissionType.DENY,
    )


def described(topic: str) -> AclBinding:
    """The rule that *topic* may be seen."""
    return AclBinding(
        ResourceType.TOPIC,
        topic,
        ResourcePatternType.LITERAL,
        "User:ANONYMOUS",
        "*",
        AclOperation.DESCRIBE,
        AclPermissionType.ALLOW,
    )


@pytest.fixture(scope="module")
def strict(refusing_broker: Broker) -> str:
    """A strict broker with a topic of small records, one to look at and one to know nothing of."""
    bootstrap = refusing_broker.start().bootstrap
    admin = AdminClient({"bootstrap.servers": bootstrap})
    topics = [
        NewTopic("small", 1, 1, config={"max.message.bytes": "10000"}),
        NewTopic("readable", 1, 1),
        NewTopic("hidden", 1, 1),
    ]
    for made in admin.create_topics(topics).values():
        made.result()
    rules = [
        denied("readable", AclOperation.WRITE),
        described("readable"),
        denied("hidden", AclOperation.ALL),
    ]
    for made in admin.create_acls(rules).values():
        made.result()
    return bootstrap


@pytest.fixture(params=[make_sender, make_wire_sender], ids=["client", "wire"])
def make(request: pytest.FixtureRequest) -> Callable[..., Sender]:
    """Makes senders of either kind."""
    return request.param


@pytest.fixture(params=["tx", None], ids=["transactional", "idempotent"])
def sender(
    strict: str, make: Callable[..., Sender], request: pytest.FixtureRequest
) -> Iterator[Sender]:
    """A sender to that broker."""
    config = producer_config({"bootstrap.servers": strict}, transactional_id=request.param)
    made = make(config)
    made.open()
    made.begin()
    yield made
    made.close()


def sent_and_ended(sender: Sender, topic: str, *values: bytes) -> None:
    """Send *values* and wait for the broker's word."""
    sender.send(EncodedRecords(topic=topic, values=pa.array(values, pa.binary())))
    sender.commit()


@pytest.mark.broker
@pytest.mark.timeout(25)
def test_a_missing_topic_is_reported_within_seconds(sender: Sender) -> None:
    """Half a minute of silence is what the client does by itself."""
    with pytest.raises(TaskFailedError, match=r"'missing'.*Create the topic"):
        sent_and_ended(sender, "missing", b"1")


@pytest.mark.broker
@pytest.mark.parametrize("topic", ["readable", "hidden"])
def test_a_topic_that_may_not_be_written_is_named(sender: Sender, topic: str) -> None:
    """Also where the client says only that the transaction failed."""
    with pytest.raises(TaskFailedError, match=f"{topic}.*Grant this client Write"):
        sent_and_ended(sender, topic, b"1")


@pytest.mark.broker
def test_the_record_that_is_too_large_for_the_topic_is_reported_by_its_size(sender: Sender) -> None:
    """Those that were sent with it are not blamed. Our own wire knows the limit, and names the row before it sends anything."""
    with pytest.raises((LateRefusalError, TooLargeError), match=r"max\.message\.bytes") as caught:
        sent_and_ended(sender, "small", b"1", b"x" * 20_000, b"2")

    told = caught.value
    assert "'small'" in str(told)
    if isinstance(sender, WireSender):
        assert isinstance(told, TooLargeError)
        assert told.row == 1
    else:
        assert isinstance(told, LateRefusalError)
        assert "20000 B " in str(told)
        assert ("small", None, 20_000) == (told.topic, told.key_bytes, told.value_bytes)


class KnowingClient:
    """A client that knows already that the topic may not be written, and says so at the door."""

    def produce(self, *_: object, **__: object) -> None:
        """Refuse it."""
        raise KafkaException(KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED))

    def poll(self, _: float) -> int:
        """Nothing has happened."""
        return 0


def test_what_the_client_knows_before_is_not_blamed_on_the_record() -> None:
    """Every record would be refused, so passing over one, and then the next, would lose them all."""
    config = producer_config({"bootstrap.servers": "127.0.0.1:1"}, transactional_id=None)
    producer = TrackedProducer(config)
    producer.raw = cast("Producer", KnowingClient())
    sender = ClientSender(
        producer,
        opening=partial(Deadline.after, 1.0),
        max_bytes=1_000,
        is_transactional=False,
        reports_metadata=False,
        partitions_as_java=True,
    )

    with pytest.raises(TaskFailedError, match=r"'hidden'.*Grant this client Write"):
        sender.send(EncodedRecords(topic="hidden", values=pa.array([b"1"], pa.binary())))
