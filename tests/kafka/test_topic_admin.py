"""Many topics at once, on a broker."""

from __future__ import annotations

import uuid

import pytest

from headrace.kafka.client_config import client_config
from headrace.kafka.deadline import Deadline
from headrace.kafka.topic_admin import TopicAdmin, WantedTopic
from waiting import until

pytestmark = pytest.mark.broker


@pytest.fixture
def admin(bootstrap: str) -> TopicAdmin:
    """A client of the shared broker."""
    return TopicAdmin(client_config({"bootstrap.servers": bootstrap}))


@pytest.fixture
def name() -> str:
    """What topics of the test begin with."""
    return f"admin-{uuid.uuid4().hex[:8]}"


def soon() -> Deadline:
    """Time enough."""
    return Deadline.after(20)


def topic(name: str, partitions: int = 1, **settings: str) -> WantedTopic:
    """With *settings*, whose dots are underscores here."""
    given = {key.replace("_", "."): value for key, value in settings.items()}
    return WantedTopic(name=name, partitions=partitions, replication=1, settings=given)


def test_topics_are_created_once_and_others_refused_with_their_reason(admin: TopicAdmin, name: str):
    """What is refused does not keep the others from being created."""
    wanted = [topic(f"{name}-a", 2), topic(f"{name}-b"), topic(f"{name} with spaces")]

    refused = admin.create(wanted, soon())
    again = admin.create([topic(f"{name}-a", 5)], soon())

    assert [f"{name} with spaces"] == [*refused]
    assert (
        f"Kafka refused the creation of topic '{name} with spaces'"
        in refused[f"{name} with spaces"]
    )
    assert {} == again
    until(lambda: admin.exists(f"{name}-b", soon()))
    assert [0, 1] == admin.partitions(f"{name}-a", soon())


def test_a_topic_is_given_more_partitions_and_never_fewer(admin: TopicAdmin, name: str):
    """One that has as many is left as it is."""
    admin.create([topic(name, 2)], soon())
    until(lambda: admin.exists(name, soon()))

    assert {} == admin.grow({name: 4}, soon())
    until(lambda: len(admin.partitions(name, soon())) == 4)
    assert {} == admin.grow({name: 4}, soon())
    assert {} == admin.grow({name: 3}, soon())
    assert 4 == len(admin.partitions(name, soon()))


def test_settings_are_read_and_changed_one_by_one(admin: TopicAdmin, name: str):
    """``None`` is the broker's default again, and the others stay."""
    admin.create([topic(name, retention_ms="5000", max_message_bytes="2000000")], soon())
    until(lambda: admin.exists(name, soon()))
    before = admin.topic_configs([name], soon()).found[name]

    refused = admin.set_topic_configs(
        {name: {"retention.ms": None, "cleanup.policy": "compact"}}, soon()
    )

    assert ("5000", True) == before["retention.ms"][:2]
    assert before["segment.bytes"].is_default
    assert {} == refused

    def own() -> dict[str, str | None]:
        found = admin.topic_configs([name], soon()).found[name]
        return {key: each.value for key, each in found.items() if each.is_own}

    until(lambda: own() == {"max.message.bytes": "2000000", "cleanup.policy": "compact"})


def test_a_setting_that_is_none_is_refused_for_its_topic(admin: TopicAdmin, name: str):
    """With the broker's reason."""
    admin.create([topic(name)], soon())
    until(lambda: admin.exists(name, soon()))

    refused = admin.set_topic_configs({name: {"no.such.setting": "1"}}, soon())

    assert [name] == [*refused]
    assert "no.such.setting" in refused[name]


def test_settings_of_a_topic_that_is_not_there_are_left_out(admin: TopicAdmin, name: str):
    """Those of others are answered."""
    admin.create([topic(name)], soon())
    until(lambda: admin.exists(name, soon()))

    assert [name] == [*admin.topic_configs([name, f"{name}-none"], soon()).found]


def test_a_setting_of_a_broker_is_read(admin: TopicAdmin):
    """One that there is not is none."""
    assert "10080" == admin.broker_setting("offsets.retention.minutes", soon())
    assert admin.broker_setting("no.such.setting", soon()) is None
