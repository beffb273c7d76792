"""Topics for state, and a cluster that answers or does not."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Future
from itertools import chain, repeat
from types import SimpleNamespace

import pyarrow as pa
import pytest

from headrace.connect.errors import ConfigError, RetriableError, TaskFailedError
from headrace.kafka.admin import CompactedTopic, KafkaAdmin
from headrace.kafka.client_config import client_config, producer_config
from headrace.kafka.client_sender import make_sender
from headrace.kafka.deadline import Deadline
from headrace.kafka.sender import EncodedRecords
from waiting import until

pytestmark = pytest.mark.broker


@pytest.fixture
def kafka_admin(bootstrap: str) -> KafkaAdmin:
    """An admin client of the shared broker."""
    return KafkaAdmin(client_config({"bootstrap.servers": bootstrap}))


def test_a_compacted_topic_is_made_once(kafka_admin: KafkaAdmin, compacted_topic: str) -> None:
    """A topic that is there already is left as it is."""
    wanted = CompactedTopic(name=compacted_topic, partitions=7, replication=1)

    assert kafka_admin.ensure_compacted_topic(wanted, Deadline.after(10)) is False
    assert [0, 1, 2] == kafka_admin.partitions(compacted_topic, Deadline.after(10))


def test_a_topic_that_forgets_is_refused(kafka_admin: KafkaAdmin, new_topic: str) -> None:
    """The sentence is Kafka Connect's."""
    with pytest.raises(ConfigError) as caught:
        kafka_admin.ensure_compacted_topic(CompactedTopic(name=new_topic), Deadline.after(10))

    [(key, sentence)] = caught.value.problems
    assert "offset.storage.topic" == key
    assert sentence.startswith(
        f"Topic '{new_topic}' supplied via the 'offset.storage.topic' property is required to have "
        "'cleanup.policy=compact' to guarantee consistency and durability of source connector offsets, "
        "but found the topic currently has 'cleanup.policy=delete'."
    )


def test_a_topic_in_whose_order_much_lies_has_one_partition(
    kafka_admin: KafkaAdmin, compacted_topic: str
) -> None:
    """The sentence is Kafka Connect's."""
    wanted = CompactedTopic(
        name=compacted_topic,
        setting="config.storage.topic",
        keeps="connector configurations",
        order=True,
    )

    with pytest.raises(ConfigError) as caught:
        kafka_admin.ensure_compacted_topic(wanted, Deadline.after(10))

    sentence = (
        f"Topic '{compacted_topic}' supplied via the 'config.storage.topic' property is required to have a single partition in "
        "order to guarantee consistency of connector configurations, but found 3 partitions."
    )
    assert [("config.storage.topic", sentence)] == list(caught.value.problems)


def test_a_plain_topic_is_made_once(kafka_admin: KafkaAdmin, new_topic: str) -> None:
    """One that is there is left as it is."""
    name = f"{new_topic}-plain"

    made = [
        kafka_admin.ensure_topic(name, Deadline.after(10), partitions=partitions, replication=1)
        for partitions in (2, 3)
    ]

    assert [True, False] == made
    # The controller may know a topic a moment before the broker that is asked.
    until(lambda: kafka_admin.exists(name, Deadline.after(10)))
    assert [0, 1] == kafka_admin.partitions(name, Deadline.after(10))


def test_a_topic_may_have_the_brokers_own_numbers(kafka_admin: KafkaAdmin, new_topic: str) -> None:
    """-1 asks for them, as topic.creation.* may say."""
    name = f"{new_topic}-own"

    kafka_admin.ensure_topic(name, Deadline.after(10), partitions=-1, replication=-1)

    until(lambda: kafka_admin.exists(name, Deadline.after(10)))
    assert [0] == kafka_admin.partitions(name, Deadline.after(10))


