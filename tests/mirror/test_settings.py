"""The settings of the three connectors, and what follows from them."""

from __future__ import annotations

import pytest

from headrace.connect.connector import ExactlyOnceSupport
from headrace.mirror.client_settings import ClientKind, ClientRole, Side
from headrace.mirror.settings import (
    MirrorCheckpointConfig,
    MirrorConnectorConfig,
    MirrorHeartbeatConfig,
    MirrorSourceConfig,
)

FLOW = {"name": "m", "source.cluster.alias": "a", "target.cluster.alias": "b"}


def source(**props: str) -> MirrorSourceConfig:
    """A source connector's configuration; in names an underscore stands for a dot."""
    return MirrorSourceConfig.parse(FLOW | {key.replace("_", "."): props[key] for key in props})


def problem_keys(props: dict[str, str]) -> list[str]:
    """The keys of what is wrong with *props* for a source connector."""
    return [key for key, _ in MirrorSourceConfig.problems(FLOW | props)]


def test_by_default_copying_is_exactly_once_and_begins_with_the_first_record():
    """Committed records only, in transactions; positions in a group that is called after the connector."""
    config = source()
    assert config.exactly_once_support is ExactlyOnceSupport.SUPPORTED
    assert ("earliest", "read_committed") == (config.start, config.isolation_level)
    assert config.group_id == "connect-m"
    assert config.flow == "a->b"


def test_without_transactions_or_committed_reading_it_is_not_exactly_once():
    """And cannot be required to be."""
    assert source(transaction_producer_enabled="false").exactly_once_support is (
        ExactlyOnceSupport.UNSUPPORTED
    )
    assert source(source_consumer_isolation_level="read_uncommitted").exactly_once_support is (
        ExactlyOnceSupport.UNSUPPORTED
    )
    required = {"exactly.once.support": "required"}
    assert problem_keys(required) == []
    assert problem_keys({**required, "transaction.producer.enabled": "false"}) == [
        "exactly.once.support"
    ]


def test_the_start_is_the_mirrors_setting_or_that_of_the_consumer():
    """A time, too."""
    assert source(consumer_auto_offset_reset="latest").start == "latest"
    assert source(consumer_auto_offset_reset="latest", mirror_start="earliest").start == "earliest"
    assert source(mirror_start="1700000000000").start == "1700000000000"
    assert problem_keys({"mirror.start": "yesterday"}) == ["mirror.start"]


@pytest.mark.parametrize(
    ("props", "seconds"),
    [
        ({}, 300.0),
        ({"partition_discovery_interval_ms": "1500"}, 1.5),
        ({"partition_discovery_interval_ms": "0"}, None),
        ({"refresh_topics_interval_seconds": "600"}, 600.0),
        ({"refresh_topics_interval_seconds": "-1"}, None),
        ({"refresh_topics_enabled": "false", "refresh_topics_interval_seconds": "600"}, None),
    ],
)
def test_topics_are_looked_for_as_often_as_mirrormakers_keys_say_or_every_five_minutes(
    props: dict[str, str], seconds: float | None
):
    """None: only at the start."""
    assert source(**props).discovery_seconds == seconds


def test_two_intervals_are_one_too_many():
    """Neither may win silently."""
    both = {"refresh.topics.interval.seconds": "1", "partition.discovery.interval.ms": "1"}
    assert problem_keys(both) == ["partition.discovery.interval.ms"]


@pytest.mark.parametrize(
    ("kind", "key", "value", "told"),
    [
        (MirrorSourceConfig, "offset.lag.max", "-5", "at least 0"),
        (MirrorSourceConfig, "replication.factor", "0", "positive, or -1"),
        (MirrorSourceConfig, "offset-syncs.topic.replication.factor", "-2", "positive, or -1"),
        (MirrorSourceConfig, "mirror.offset.ranges.topic.replication.factor", "0", "positive"),
        (MirrorSourceConfig, "refresh.topics.interval.seconds", "0", "at least 1, or negative"),
        (MirrorSourceConfig, "sync.topic.acls.interval.seconds", "0", "at least 1, or negative"),
        (MirrorSourceConfig, "sync.topic.configs.interval.seconds", "0", "at least 1"),
        (MirrorCheckpointConfig, "checkpoints.topic.replication.factor", "0", "positive, or -1"),
        (MirrorCheckpointConfig, "emit.checkpoints.interval.seconds", "0", "at least 1"),
        (MirrorCheckpointConfig, "refresh.groups.interval.seconds", "0", "at least 1"),
        (MirrorCheckpointConfig, "sync.group.offsets.interval.seconds", "0", "at least 1"),
        (MirrorHeartbeatConfig, "heartbeats.topic.replication.factor", "0", "positive, or -1"),
        (MirrorHeartbeatConfig, "emit.heartbeats.interval.seconds", "0", "at least 1"),
    ],
)
def test_numbers_that_cannot_be_meant_are_refused(
    kind: type[MirrorConnectorConfig], key: str, value: str, told: str
):
    """MirrorMaker fails later with most of them. -1 is the broker's default of a replication factor, and no interval."""
    [(named, sentence)] = kind.problems({**FLOW, key: value})
    assert key == named
    assert f"Invalid value {value} for configuration {key}: Value must be {told}" in sentence
    if key != "offset.lag.max":
        assert () == kind.problems({**FLOW, key: "-1"})


