"""The rights that the page names are enough for `headrace mirror`, on a broker that forbids everything else."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest
from confluent_kafka import Consumer, KafkaException, TopicPartition
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

from doubles.thread_engine import ThreadEngine
from end_to_end.test_authorisation import forbid
from end_to_end.test_mirror_flows import Flows
from end_to_end.test_mirror_refused import allow
from headrace.broker import Broker
from headrace.cli.mirror_process import run_flows
from spark.kafka.tables import Topics
from waiting import until

pytestmark = [pytest.mark.broker, pytest.mark.slow, pytest.mark.timeout(240)]

PAGE = Path(__file__).parents[2] / "docs" / "mirror-clusters.md"
_PREFIXED = ResourcePatternType.PREFIXED


class Row(NamedTuple):
    """A row of the page's table, and the resources of a flow that it is about; their names may be prefixes."""

    cluster: str
    rights: str
    on: str
    kind: ResourceType
    names: tuple[str, ...]


def rows(flows: Flows) -> list[Row]:
    """The table, for the flow from x to y."""
    topics = flows.topics["x"].prefix
    a, b = flows.alias["x"], flows.alias["y"]
    topic, group, cluster = ResourceType.TOPIC, ResourceType.GROUP, ResourceType.BROKER
    return [
        Row("A", "Describe, DescribeConfigs, Read", "the topics", topic, (topics,)),
        Row(
            "A",
            "Create, Describe, Read, Write",
            "`mm2-offset-syncs.B.internal`",
            topic,
            (f"mm2-offset-syncs.{b}.internal",),
        ),
        Row(
            "A",
            "Describe, Read",
            "`mm2-offset-ranges.B.internal`",
            topic,
            (f"mm2-offset-ranges.{b}.internal",),
        ),
        Row("A", "Describe", "the consumer groups", group, ("",)),
        Row("A", "Describe", "the cluster", cluster, ("kafka-cluster",)),
        Row(
            "B",
            "Create, Alter, Describe, DescribeConfigs, AlterConfigs, Read, Write",
            "the remote topics",
            topic,
            (f"{a}.{topics}",),
        ),
        Row(
            "B",
            "Create, Describe, DescribeConfigs, AlterConfigs, Read, Write",
            "`mm2-offset-ranges.A.internal`",
            topic,
            (f"mm2-offset-ranges.{a}.internal",),
        ),
        Row(
            "B",
            "Create, Describe, DescribeConfigs, Read, Write",
            "`mm2-offsets.A.internal`, `heartbeats`, `A.checkpoints.internal`",
            topic,
            (f"mm2-offsets.{a}.internal", "heartbeats", f"{a}.checkpoints.internal"),
        ),
        Row("B", "Describe, Read", "the group `connect-A.B`", group, (f"connect-{a}.{b}",)),
        Row(
            "B",
            "Describe, Write",
            "the transactional ids that begin with `A-mm2-`",
            ResourceType.TRANSACTIONAL_ID,
            (f"{a}-mm2-",),
        ),
        Row("B", "Alter, Describe, DescribeConfigs", "the cluster", cluster, ("kafka-cluster",)),
    ]


def rules(row: Row) -> Iterator[AclBinding]:
    """What grants the rights of *row* to everyone."""
    for right in row.rights.split(", "):
        operation = AclOperation[_SNAKES.get(right, right.upper())]
        for name in row.names:
            is_whole = name in ("", "kafka-cluster")
            pattern = ResourcePatternType.LITERAL if is_whole else _PREFIXED
            yield rule(row.kind, name or "*", operation, pattern=pattern)


_SNAKES = {"DescribeConfigs": "DESCRIBE_CONFIGS", "AlterConfigs": "ALTER_CONFIGS"}


def rule(
    kind: ResourceType,
    name: str,
    operation: AclOperation,
    *,
    pattern: ResourcePatternType = ResourcePatternType.LITERAL,
    whose: str = "*",
) -> AclBinding:
    """*whose* client may do that."""
    return AclBinding(kind, name, pattern, f"User:{whose}", "*", operation, AclPermissionType.ALLOW)


