"""Topics that a connector may not write to, or not create, with a broker that asks for rights."""

from __future__ import annotations

import logging
import re
import uuid
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
from end_to_end.scene import SENDERS
from headrace.broker import Broker
from headrace.config.internal_topics import CONFIGS
from headrace.connect.errors import ConfigError
from headrace.kafka.admin import KafkaAdmin
from headrace.kafka.client_config import client_config
from headrace.kafka.deadline import Deadline
from headrace.observe.events import MicroBatchStarted

pytestmark = pytest.mark.broker

MADE = {
    "topic_creation_default_replication_factor": "1",
    "topic_creation_default_partitions": "1",
}


@pytest.fixture(scope="module")
def asking_broker(refusing_broker: Broker) -> Iterator[Broker]:
    """A broker that allows what no rule forbids; one forbids to create topics."""
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
    """No one may do it with a ``topic`` or, without one, with the cluster; anything else is allowed."""
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


@pytest.mark.parametrize("sender", SENDERS)
@pytest.mark.parametrize("exactly_once", ["enabled", "disabled"])
def test_a_topic_that_may_not_be_written_to_fails_the_task_and_is_named(
    life: Life, exactly_once: str, sender: str
) -> None:
    """It is tried once, and the missing right is named; nothing of it counts as read."""
    life.worker["exactly.once.source.support"] = exactly_once
    topic = life.add(PLANNED, reading(life.next_name(), 10), headrace_sender=sender)
    admin = AdminClient({"bootstrap.servers": life.bootstrap})
    admin.create_topics([NewTopic(topic, 1, 1)])[topic].result()
    forbid(life.bootstrap, AclOperation.WRITE, topic=topic)

    (failure,) = life.run_once().values()

    # To the client library Kafka does not say which topic of a transaction it is.
    named = f"writing to topic '([^']+' or ')?{topic}'" if sender == "client" else f"for {topic}-0"
    assert re.search(named, str(failure))
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
    """The topic is looked for first."""
    topic = life.add(PLANNED, reading(life.next_name(), 10), **MADE)
    admin = AdminClient({"bootstrap.servers": life.bootstrap})
    admin.create_topics([NewTopic(topic, 1, 1)])[topic].result()
    forbid(life.bootstrap, AclOperation.CREATE, topic=topic)

    assert {} == life.run_once()

    assert numbers(10) == life.values(topic)


def test_an_internal_topic_whose_settings_may_not_be_read_will_do(
    asking_broker: Broker, caplog: pytest.LogCaptureFixture
) -> None:
    """As in Kafka Connect: the rights to read and write it are enough."""
    topic = f"internal-{uuid.uuid4().hex[:8]}"
    settings = {"bootstrap.servers": asking_broker.bootstrap}
    owner = AdminClient(settings)
    owner.create_topics([NewTopic(topic, 1, 1)])[topic].result()
    admin = KafkaAdmin(client_config(settings))
    wanted = CONFIGS.described({}, name=topic, partitions=1, replication=1)
    with pytest.raises(ConfigError, match=r"'cleanup\.policy=delete'"):
        admin.ensure_compacted_topic(wanted, Deadline.after(20))

    forbid(asking_broker.bootstrap, AclOperation.DESCRIBE_CONFIGS, topic=topic)
    with caplog.at_level(logging.INFO):
        assert not admin.ensure_compacted_topic(wanted, Deadline.after(20))

    assert f"Unable to use admin client to verify the cleanup policy of '{topic}'" in caplog.text


def grant(
    bootstrap: str,
    kind: ResourceType,
    name: str,
    *operations: AclOperation,
    pattern: ResourcePatternType = ResourcePatternType.LITERAL,
) -> None:
    """Everyone may do these *operations* with it, and nothing else."""
    bindings = [
        AclBinding(kind, name, pattern, "User:*", "*", each, AclPermissionType.ALLOW)
        for each in operations
    ]
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for done in admin.create_acls(bindings).values():
        done.result()


def reserve(bootstrap: str, *resources: tuple[ResourceType, str, ResourcePatternType]) -> None:
    """These are someone else's: no one may do anything with them unless another rule allows it."""
    bindings = [
        AclBinding(*each, "User:someone-else", "*", AclOperation.ALL, AclPermissionType.ALLOW)
        for each in resources
    ]
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for done in admin.create_acls(bindings).values():
        done.result()


WRITE = (AclOperation.WRITE, AclOperation.DESCRIBE)
# Those of docs/delivery.md that a connector needs, with one task and its offsets in the worker's topic.
IDS = ("0", "driver")


def granted(life: Life, *ids: str) -> str:
    """A connector's topic; the transactional *ids* may be used, and none but these.

    The topics are there; groups and IdempotentWrite are forbidden.
    """
    topic = life.add(PLANNED, reading(life.next_name(), 10), tasks_max="1")
    group = life.worker_props()["group.id"]
    admin = AdminClient({"bootstrap.servers": life.bootstrap})
    compacted = NewTopic(f"{group}-offsets", 2, 1, config={"cleanup.policy": "compact"})
    for made in admin.create_topics([NewTopic(topic, 1, 1), compacted]).values():
        made.result()
    forbid(life.bootstrap, AclOperation.IDEMPOTENT_WRITE)
    for each in ids:
        grant(life.bootstrap, ResourceType.TRANSACTIONAL_ID, f"{group}-{topic}-{each}", *WRITE)
    grant(life.bootstrap, ResourceType.TOPIC, topic, *WRITE)
    grant(life.bootstrap, ResourceType.TOPIC, f"{group}-offsets", AclOperation.READ, *WRITE)
    reserve(
        life.bootstrap,
        (ResourceType.GROUP, "*", ResourcePatternType.LITERAL),
        (ResourceType.TRANSACTIONAL_ID, f"{group}-", ResourcePatternType.PREFIXED),
    )
    return topic


def test_the_rights_on_the_page_are_enough_for_exactly_once(life: Life) -> None:
    """Those of docs/delivery.md, with topics that are there: no group, and no IdempotentWrite."""
    topic = granted(life, *IDS)

    assert {} == life.run_once()

    grant(life.bootstrap, ResourceType.TOPIC, topic, AclOperation.READ)
    assert numbers(10) == life.values(topic)


@pytest.mark.parametrize("missing", IDS)
def test_without_the_right_to_an_id_the_connector_fails_and_names_that_id(
    life: Life, missing: str
) -> None:
    """A task's own, and that of the connector's guard."""
    topic = granted(life, *(each for each in IDS if each != missing))

    (failure,) = life.run_once().values()

    group = life.worker_props()["group.id"]
    assert re.match(f"Kafka refused .* of '{group}-{topic}-{missing}': ", str(failure))
    assert "Grant this client Write and Describe on its transactional ids." in str(failure)
