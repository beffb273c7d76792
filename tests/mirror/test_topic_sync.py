"""What remote topics get after they were created, on a real broker that is both clusters."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from uuid import uuid4

import pytest

from headrace.broker import Broker
from headrace.connect.connector import PlanRequest
from headrace.connect.errors import TaskFailedError
from headrace.kafka.client_config import client_config
from headrace.kafka.deadline import Deadline
from headrace.kafka.topic_admin import TopicAdmin, TopicSetting, WantedTopic
from headrace.kafka.wire.acls import Acl, create_acls, topic_acls
from headrace.kafka.wire.cluster import Cluster
from headrace.kafka.wire.settings import wire_settings
from headrace.mirror.settings import MirrorSourceConfig
from headrace.mirror.source_connector import MirrorSourceConnector
from headrace.mirror.topic_config_sync import settings_differing
from headrace.mirror.topic_sync import TopicSync
from headrace.testing.task_runs import LocalConnectorContext, StoredOffsets
from waiting import until

pytestmark = pytest.mark.broker

WEEK_MS = 604_800_000
NO_LIMIT = str(2**63 - 1)


class Flow:
    """A flow of the topics of one test, whose alias no other test has."""

    def __init__(self, bootstrap: str, **settings: str) -> None:
        self.prefix = f"u{uuid4().hex[:8]}"
        client = client_config({"bootstrap.servers": bootstrap})
        self.admin, self.cluster = TopicAdmin(client), Cluster(wire_settings(client.settings))
        self.config = MirrorSourceConfig.parse(
            {
                "name": f"m-{self.prefix}",
                "source.cluster.alias": f"A{self.prefix}",
                "target.cluster.alias": "B",
                "source.cluster.bootstrap.servers": bootstrap,
                "target.cluster.bootstrap.servers": bootstrap,
                "topics": f"{self.prefix}-.*",
                "emit.offset-syncs.enabled": "false",
                "replication.factor": "1",
                "mirror.offset.ranges.topic.replication.factor": "1",
                "sync.topic.configs.interval.seconds": "1",
                "sync.topic.acls.interval.seconds": "1",
                **{key.replace("_", "."): value for key, value in settings.items()},
            }
        )
        self.sync = TopicSync(self.config, {})
        self.ranges = self.sync.ranges_topic

    def create(self, *topics: str, **settings: str) -> None:
        """Create them with *settings*, whose dots are underscores here."""
        given = {key.replace("_", "."): value for key, value in settings.items()}
        wanted = [
            WantedTopic(name=each, partitions=1, replication=1, settings=given) for each in topics
        ]
        assert {} == self.admin.create(wanted, Deadline.after(20))
        until(lambda: {*topics} <= self.admin.topic_names(Deadline.after(20)))

    def copied(self, name: str, **settings: str) -> tuple[str, str]:
        """A topic of the source with *settings*, and its remote topic, which has none of them."""
        topic = f"{self.prefix}-{name}"
        remote = self.config.topics_copied.remote_topic(topic)
        self.create(topic, **settings)
        self.create(remote)
        return topic, remote

    def set(self, topic: str, **settings: str | None) -> None:
        """Change settings, whose dots are underscores here; returns when that is so."""
        changes = {key.replace("_", "."): value for key, value in settings.items()}
        assert {} == self.admin.set_topic_configs({topic: changes}, Deadline.after(20))
        until(lambda: not settings_differing(changes, self.settings(topic)))

    def settings(self, topic: str) -> dict[str, TopicSetting]:
        """All that there are."""
        return dict(self.admin.topic_configs([topic], Deadline.after(20)).found[topic])

    def own(self, topic: str) -> dict[str, str | None]:
        """Those that were set for it."""
        return {key: each.value for key, each in self.settings(topic).items() if each.is_own}

    def acls(self, topic: str) -> set[Acl]:
        """Those of *topic*."""
        found = topic_acls(self.cluster, Deadline.after(20))
        assert found is not None
        return {each for each in found if each.name == topic}

    def create_acls(self, *acls: Acl) -> None:
        """Have them created; they are there a moment later."""
        create_acls(self.cluster, acls, Deadline.after(20))

    def close(self) -> None:
        """Close its connections."""
        self.cluster.close()
        self.sync.close()

    @contextmanager
    def running(self) -> Iterator[None]:
        """While the connector runs: without its tasks, which have nothing to do with it."""
        connector = MirrorSourceConnector()
        offsets = StoredOffsets({})
        connector.initialize(LocalConnectorContext(offsets))
        connector.start(self.config.originals)
        try:
            connector.plan(PlanRequest(slots=1, offsets=offsets))
            yield
        finally:
            connector.stop()


MakeFlow = Callable[..., Flow]


@pytest.fixture
def make_flow() -> Iterator[MakeFlow]:
    """Makes flows, and closes them."""
    made = list[Flow]()

    def make(bootstrap: str, **settings: str) -> Flow:
        made.append(Flow(bootstrap, **settings))
        return made[-1]

    yield make
    for each in made:
        each.close()


@pytest.fixture
def flow(make_flow: MakeFlow, bootstrap: str) -> Flow:
    """On the broker of all tests."""
    return make_flow(bootstrap)


@pytest.fixture
def strict_flow(make_flow: MakeFlow, strict_broker: Broker) -> Flow:
    """On a broker with an authorizer."""
    return make_flow(strict_broker.bootstrap)


def test_settings_follow_those_of_the_source_topic(flow: Flow):
    """Also back to the default; the times of records stay the source's, and what is excluded stays as it is."""
    topic, remote = flow.copied("orders", retention_ms="5000", min_insync_replicas="1")
    always = {
        "message.timestamp.type": "CreateTime",
        "message.timestamp.before.max.ms": NO_LIMIT,
        "message.timestamp.after.max.ms": NO_LIMIT,
    }

    with flow.running():
        until(lambda: flow.own(remote) == {"retention.ms": "5000", **always})
        until(lambda: flow.own(flow.ranges).get("retention.ms") == "5000")
        flow.set(topic, retention_ms="7000", max_message_bytes="2000000", segment_bytes="20000000")
        until(lambda: flow.own(remote).get("segment.bytes") == "20000000")
        assert ("7000", "2000000") == (
            flow.own(remote)["retention.ms"],
            flow.own(remote)["max.message.bytes"],
        )
        flow.set(topic, retention_ms=None, message_timestamp_type="LogAppendTime")
        until(lambda: "retention.ms" not in flow.own(remote))

    assert always.items() <= flow.own(remote).items()