def forbidden() -> Iterator[AclBinding]:
    """Rules after which nothing is allowed that no rule allows: someone else may do everything."""
    for kind in (ResourceType.TOPIC, ResourceType.GROUP, ResourceType.TRANSACTIONAL_ID):
        yield rule(kind, "*", AclOperation.ALL, whose="someone-else")
    # The broker's own, which is no one in particular here, either, and what removes the rules.
    for operation in (AclOperation.CLUSTER_ACTION, AclOperation.ALTER):
        yield rule(ResourceType.BROKER, "kafka-cluster", operation)


@contextmanager
def restricted(broker: Broker, granted: list[Row]) -> Iterator[None]:
    """Meanwhile *broker* allows these and nothing else."""
    # It makes its own topics for transactions and groups as if it were a client.
    Topics(broker.bootstrap).transactional("first").abort_transaction()
    reader = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "first"})

    def coordinates() -> bool:
        try:
            return bool(reader.committed([TopicPartition("first", 0)], timeout=60))
        except KafkaException:
            # A topic that was just made has no coordinator yet.
            return False

    until(coordinates, seconds=60)
    reader.close()
    bindings = list({*(each for row in granted for each in rules(row)), *forbidden()})
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    for done in admin.create_acls(bindings).values():
        done.result(30)
    try:
        yield
    finally:
        allow(broker.bootstrap)


def is_through(flows: Flows) -> bool:
    """Whether all is copied."""
    seen = flows.seen()[flows.names["x"]]
    return bool(seen.status.partitions) and seen.lag == 0


@pytest.mark.parametrize("side", ["A", "B"])
def test_the_rights_on_the_page_are_enough(
    bootstrap: str, strict_broker: Broker, tmp_path: Path, side: str
) -> None:
    """For copying, checkpoints and heartbeats, whichever cluster of the two it is that forbids the rest."""
    ends = (strict_broker.bootstrap, bootstrap)
    x, y = ends if side == "A" else reversed(ends)
    flows = Flows(Topics(x), Topics(y), tmp_path)
    topic = flows.topics["x"].create("orders", 2)
    expected = sorted(flows.topics["x"].write(topic, 20))
    flows.props |= {
        f"{flows.names['y']}.enabled": "false",
        f"{flows.names['y']}.emit.heartbeats.enabled": "false",
        "sync.topic.acls.enabled": "true",
        "emit.checkpoints.interval.seconds": "1",
    }
    flows.set(groups=f"{flows.topics['x'].prefix}-.*")
    table = [row for row in rows(flows) if row.cluster == side]
    for row in table:
        assert f"| {row.cluster} | {row.rights} | {row.on}" in PAGE.read_text()
    stopping = threading.Event()

    with restricted(strict_broker, table), flows.opened(ThreadEngine(slots=3)) as running:
        failed = list[object]()
        thread = threading.Thread(target=lambda: failed.append(run_flows(running, stopping.is_set)))
        thread.start()
        try:
            until(lambda: is_through(flows), seconds=60)
        finally:
            stopping.set()
            thread.join(60)

    assert [False] == [bool(each) for each in failed]
    assert expected == flows.values("y", flows.remote("x", topic))


def test_a_run_that_may_not_see_the_source_any_more_fails(
    bootstrap: str, strict_broker: Broker, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """What has come since is not copied, so it is not over."""
    flows = Flows(Topics(strict_broker.bootstrap), Topics(bootstrap), tmp_path)
    del flows.props[f"{flows.names['y']}.enabled"]
    topic = flows.topics["x"].create("orders")
    flows.topics["x"].write(topic, 5)
    with flows.opened(ThreadEngine(slots=2), once=True) as running:
        assert not run_flows(running, lambda: False)
    flows.topics["x"].write(topic, 5)
    try:
        forbid(strict_broker.bootstrap, AclOperation.DESCRIBE, topic=topic)
        with flows.opened(ThreadEngine(slots=2), once=True) as running:
            assert run_flows(running, lambda: False)
    finally:
        allow(strict_broker.bootstrap)

    assert (
        f"{topic}-0 is not copied: the source's brokers answer TOPIC_AUTHORIZATION_FAILED"
        in caplog.text
    )
