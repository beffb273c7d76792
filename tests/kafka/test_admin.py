"""Topics for state, and a cluster that answers or does not."""

from __future__ import annotations

import logging
from concurrent.futures import Future
from dataclasses import replace
from uuid import uuid4

import pytest
from confluent_kafka import KafkaError, KafkaException

from headrace.config.internal_topics import CONFIGS
from headrace.connect.errors import ConfigError, RetriableError, TaskFailedError
from headrace.kafka.admin import CompactedTopic, KafkaAdmin
from headrace.kafka.client_config import client_config
from headrace.kafka.deadline import Deadline
from headrace.kafka.topic_admin import TopicAdmin
from waiting import until

pytestmark = pytest.mark.broker


@pytest.fixture
def kafka_admin(bootstrap: str) -> KafkaAdmin:
    """An admin client of the shared broker."""
    return KafkaAdmin(client_config({"bootstrap.servers": bootstrap}))


@pytest.fixture
def topic_admin(bootstrap: str) -> TopicAdmin:
    """One that also changes topics."""
    return TopicAdmin(client_config({"bootstrap.servers": bootstrap}))


def test_a_compacted_topic_is_made_once(kafka_admin: KafkaAdmin, compacted_topic: str) -> None:
    """A topic that is there already is left as it is."""
    wanted = CompactedTopic(name=compacted_topic, partitions=7, replication=1)

    assert kafka_admin.ensure_compacted_topic(wanted, Deadline.after(10)) is False
    assert [0, 1, 2] == kafka_admin.partitions(compacted_topic, Deadline.after(10))


def test_a_setting_that_the_broker_refuses_is_named_as_it_was_given(
    kafka_admin: KafkaAdmin,
) -> None:
    """The broker knows only what follows the prefix, and the user has misspelt it."""
    props = {"config.storage.topc": "b", "config.storage.max.message.bytes": "1000000"}
    topic = CONFIGS.described(props, name=f"refused-{uuid4().hex}", partitions=1, replication=1)

    with pytest.raises(TaskFailedError) as caught:
        kafka_admin.ensure_compacted_topic(topic, Deadline.after(10))

    assert "Unknown topic config name: topc" in str(caught.value)
    assert str(caught.value).endswith("The worker's configuration sets config.storage.topc.")


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


def internal(name: str, **given: object) -> CompactedTopic:
    """The topic of connectors' configurations."""
    return replace(
        CompactedTopic(
            name=name,
            partitions=1,
            replication=1,
            setting="config.storage.topic",
            keeps="connector configurations",
            is_single=True,
        ),
        **given,  # type: ignore[arg-type]
    )


def test_an_internal_topic_gets_its_settings_and_is_compacted_whatever_they_say(
    topic_admin: TopicAdmin, new_topic: str
) -> None:
    """One of them that brokers do not know is refused with its name."""
    settings = {"cleanup.policy": "delete", "segment.bytes": "2097152"}
    topic = internal(f"{new_topic}-internal", settings=settings)

    assert topic_admin.ensure_compacted_topic(topic, Deadline.after(20))
    assert not topic_admin.ensure_compacted_topic(topic, Deadline.after(20))
    found = topic_admin.topic_configs([topic.name], Deadline.after(10)).found[topic.name]
    assert ("compact", "2097152") == (found["cleanup.policy"].value, found["segment.bytes"].value)
    assert [0] == topic_admin.partitions(topic.name, Deadline.after(10))
    wrong = internal(f"{new_topic}-wrong", settings={"segment.bites": "1"})
    with pytest.raises(TaskFailedError, match=r"segment\.bites"):
        topic_admin.ensure_compacted_topic(wrong, Deadline.after(20))