def test_defaults_of_the_source_are_set_where_they_are_to_be(make_flow: MakeFlow, bootstrap: str):
    """With use.defaults.from=source."""
    flow = make_flow(bootstrap, use_defaults_from="source", config_properties_exclude="segment.*")
    topic, remote = flow.copied("orders")

    flow.sync.sync_configs()

    until(lambda: "flush.ms" in flow.own(remote))
    assert flow.settings(topic)["flush.ms"].value == flow.own(remote)["flush.ms"]
    assert "segment.bytes" not in flow.own(remote)


def test_ranges_are_kept_as_long_as_any_records_that_they_speak_of(flow: Flow):
    """Whatever copied heartbeats are, which are compacted."""

    def kept() -> str | None:
        flow.sync.keep_ranges()
        return flow.own(flow.ranges).get("retention.ms")

    _, remote = flow.copied("orders")
    flow.set(remote, retention_ms=str(WEEK_MS))
    flow.create(flow.ranges, retention_ms="-1")
    flow.create(f"{flow.config.source_cluster_alias}.heartbeats", cleanup_policy="compact")
    until(lambda: kept() == str(WEEK_MS))

    flow.set(remote, retention_ms=str(2 * WEEK_MS))
    until(lambda: kept() == str(2 * WEEK_MS))
    _, other = flow.copied("bills")
    flow.set(other, retention_ms="1000")
    flow.set(remote, retention_ms="2000")
    until(lambda: kept() == "2000")
    # As another connector from the same source copies it.
    flow.create(f"{flow.config.source_cluster_alias}.others", retention_ms="3000")
    until(lambda: kept() == "3000")
    flow.set(other, cleanup_policy="compact")
    until(lambda: kept() == "-1")