def test_losses_fail_a_partition_by_default_and_removed_topics_do_not():
    """Only a topic that was made again may be begun again."""
    config = source()
    kept = (config.on_lost, config.on_recreated, config.on_foreign, config.on_expired)
    assert (*kept, config.on_remote_removed) == ("fail",) * 5
    assert config.on_removed == "continue"
    assert source(mirror_on_recreated="restart").on_recreated == "restart"
    assert problem_keys({"mirror.on.lost": "restart"}) == ["mirror.on.lost"]


@pytest.mark.parametrize(
    "kind", [MirrorSourceConfig, MirrorCheckpointConfig, MirrorHeartbeatConfig]
)
def test_an_alias_with_the_separator_in_it_is_refused(kind: type[MirrorConnectorConfig]):
    """Remote names would be taken apart at the wrong place."""
    told = kind.problems({**FLOW, "source.cluster.alias": "us.west"})
    assert [key for key, _ in told] == ["source.cluster.alias"]
    dashed = {**FLOW, "source.cluster.alias": "us.west", "replication.policy.separator": "--"}
    assert kind.problems(dashed) == ()


def test_the_same_names_within_one_cluster_are_refused():
    """As far as addresses show it: each record would be copied again without end."""
    same = {
        "replication.policy.class": "IdentityReplicationPolicy",
        "source.cluster.bootstrap.servers": "one:9092,two:9092",
        "target.cluster.bootstrap.servers": "SSL://TWO:9092",
    }
    assert problem_keys(same) == ["replication.policy.class"]
    assert problem_keys({**same, "target.cluster.bootstrap.servers": "three:9092"}) == []
    assert problem_keys({**same, "replication.policy.class": "DefaultReplicationPolicy"}) == []


def test_classes_of_java_are_refused_with_what_there_is_instead():
    """Filters, policies, and what creates topics."""
    props = {
        "topic.filter.class": "com.example.Filter",
        "config.property.filter.class": "com.example.Filter",
        "replication.policy.class": "com.example.Policy",
        "forwarding.admin.class": "com.example.Admin",
    }
    assert set(problem_keys(props)) == set(props)


def test_offset_syncs_are_called_after_the_cluster_where_they_are_not():
    """On the source by default."""
    assert source().offset_syncs_topic == "mm2-offset-syncs.b.internal"
    at_target = MirrorCheckpointConfig.parse({**FLOW, "offset-syncs.topic.location": "target"})
    assert at_target.offset_syncs_topic == "mm2-offset-syncs.a.internal"


def test_what_is_disabled_has_no_interval():
    """By its switch, or by an interval of nothing."""
    heartbeats = MirrorHeartbeatConfig.parse(FLOW)
    assert heartbeats.emit_seconds == 1.0
    assert (
        MirrorHeartbeatConfig.parse({**FLOW, "emit.heartbeats.enabled": "false"}).emit_seconds
        is None
    )
    checkpoints = MirrorCheckpointConfig.parse(FLOW)
    assert checkpoints.sync_offsets_seconds is None
    assert (checkpoints.emit_seconds, checkpoints.refresh_groups_seconds) == (60.0, 600.0)
    assert source(sync_topic_acls_interval_seconds="-1").sync_acls_seconds is None
    assert source().sync_configs_seconds == 600.0


def test_clients_are_called_after_the_flow_the_connector_and_their_role():
    """Behind what the user calls them."""
    config = source(consumer_client_id="mine")
    role = ClientRole.REPLICATION_CONSUMER
    settings = config.client(Side.SOURCE, ClientKind.CONSUMER, role, task=2)
    assert settings["client.id"] == "mine|a->b|m-2|replication-consumer"
    assert config.client(Side.TARGET, ClientKind.ADMIN, role)["client.id"] == (
        "a->b|m|replication-consumer"
    )


def test_passwords_are_not_shown():
    """Neither a configuration's nor its clients'."""
    config = source(source_cluster_sasl_jaas_config="secret")
    assert "secret" not in repr(config)