def test_a_topic_that_a_broker_does_not_know_yet_exists(
    kafka_admin: KafkaAdmin, new_topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only the controller knows of it yet: it is waited for, neither made again nor an error."""
    answers = iter([False, False, True, False])
    monkeypatch.setattr(kafka_admin, "exists", lambda _topic, _deadline: next(answers))

    made = [
        kafka_admin.ensure_topic(
            f"{new_topic}-new", Deadline.after(10), partitions=1, replication=1
        )
        for _ in range(2)
    ]

    assert [True, False] == made


def test_a_missing_topic_is_not_made_by_asking(kafka_admin: KafkaAdmin) -> None:
    """Not even on a broker that makes topics for whoever asks."""
    assert not kafka_admin.exists("kafka-tests-nowhere", Deadline.after(10))
    with pytest.raises(TaskFailedError, match="Create the topic"):
        kafka_admin.end_offsets("kafka-tests-nowhere", Deadline.after(10))
    assert not kafka_admin.exists("kafka-tests-nowhere", Deadline.after(10))


def test_the_end_counts_open_transactions(
    kafka_admin: KafkaAdmin, bootstrap: str, new_topic: str
) -> None:
    """The end is that of the log, not the one that committed readers see."""
    config = producer_config({"bootstrap.servers": bootstrap}, transactional_id=new_topic)
    sender = make_sender(config)
    sender.open()
    sender.begin()
    sender.send(EncodedRecords(topic=new_topic, values=pa.array([b"1", b"2"]), partition=1))
    sender.flush()

    assert {0: 0, 1: 2, 2: 0} == kafka_admin.end_offsets(new_topic, Deadline.after(10))
    sender.abort()
    sender.close()


def test_a_replication_that_the_cluster_cannot_hold_is_reported(kafka_admin: KafkaAdmin) -> None:
    """No retry mends it."""
    wanted = CompactedTopic(name="kafka-tests-replicated", partitions=1, replication=3)
    with pytest.raises(TaskFailedError, match="replication"):
        kafka_admin.ensure_compacted_topic(wanted, Deadline.after(10))


def test_a_cluster_has_an_id(kafka_admin: KafkaAdmin) -> None:
    """A cluster that answers says who it is."""
    assert kafka_admin.check_reachable(Deadline.after(10))


def test_a_cluster_that_is_away_is_reported_at_the_deadline() -> None:
    """The sentence is Kafka Connect's."""
    away = KafkaAdmin(client_config({"bootstrap.servers": "127.0.0.1:1"}))
    with pytest.raises(RetriableError, match="Failed to connect to and describe Kafka cluster"):
        away.check_reachable(Deadline.after(1))


def test_what_is_not_answered_is_reported_with_the_reason() -> None:
    """That it took too long alone helps no one to find out why."""
    away = KafkaAdmin(client_config({"bootstrap.servers": "127.0.0.1:1"}))
    with pytest.raises(RetriableError, match=r"'t' in time: .*Connection refused\.$"):
        away.end_offsets("t", Deadline.after(1))


@pytest.mark.parametrize("answered", [True, False])
def test_an_end_that_the_broker_has_not_answered_is_asked_for_again(
    kafka_admin: KafkaAdmin, monkeypatch: pytest.MonkeyPatch, *, answered: bool
) -> None:
    """The client gives -1001 and no error, as after a stop of the process; taken for an end, the topic had shrunk."""
    offsets = chain([-1001], [7] if answered else [], repeat(-1001))

    class Answers:
        """What the client would give."""

        def list_offsets(self, asked: Mapping[object, object], **_: object) -> object:
            """The next of the offsets."""
            future: Future[object] = Future()
            future.set_result(SimpleNamespace(offset=next(offsets)))
            return dict.fromkeys(asked, future)

        def poll(self, _: float) -> int:
            """Nothing more."""
            return 0

    monkeypatch.setattr(kafka_admin, "partitions", lambda _topic, _deadline: [0])
    monkeypatch.setattr(kafka_admin, "_client", Answers())
    if answered:
        assert {0: 7} == kafka_admin.end_offsets("t", Deadline.after(20))
    else:
        with pytest.raises(RetriableError, match="the end of"):
            kafka_admin.end_offsets("t", Deadline.after(0.5))