def test_ranges_are_not_kept_shorter_because_a_topic_may_not_be_seen(strict_flow: Flow):
    """A list of topics lacks it then, without an error."""
    flow = strict_flow

    def kept() -> str | None:
        flow.sync.keep_ranges()
        return flow.own(flow.ranges).get("retention.ms")

    flow.create(flow.ranges, retention_ms="-1")
    for name, retention in (("orders", "5000"), ("bills", str(WEEK_MS))):
        _, remote = flow.copied(name)
        flow.set(remote, retention_ms=retention)
    until(lambda: kept() == str(WEEK_MS))
    anonymous = Acl("TOPIC", remote, "LITERAL", "User:ANONYMOUS", "*", "ALL", "ALLOW")
    flow.create_acls(anonymous, anonymous._replace(operation="DESCRIBE", permission="DENY"))
    until(lambda: remote not in flow.admin.topic_names(Deadline.after(20)))

    assert [str(WEEK_MS)] * 3 == [kept() for _ in range(3)]


def test_one_that_is_refused_is_told_with_the_right_and_the_others_follow(strict_flow: Flow):
    """It is tried again."""
    flow = strict_flow
    topic, remote = flow.copied("orders", retention_ms="5000")
    _, other = flow.copied("bills", retention_ms="6000")
    anonymous = Acl("TOPIC", remote, "LITERAL", "User:ANONYMOUS", "*", "ALL", "ALLOW")
    denied = anonymous._replace(operation="ALTER_CONFIGS", permission="DENY")
    flow.create_acls(anonymous, denied)
    until(lambda: flow.acls(remote) == {anonymous, denied})

    def refused() -> str:
        with pytest.raises(TaskFailedError) as raised:
            flow.sync.sync_configs()
        return str(raised.value)

    assert refused().endswith("Grant this client AlterConfigs on it.")
    assert f"topic {remote!r}" in refused()
    until(lambda: flow.own(other).get("retention.ms") == "6000")
    assert "retention.ms" not in flow.own(remote)
    assert "5000" == flow.own(topic)["retention.ms"]


def test_readers_of_the_source_may_read_the_remote_topic(strict_flow: Flow):
    """And no one may write it; nothing is taken away there."""
    flow = strict_flow
    topic, remote = (
        f"{flow.prefix}-orders",
        f"{flow.config.source_cluster_alias}.{flow.prefix}-orders",
    )
    reading = Acl("TOPIC", topic, "LITERAL", "User:x", "*", "READ", "ALLOW")
    everything = reading._replace(principal="User:y", operation="ALL")
    own = reading._replace(name=remote, principal="User:z", operation="WRITE")
    writing = reading._replace(operation="WRITE")
    flow.create_acls(reading, everything, writing, own)
    expected = {
        reading._replace(name=remote),
        everything._replace(name=remote, operation="READ"),
        own,
    }

    with flow.running():
        until(lambda: flow.acls(remote) == expected)
        flow.create_acls(reading._replace(operation="DESCRIBE"))
        until(lambda: len(flow.acls(remote)) == 4)

    assert expected < flow.acls(remote)


def test_without_an_authorizer_it_is_told_once(flow: Flow, caplog: pytest.LogCaptureFixture):
    """There are no ACLs to copy then."""
    with caplog.at_level(logging.INFO):
        flow.sync.sync_acls()
        flow.sync.sync_acls()

    [told] = [each.getMessage() for each in caplog.records if "authorizer" in each.getMessage()]
    assert told.startswith(
        f"Connector {flow.config.name}: the brokers of the source have no authorizer"
    )
