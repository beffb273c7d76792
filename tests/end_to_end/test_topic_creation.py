"""Topics that are made before their first record, with a real broker (KIP-158)."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from confluent_kafka import TopicCollection
from confluent_kafka.admin import AdminClient, ConfigResource, ResourceType

from doubles.puppets import PLANNED, POLLED, SOURCE, Puppet, memory_of, numbered, reading
from end_to_end.live import Life, numbers
from headrace.connect.record import SourceRecord
from headrace.connect.task import Polled, SourceTask
from headrace.testing.judge import committed_records

pytestmark = pytest.mark.broker

MADE = {
    "topic.creation.default.replication.factor": "1",
    "topic.creation.default.partitions": "3",
}


@pytest.fixture
def life(bootstrap: str, tmp_path: Path) -> Life:
    """A worker of two slots."""
    return Life(bootstrap, tmp_path)


def partitions(life: Life, topic: str) -> int:
    """How many *topic* has."""
    admin = AdminClient({"bootstrap.servers": life.bootstrap})
    return len(admin.describe_topics(TopicCollection([topic]))[topic].result().partitions)


def setting(life: Life, topic: str, key: str) -> str | None:
    """The value of one of the topic's own settings."""
    resource = ConfigResource(ResourceType.TOPIC, topic)
    admin = AdminClient({"bootstrap.servers": life.bootstrap})
    return admin.describe_configs([resource])[resource].result()[key].value


@pytest.mark.parametrize("exactly_once", ["enabled", "disabled"])
def test_topics_are_made_as_their_groups_say(life: Life, exactly_once: str) -> None:
    """Partitions and settings are those that were asked for, and a group's are for the topics of its name only."""
    life.worker["exactly.once.source.support"] = exactly_once
    name = life.next_name()
    life.add(POLLED, two_topics(name))
    life.connectors[0] |= {
        **MADE,
        "topic.creation.groups": "kept",
        "topic.creation.kept.include": ".*-kept",
        "topic.creation.kept.partitions": "2",
        "topic.creation.kept.cleanup.policy": "compact",
    }

    assert {} == life.run_once()

    plain, kept = f"{name}-plain", f"{name}-kept"
    assert (3, 2) == (partitions(life, plain), partitions(life, kept))
    assert ("delete", "compact") == (
        setting(life, plain, "cleanup.policy"),
        setting(life, kept, "cleanup.policy"),
    )
    assert ([(None, b"0")], [(b"1", b"2")]) == (records(life, plain), records(life, kept))


@pytest.mark.parametrize("exactly_once", ["enabled", "disabled"])
def test_the_topic_of_a_renamed_record_is_made_by_the_group_of_its_new_name(
    life: Life, exactly_once: str
) -> None:
    """Groups look at where a record goes, and the topic that it was given by its source is never made."""
    life.worker["exactly.once.source.support"] = exactly_once
    given = life.add(PLANNED, reading(topic=life.next_name(), total=10))
    life.connectors[0] |= {
        **MADE,
        "transforms": "rename",
        "transforms.rename.type": "org.apache.kafka.connect.transforms.RegexRouter",
        "transforms.rename.regex": "(.*)",
        "transforms.rename.replacement": "$1-renamed",
        "topic.creation.groups": "old, new",
        "topic.creation.old.include": given,
        "topic.creation.old.partitions": "5",
        "topic.creation.new.include": f"{given}-renamed",
        "topic.creation.new.partitions": "2",
        "topic.creation.new.retention.ms": "86400000",
    }

    assert {} == life.run_once()

    renamed = f"{given}-renamed"
    assert (2, "86400000") == (
        partitions(life, renamed),
        setting(life, renamed, "retention.ms"),
    )
    assert sorted(numbers(10)) == sorted(life.values(renamed))
    assert given not in AdminClient({"bootstrap.servers": life.bootstrap}).list_topics().topics


def records(life: Life, topic: str) -> list[tuple[bytes | None, bytes | None]]:
    """Keys and values of *topic*."""
    return [(each.key, each.value) for each in committed_records(life.bootstrap, topic)]


def two_topics(name: str) -> Puppet:
    """A record of each of two topics, in one poll; the second one has a key, as a compacted topic wants it."""

    def poll(task: SourceTask) -> Polled:
        if memory_of(task).setdefault("done", 0):
            return None
        memory_of(task)["done"] = 1
        return [
            SourceRecord(
                topic=f"{name}-{topic}",
                key=key,
                value=value,
                source_partition=SOURCE,
                source_offset={"next": 1},
            )
            for topic, key, value in (("plain", None, "0"), ("kept", "1", "2"))
        ]

    return Puppet(poll=poll)


def test_tasks_that_come_to_a_new_topic_at_once_make_one(life: Life) -> None:
    """Whoever is second finds it there."""
    topic = life.next_name()
    both = threading.Barrier(2)

    def poll(task: SourceTask) -> Polled:
        if memory_of(task).setdefault("done", 0):
            return None
        memory_of(task)["done"] = 1
        both.wait(30)
        return numbered(topic, 0, 1)

    life.add(POLLED, Puppet(poll=poll, tasks=2))
    life.connectors[0] |= MADE

    assert {} == life.run_once()

    assert 3 == partitions(life, topic)
    assert ["0", "0"] == life.values(topic)


@pytest.mark.parametrize(
    "off", [{}, {**MADE, "topic.creation.enable": "false"}], ids=["unset", "off"]
)
def test_without_these_settings_the_broker_makes_topics(life: Life, off: dict[str, str]) -> None:
    """As it sees fit; a worker that has it switched off does not heed them."""
    life.worker |= {key: value for key, value in off.items() if "enable" in key}
    topic = life.add(PLANNED, reading(topic=life.next_name(), total=10))
    life.connectors[0] |= {key: value for key, value in off.items() if "enable" not in key}

    assert {} == life.run_once()

    assert 1 == partitions(life, topic)
    assert numbers(10) == life.values(topic)


def test_a_setting_that_no_topic_has_fails_the_task(life: Life) -> None:
    """With the topic, the reason and the group; nothing is sent."""
    topic = life.add(PLANNED, reading(life.next_name(), 10))
    life.connectors[0] |= {**MADE, "topic.creation.default.no one.knows": "1"}

    (failure,) = life.run_once().values()

    assert f"Kafka refused the creation of topic {topic!r}: Unknown topic config name" in str(
        failure
    )
    assert "It was to be created with topic.creation.default.*:" in str(failure)
    assert [] == life.values(topic)
