"""Topics that a connector may not write to, or not create, with a broker that asks for rights."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)

from doubles.puppets import PLANNED, reading
from end_to_end.live import Life, numbers
from headrace.broker import Broker
from headrace.observe.events import MicroBatchStarted

pytestmark = pytest.mark.broker

MADE = {
    "topic_creation_default_replication_factor": "1",
    "topic_creation_default_partitions": "1",
}


@pytest.fixture(scope="module")
def asking_broker(refusing_broker: Broker) -> Iterator[Broker]:
    """A broker that allows what is not forbidden, as the making of topics is."""
    bootstrap = refusing_broker.start().bootstrap
    forbid(bootstrap, AclOperation.CREATE)
    yield refusing_broker
    everything = AclBindingFilter(
        ResourceType.ANY,
        None,
        ResourcePatternType.ANY,
        None,
        None,
        AclOperation.ANY,
        AclPermissionType.ANY,
    )
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.delete_acls([everything])[everything].result()


@pytest.fixture
def life(asking_broker: Broker, tmp_path: Path) -> Life:
    """A worker of two slots."""
    return Life(asking_broker.bootstrap, tmp_path)


def forbid(bootstrap: str, operation: AclOperation, **resource: str) -> None:
    """Nobody may do it with a ``topic`` or, without one, with the cluster; anything else is allowed."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    kind = ResourceType.TOPIC if resource else ResourceType.BROKER
    name = resource.get("topic", "kafka-cluster")
    bindings = [
        AclBinding(kind, name, ResourcePatternType.LITERAL, "User:*", "*", what, permission)
        for what, permission in (
            (AclOperation.ALL, AclPermissionType.ALLOW),
            (operation, AclPermissionType.DENY),
        )
    ]
    for done in admin.create_acls(bindings).values():
        done.result()


@pytest.mark.parametrize("exactly_once", ["enabled", "disabled"])
def test_a_topic_that_may_not_be_written_to_fails_the_task_and_is_named(
    life: Life, exactly_once: str
) -> None:
    """Once, with the right that is missing; nothing of it counts as read."""
    life.worker["exactly.once.source.support"] = exactly_once
    topic = life.add(PLANNED, reading(life.next_name(), 10))
    admin = AdminClient({"bootstrap.servers": life.bootstrap})
    admin.create_topics([NewTopic(topic, 1, 1)])[topic].result()
    forbid(life.bootstrap, AclOperation.WRITE, topic=topic)

    (failure,) = life.run_once().values()

    # Kafka does not tell which topic of a transaction it is.
    assert re.search(f"writing to topic '([^']+' or ')?{topic}'", str(failure))
    assert "Grant this client Write and Describe on the topic." in str(failure)
    assert 1 == len(life.heard(MicroBatchStarted))
    assert [] == life.values(topic)


def test_a_topic_that_may_not_be_created_fails_the_task(life: Life) -> None:
    """In Kafka Connect's words."""
    topic = life.add(PLANNED, reading(life.next_name(), 10), **MADE)
    forbid(life.bootstrap, AclOperation.CREATE, topic=topic)

    (failure,) = life.run_once().values()

    assert f"Task failed to create new topic (name={topic}, numPartitions=1" in str(failure)
    assert "Ensure that the task is authorized to create topics or that the topic exists" in str(
        failure
    )


def test_the_right_to_create_is_not_needed_for_a_topic_that_is_there(life: Life) -> None:
    """It is looked for first."""
    topic = life.add(PLANNED, reading(life.next_name(), 10), **MADE)
    admin = AdminClient({"bootstrap.servers": life.bootstrap})
    admin.create_topics([NewTopic(topic, 1, 1)])[topic].result()
    forbid(life.bootstrap, AclOperation.CREATE, topic=topic)

    assert {} == life.run_once()

    assert numbers(10) == life.values(topic)


def grant(bootstrap: str, kind: ResourceType, name: str, *operations: AclOperation) -> None:
    """Anybody may do these *operations* with it, and nothing else."""
    bindings = [
        AclBinding(
            kind, name, ResourcePatternType.LITERAL, "User:*", "*", each, AclPermissionType.ALLOW
        )
        for each in operations
    ]
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for done in admin.create_acls(bindings).values():
        done.result()


def test_the_rights_on_the_page_are_enough_for_exactly_once(life: Life) -> None:
    """Those of docs/delivery.md, with topics that are there: no group, and no IdempotentWrite."""
    topic = life.add(PLANNED, reading(life.next_name(), 10), tasks_max="1")
    group = life.worker_props()["group.id"]
    admin = AdminClient({"bootstrap.servers": life.bootstrap})
    compacted = NewTopic(f"{group}-offsets", 2, 1, config={"cleanup.policy": "compact"})
    for made in admin.create_topics([NewTopic(topic, 1, 1), compacted]).values():
        made.result()
    forbid(life.bootstrap, AclOperation.IDEMPOTENT_WRITE)
    write = (AclOperation.WRITE, AclOperation.DESCRIBE)
    grant(life.bootstrap, ResourceType.TRANSACTIONAL_ID, f"{group}-{topic}-0", *write)
    grant(life.bootstrap, ResourceType.TOPIC, topic, *write)
    grant(life.bootstrap, ResourceType.TOPIC, f"{group}-offsets", AclOperation.READ, *write)
    # Who has rights on a group may do nothing else with it.
    grant(life.bootstrap, ResourceType.GROUP, "*", AclOperation.DELETE)

    assert {} == life.run_once()

    grant(life.bootstrap, ResourceType.TOPIC, topic, AclOperation.READ)
    assert numbers(10) == life.values(topic)
