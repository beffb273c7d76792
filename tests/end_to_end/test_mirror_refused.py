"""A mirror to a cluster that refuses some of the remote topics: told, and the others copied."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import (
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

from end_to_end.live import Life
from end_to_end.mirrored import SOURCE, Mirrored
from end_to_end.served import served, states
from end_to_end.test_authorisation import forbid
from headrace.broker import Broker
from spark.kafka.tables import Topics
from waiting import until

pytestmark = [pytest.mark.broker, pytest.mark.slow, pytest.mark.timeout(180)]


@pytest.fixture
def flow(bootstrap: str, strict_broker: Broker) -> Iterator[Mirrored]:
    """From the shared broker to the strict one, which allows what no rule forbids; in the end there is none."""
    yield Mirrored(Topics(bootstrap), strict_broker.bootstrap)
    allow(strict_broker.bootstrap)


def allow(bootstrap: str, topic: str | None = None) -> None:
    """There are no rules any more about *topic*, or about anything."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    rules = AclBindingFilter(
        ResourceType.ANY if topic is None else ResourceType.TOPIC,
        topic,
        ResourcePatternType.ANY,
        None,
        None,
        AclOperation.ANY,
        AclPermissionType.ANY,
    )
    admin.delete_acls([rules])[rules].result()


def test_topics_that_may_not_be_created_grown_or_seen_do_not_stop_the_others(
    flow: Mirrored, tmp_path: Path
) -> None:
    """Each is told with the right that it takes, and copied as soon as it may be; nothing has to be restarted."""
    topics, target = flow.topics, flow.target
    names = refused, small, hidden, kept = [
        topics.create(name) for name in ("refused", "small", "hidden", "kept")
    ]
    for each in names:
        topics.write(each, 5)
    # Whoever may create any topic is not asked about one.
    forbid(target, AclOperation.CREATE)
    forbid(target, AclOperation.CREATE, topic=f"{SOURCE}.{refused}")
    forbid(target, AclOperation.DESCRIBE, topic=f"{SOURCE}.{hidden}")
    with served(Life(target, tmp_path)) as http:

        def trace() -> str:
            return http.get(f"/connectors/{flow.name}/status").json()["connector"].get("trace", "")

        http.put(f"/connectors/{flow.name}/config", json=flow.connector())
        until(lambda: {(small, 0): 5, (kept, 0): 5} == flow.positions(), seconds=60)
        until(lambda: states(http, flow.name) == ("FAILED", {"RUNNING"}), seconds=60)
        assert f"Kafka refused the creation of topic '{SOURCE}.{refused}'" in trace()
        assert "Grant this client Create on it." in trace()
        assert f"The remote topic {SOURCE}.{hidden} cannot be looked at" in trace()

        forbid(target, AclOperation.ALTER, topic=f"{SOURCE}.{small}")
        topics.grow(small, 2)
        topics.write(small, 5, 1)
        topics.write(kept, 5)
        until(lambda: flow.positions()[kept, 0] == 10, seconds=60)
        told = f"Kafka refused more partitions of topic '{SOURCE}.{small}'"
        until(lambda: told in trace(), seconds=60)
        assert "Grant this client Alter on it." in trace()
        topics.write(small, 5)
        until(lambda: flow.positions()[small, 0] == 10, seconds=60)

        for each in names:
            allow(target, f"{SOURCE}.{each}")
        until(lambda: flow.is_through(names), seconds=60)
        until(lambda: states(http, flow.name) == ("RUNNING", {"RUNNING"}), seconds=60)

    assert {} == flow.differences(names)