@pytest.mark.parametrize("policy", ["delete", "compact,delete", "delete,compact"])
def test_a_topic_of_which_others_change_the_policy_fails_the_next_check(
    topic_admin: TopicAdmin, new_topic: str, policy: str
) -> None:
    """In Kafka Connect's words, until it is compacted again."""
    topic = internal(f"{new_topic}-checked")
    topic_admin.ensure_compacted_topic(topic, Deadline.after(20))
    topic_admin.check_compacted_topic(topic, Deadline.after(10))

    topic_admin.set_topic_configs({topic.name: {"cleanup.policy": policy}}, Deadline.after(10))
    until(lambda: refusal(topic_admin, topic))
    shown = "delete" if policy == "delete" else "compact,delete"
    assert refusal(topic_admin, topic) == (
        f"Topic '{topic.name}' supplied via the 'config.storage.topic' property is required to have "
        "'cleanup.policy=compact' to guarantee consistency and durability of connector configurations, but found the topic "
        f"currently has 'cleanup.policy={shown}'. Continuing would likely result in eventually losing connector "
        "configurations and problems restarting this Connect cluster in the future. Change the 'config.storage.topic' property "
        "in the Connect worker configurations to use a topic with 'cleanup.policy=compact'."
    )

    topic_admin.set_topic_configs({topic.name: {"cleanup.policy": "compact"}}, Deadline.after(10))
    until(lambda: refusal(topic_admin, topic) is None)


def refusal(admin: KafkaAdmin, topic: CompactedTopic) -> str | None:
    """What a check finds."""
    try:
        admin.check_compacted_topic(topic, Deadline.after(10))
    except ConfigError as error:
        [(key, sentence)] = error.problems
        assert topic.setting == key
        return sentence
    return None


def test_a_topic_of_configurations_has_one_partition(
    topic_admin: TopicAdmin, compacted_topic: str
) -> None:
    """In Kafka Connect's words; one that is made is made so, and more may be added later."""
    with pytest.raises(ConfigError) as refused:
        topic_admin.ensure_compacted_topic(internal(compacted_topic), Deadline.after(20))
    [(key, sentence)] = refused.value.problems
    assert "config.storage.topic" == key
    assert sentence == (
        f"Topic '{compacted_topic}' supplied via the 'config.storage.topic' property is required to have a single "
        "partition in order to guarantee consistency of connector configurations, but found 3 partitions."
    )

    topic = internal(f"{compacted_topic}-single")
    topic_admin.ensure_compacted_topic(topic, Deadline.after(20))
    topic_admin.grow({topic.name: 2}, Deadline.after(10))
    until(lambda: "found 2 partitions" in str(refusal(topic_admin, topic)))


def test_a_topic_whose_settings_may_not_be_read_will_do(
    kafka_admin: KafkaAdmin,
    compacted_topic: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """It is logged, in Kafka Connect's words."""
    denied: Future[object] = Future()
    denied.set_exception(KafkaException(KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED)))

    class Denied:
        """The client, without a right."""

        def __init__(self, client: object) -> None:
            self._client = client

        def describe_configs(self, asked: list[object], **_: object) -> object:
            """Refused."""
            return dict.fromkeys(asked, denied)

        def __getattr__(self, name: str) -> object:
            return getattr(self._client, name)

    monkeypatch.setattr(kafka_admin, "_client", Denied(kafka_admin._client))
    with caplog.at_level(logging.INFO):
        kafka_admin.ensure_compacted_topic(
            internal(compacted_topic, is_single=False), Deadline.after(20)
        )

    [logged] = caplog.messages
    assert logged == (
        f"Unable to use admin client to verify the cleanup policy of '{compacted_topic}' topic is 'compact', either because "
        "the broker is an older version or because the Kafka principal used for Connect internal topics does not have the "
        "required permission to describe topic configurations."
    )


def test_a_topic_that_is_gone_fails_the_next_check(topic_admin: TopicAdmin, new_topic: str) -> None:
    """And is not taken for one that may not be described."""
    with pytest.raises(TaskFailedError, match=f"{new_topic}-gone"):
        topic_admin.check_compacted_topic(internal(f"{new_topic}-gone"), Deadline.after(10))


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
    answers = iter([False, False, True, False, True])
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
        kafka_admin.partitions("kafka-tests-nowhere", Deadline.after(10))
    assert not kafka_admin.exists("kafka-tests-nowhere", Deadline.after(10))


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
        away.partitions("t", Deadline.after(1))
