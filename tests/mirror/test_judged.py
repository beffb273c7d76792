"""MirrorMaker's own classes as the judge of names, filters, settings, records and files."""

from __future__ import annotations

import base64
import random
from typing import Any

import pytest

from headrace.connect.config import Config
from headrace.kafka.topic_admin import TopicSetting
from headrace.kafka.topic_partition import TopicPartition
from headrace.kafka.wire.acls import Acl
from headrace.mirror.acl_sync import remote_acls
from headrace.mirror.client_settings import ClientKind, ClientRole, Side
from headrace.mirror.dedicated import GROUP_KEY, dedicated_config
from headrace.mirror.filters import group_filter, property_filter, topic_filter
from headrace.mirror.formats import Checkpoint, Heartbeat, OffsetSync
from headrace.mirror.offset_syncs import OffsetSyncStore, SyncedPartition
from headrace.mirror.policies import replication_policy
from headrace.mirror.settings import (
    MirrorCheckpointConfig,
    MirrorHeartbeatConfig,
    MirrorSourceConfig,
)
from headrace.mirror.topic_config_sync import (
    settings_at_creation,
    settings_changed,
)
from judges.java_judge import JavaJudge

pytestmark = pytest.mark.broker

FLOW = {"name": "m", "source.cluster.alias": "a", "target.cluster.alias": "b"}
TOPICS = (
    "t",
    "a.t",
    "b.t",
    "c.b.t",
    "t.",
    "t..",
    ".t",
    ".",
    "..",
    "a..t",
    "a_t",
    "b_t",
    "t_",
    "__t",
    "__consumer_offsets",
    "heartbeats",
    "a.heartbeats",
    "b.heartbeats",
    "c.a.heartbeats",
    "my-heartbeats",
    "a_heartbeats",
    "a.checkpoints.internal",
    "a_checkpoints_internal",
    "x.internal",
    "x-internal",
    "mm2-offset-syncs.b.internal",
    "mm2-offset-syncs_b_internal",
    "mm2-configs.a.internal",
    "mm2.internal",
    "x.replica",
)
SEPARATORS = (
    {},
    {"replication.policy.separator": "_"},
    {"replication.policy.separator": "--"},
    {
        "replication.policy.separator": "_",
        "replication.policy.internal.topic.separator.enabled": "false",
    },
    {"replication.policy.internal.topic.separator.enabled": "false"},
)


@pytest.mark.parametrize("kind", ["DefaultReplicationPolicy", "IdentityReplicationPolicy"])
@pytest.mark.parametrize("separators", SEPARATORS)
def test_policies_name_topics_as_mirrormakers_do(
    judge: JavaJudge, kind: str, separators: dict[str, str]
):
    """And say the same of names."""
    config = FLOW | separators
    policy = replication_policy({**config, "replication.policy.class": kind})
    one = {
        "topicSource": policy.topic_source,
        "upstreamTopic": policy.upstream_topic,
        "originalTopic": policy.original_topic,
        "isInternalTopic": policy.is_internal,
        "isMM2InternalTopic": policy.is_mirrors_internal,
        "isCheckpointsTopic": policy.is_checkpoints_topic,
        "isHeartbeatsTopic": policy.is_heartbeats_topic,
        "checkpointsTopic": policy.checkpoints_topic,
        "offsetSyncsTopic": policy.offset_syncs_topic,
    }
    calls = [[name, topic] for name in one for topic in TOPICS]
    calls += [["formatRemoteTopic", "a", topic] for topic in TOPICS]
    expected = judge.mirrored("called", {"class": kind, "config": config, "calls": calls})

    found = [one[name](topic) for name in one for topic in TOPICS]
    found += [policy.remote_topic("a", topic) for topic in TOPICS]
    assert dict(zip(map(str, calls), expected, strict=True)) == dict(
        zip(map(str, calls), found, strict=True)
    )


@pytest.mark.parametrize("kind", ["DefaultReplicationPolicy", "IdentityReplicationPolicy"])
@pytest.mark.parametrize("separators", SEPARATORS)
@pytest.mark.parametrize(
    "chosen",
    [{}, {"topics": "x.*,t"}, {"topics": "", "topics.exclude": ""}, {"topics.exclude": "t|a.*"}],
)
@pytest.mark.parametrize("heartbeats", ["true", "false"])
def test_the_same_topics_are_copied(
    judge: JavaJudge,
    kind: str,
    separators: dict[str, str],
    *,
    chosen: dict[str, str],
    heartbeats: str,
):
    """Filters, internal topics, heartbeats and cycles together."""
    policy = f"org.apache.kafka.connect.mirror.{kind}"
    config = FLOW | separators | chosen
    config |= {"replication.policy.class": policy, "heartbeats.replication.enabled": heartbeats}
    expected = judge.mirrored("copied", {"config": config, "topics": TOPICS})
    copied = MirrorSourceConfig.parse(config).topics_copied
    assert expected == [copied.copies(topic) for topic in TOPICS]


def test_filters_of_groups_and_settings_choose_the_same(judge: JavaJudge):
    """By default, and with patterns."""
    names = ["g", "connect-g", "console-consumer-1", "__g", "retention.ms", "min.insync.replicas"]
    names += ["message.timestamp.type", "log.message.timestamp.after.max.ms", "minXinsync.replicas"]
    for props in (
        {},
        {
            "groups": "g.*",
            "config.properties.exclude": "retention.*",
            "use.defaults.from": "source",
        },
    ):
        groups, settings = group_filter(props), property_filter(props)
        asked = {"class": "DefaultGroupFilter", "config": props}
        calls = [["shouldReplicateGroup", name] for name in names]
        expected = judge.mirrored("called", {**asked, "calls": calls})
        assert expected == [groups.copies(name) for name in names]
        asked["class"] = "DefaultConfigPropertyFilter"
        calls = [["shouldReplicateConfigProperty", name] for name in names]
        calls += [["shouldReplicateSourceDefault", name] for name in names]
        expected = judge.mirrored("called", {**asked, "calls": calls})
        found = [settings.copies(name) for name in names]
        assert expected == [*found, *(settings.copies_default(name) for name in names)]


# Declared by the framework here, or without a meaning to this worker.
NOT_THE_MIRRORS = ("config.providers", "metric.reporters", "security.protocol", "ssl.", "sasl.")
# Here it follows another setting if it is not given.
OTHER_DEFAULTS = ("refresh.topics.interval.seconds",)


@pytest.mark.parametrize(
    "kind", [MirrorSourceConfig, MirrorCheckpointConfig, MirrorHeartbeatConfig]
)
def test_settings_are_mirrormakers(judge: JavaJudge, kind: type[Config]):
    """Each of its keys is there, with its type, its importance and its default."""
    own = {each.name: each for each in kind.settings()}
    for each in judge.mirrored("declared", kind.__name__):
        name = each["name"]
        if name in FRAMEWORK or name.startswith(NOT_THE_MIRRORS):
            continue
        found = own[name]
        told = (found.type.value, found.importance.upper(), found.required)
        assert (each["type"], each["importance"], each["required"]) == told, name
        if not found.required and name not in OTHER_DEFAULTS:
            assert each["default"] == _text(found.default), name


FRAMEWORK = frozenset(
    {
        "config.action.reload",
        "connector.class",
        "connector.plugin.version",
        "errors.log.enable",
        "errors.log.include.messages",
        "errors.retry.delay.max.ms",
        "errors.retry.timeout",
        "errors.tolerance",
        "header.converter",
        "header.converter.plugin.version",
        "key.converter",
        "key.converter.plugin.version",
        "name",
        "predicates",
        "tasks.max",
        "tasks.max.enforce",
        "transforms",
        "value.converter",
        "value.converter.plugin.version",
    }
)


def _text(value: object) -> str | None:
    if isinstance(value, tuple):
        items: tuple[str, ...] = value
        return ",".join(items)
    if isinstance(value, bool):
        return str(value).lower()
    return None if value is None else str(value)


@pytest.mark.parametrize(
    ("kind", "config"),
    [
        (
            "Source",
            {"exactly.once.support": "required", "consumer.isolation.level": "read_uncommitted"},
        ),
        (
            "Source",
            {"exactly.once.support": "required", "consumer.isolation.level": "read_committed"},
        ),
        ("Source", {"emit.offset-syncs.enabled": "false", "offset-syncs.topic.location": "target"}),
        ("Source", {"emit.offset-syncs.enabled": "false", "offset-syncs-source-admin.a": "b"}),
        ("Source", {"emit.offset-syncs.enabled": "false"}),
        ("Source", {"offset-syncs.topic.location": "somewhere", "replication.factor": "two"}),
        ("Source", {"sync.topic.acls.enabled": "maybe", "offset.lag.max": ""}),
        ("Checkpoint", {"emit.checkpoints.enabled": "false"}),
        ("Checkpoint", {"emit.offset-syncs.enabled": "false"}),
        ("Checkpoint", {"emit.offset-syncs.enabled": "false", "enabled": "false"}),
        ("Checkpoint", {"emit.checkpoints.enabled": "false", "emit.offset-syncs.enabled": "false"}),
        ("Heartbeat", {"emit.heartbeats.interval.seconds": "1.5"}),
    ],
)
def test_configurations_are_refused_in_the_same_words(
    judge: JavaJudge, kind: str, config: dict[str, str]
):
    """Key by key."""
    configs: dict[str, type[Config]] = {
        "Source": MirrorSourceConfig,
        "Checkpoint": MirrorCheckpointConfig,
        "Heartbeat": MirrorHeartbeatConfig,
    }
    props = {**FLOW, "connector.class": f"Mirror{kind}Connector", **config}
    expected = judge.mirrored("validated", {"class": f"Mirror{kind}Connector", "config": props})
    found = dict[str, list[str]]()
    for key, told in configs[kind].problems(props):
        found.setdefault(key, []).append(told)
    assert expected == found


CLIENTS = (
    ("sourceConsumerConfig", Side.SOURCE, ClientKind.CONSUMER, ClientRole.REPLICATION_CONSUMER),
    ("sourceAdminConfig", Side.SOURCE, ClientKind.ADMIN, ClientRole.REPLICATION_SOURCE_ADMIN),
    ("targetAdminConfig", Side.TARGET, ClientKind.ADMIN, ClientRole.REPLICATION_TARGET_ADMIN),
    (
        "sourceProducerConfig",
        Side.SOURCE,
        ClientKind.PRODUCER,
        ClientRole.OFFSET_SYNCS_SOURCE_PRODUCER,
    ),
    (
        "targetProducerConfig",
        Side.TARGET,
        ClientKind.PRODUCER,
        ClientRole.OFFSET_SYNCS_TARGET_PRODUCER,
    ),
    (
        "targetConsumerConfig",
        Side.TARGET,
        ClientKind.CONSUMER,
        ClientRole.CHECKPOINTS_TARGET_CONSUMER,
    ),
)


@pytest.mark.parametrize(("method", "side", "kind", "role"), CLIENTS)
def test_clients_get_the_same_settings(
    judge: JavaJudge, method: str, side: Side, *, kind: ClientKind, role: ClientRole
):
    """The most special prefix wins; only servers and logins come from the cluster's."""
    config = {**FLOW, "connector.class": "MirrorSourceConnector"}
    for name in (
        "source.cluster.",
        "target.cluster.",
        "consumer.",
        "source.consumer.",
        "producer.",
    ):
        config |= {
            f"{name}{key}": f"{name}{key}" for key in ("bootstrap.servers", "ssl.key.password")
        }
        config[f"{name}fetch.max.bytes"] = name
    config |= {
        "consumer.poll.timeout.ms": "7",
        "source.consumer.client.id": "me",
        "source.admin.sasl.mechanism": "PLAIN",
        "admin.client.id": "all",
        "target.consumer.auto.offset.reset": "latest",
    }
    asked = {"class": "MirrorSourceConfig", "config": config, "call": [method, role.value]}
    expected = judge.mirrored("configured", asked)
    assert expected == MirrorSourceConfig.parse(config).client(side, kind, role)


RECORDS = (
    (
        Heartbeat("a", "b", 1_700_000_000_000),
        ("sourceClusterAlias", "targetClusterAlias", "timestamp"),
    ),
    (Heartbeat("", "zürich-日本", -1), ("sourceClusterAlias", "targetClusterAlias", "timestamp")),
    (
        Checkpoint("g", "a.t", 3, 10, 2**40, "meta"),
        ("consumerGroupId", "topicPartition", "upstreamOffset", "downstreamOffset", "metadata"),
    ),
    (
        Checkpoint("gruppe-ü", "a.t", 0, 0, 0),
        ("consumerGroupId", "topicPartition", "upstreamOffset", "downstreamOffset", "metadata"),
    ),
    (
        OffsetSync("t", 2**31 - 1, 5, 2**63 - 1),
        ("topicPartition", "upstreamOffset", "downstreamOffset"),
    ),
)


@pytest.mark.parametrize(("record", "fields"), RECORDS)
def test_records_are_the_same_bytes_and_are_read_by_both(
    judge: JavaJudge, record: Heartbeat | Checkpoint | OffsetSync, fields: tuple[str, ...]
):
    """Key and value."""
    kind = type(record).__name__
    made = judge.mirrored("written", {"class": kind, "fields": list(record)})
    key, value = (base64.b64decode(made[part]) for part in ("key", "value"))
    assert (key, value) == record.encoded()
    assert record == type(record).decoded(key, value)
    asked = {"class": kind, "key": _base64(key), "value": _base64(value), "fields": fields}
    read = judge.mirrored("read", asked)
    assert list(record) == [
        each
        for name in fields
        for each in (read[name] if isinstance(read[name], list) else [read[name]])
    ]


def _base64(content: bytes) -> str:
    return base64.b64encode(content).decode()


@pytest.mark.parametrize("length", [0, 1, 5])
@pytest.mark.parametrize("record", [RECORDS[0][0], RECORDS[2][0], RECORDS[4][0]])
def test_what_is_cut_off_is_refused_by_both(
    judge: JavaJudge, record: Heartbeat | Checkpoint | OffsetSync, length: int
):
    """Instead of being read as something else."""
    key, value = record.encoded()
    asked = {"class": type(record).__name__, "key": _base64(key), "value": _base64(value[:length])}
    assert "refused" in judge.mirrored("read", {**asked, "fields": []})
    with pytest.raises(ValueError, match="ends after"):
        type(record).decoded(key, value[:length])


def _walk(chance: random.Random, length: int) -> list[tuple[int, int]]:
    """Syncs as a writer sends them: near each other or far apart, and now and then a source that goes back."""
    upstream, downstream = chance.randrange(100), chance.randrange(100)
    walk = list[tuple[int, int]]()
    for _ in range(length):
        walk.append((upstream, downstream))
        step = chance.choice([1, 1, 2, chance.randrange(1, 200), 2 ** chance.randrange(40)])
        if chance.random() < 0.01:
            upstream = max(upstream - step, 0)
        else:
            upstream += step
        downstream += chance.randrange(1, step + 1)
    return walk


@pytest.mark.parametrize("seed", range(12))
def test_the_same_syncs_are_kept_and_offsets_translated_alike(judge: JavaJudge, seed: int):
    """Slot by slot, after hundreds of syncs of every kind."""
    chance = random.Random(seed)
    is_precise = bool(seed % 3)
    before, after = _walk(chance, chance.randrange(120)), _walk(chance, chance.randrange(300))
    if chance.random() < 0.7 and before:
        after = [(up + before[-1][0], down + before[-1][1]) for up, down in after]
    everything = [up for up, _ in before + after]
    offsets = [up + chance.randrange(-3, 4) for up in everything]
    offsets += [chance.randrange(max(everything, default=0) + 10) for _ in range(200)]
    offsets = [max(offset, 0) for offset in offsets]
    asked = {"precise": is_precise, "before": before, "after": after, "offsets": offsets}
    expected = judge.mirrored("synced", asked)

    place = TopicPartition("t", 0)
    store = OffsetSyncStore(is_precise=is_precise)
    for up, down in before:
        store.add(OffsetSync(*place, up, down))
    store.complete()
    for up, down in after:
        store.add(OffsetSync(*place, up, down))
    kept = dict.fromkeys(tuple(each) for each in expected["slots"])
    assert list(kept) == [(each.upstream, each.downstream) for each in store.kept(place)]
    slots = store._slots.get(place, ())
    assert expected["slots"] == [[each.upstream, each.downstream] for each in slots]
    found = [store.translated(place, offset) for offset in offsets]
    assert expected["found"] == [-1 if each is None else each for each in found]


@pytest.mark.parametrize("seed", range(8))
def test_the_same_syncs_are_written(judge: JavaJudge, seed: int):
    """The last one of each run that is due, and what a commit adds."""
    chance = random.Random(seed)
    lag = chance.choice([0, 1, 7, 100])
    upstream, downstream = 0, 50
    runs = list[tuple[int, int, int]]()
    for _ in range(120):
        upstream += chance.choice([0, 0, 0, 1, 5])
        downstream = max(downstream + chance.choice([0, 0, 1, 1, 30, -40]), 0)
        count = chance.choice([0, 1, 2, 50, chance.randrange(300)])
        runs.append((upstream, downstream, count))
        upstream, downstream = upstream + count, downstream + count
    expected = judge.mirrored("emitted", {"lag": lag, "runs": runs})

    syncs = SyncedPartition(TopicPartition("t", 0), lag_max=lag)
    found = list[list[int] | None]()
    for up, down, count in runs:
        sync = syncs.copied(up, down, count) if count else syncs.committed()
        found.append(None if sync is None else [sync.upstream, sync.downstream])
    assert expected == found


FILES: tuple[dict[str, str], ...] = (
    {
        "clusters": "primary, backup",
        "primary.bootstrap.servers": "p1:9092",
        "backup.bootstrap.servers": "b1:9092",
        "primary->backup.enabled": "true",
        "primary->backup.topics": "orders.*, payments",
        "backup->primary.enabled": "false",
        "emit.heartbeats.enabled": "true",
        "primary.consumer.isolation.level": "read_committed",
        "backup.exactly.once.source.support": "enabled",
        "replication.factor": "3",
        "tasks.max": "4",
    },
    {
        "clusters": "A,B,C",
        "bootstrap.servers": "shared:9092",
        "A.bootstrap.servers": "a:9092",
        "B.bootstrap.servers": "b:9092",
        "B.security.protocol": "SASL_SSL",
        "B.sasl.jaas.config": "${file:/secrets:jaas}",
        "B.producer.sasl.jaas.config": "its own",
        "security.protocol": "SSL",
        "ssl.truststore.location": "/t.jks",
        "emit.heartbeats.enabled": "false",
        "A->B.enabled": "true",
        "A->B.emit.heartbeats.enabled": "true",
        "C->A.emit.heartbeats.enabled": "true",
        "A->B.source.consumer.fetch.max.bytes": "7",
        "A->B.replication.policy.separator": "_",
        "replication.policy.class": "org.apache.kafka.connect.mirror.IdentityReplicationPolicy",
        "replication.policy.mine": "x",
        "offset.storage.replication.factor": "1",
        "key.converter": "org.apache.kafka.connect.json.JsonConverter",
        "key.converter.schemas.enable": "false",
        "task.shutdown.graceful.timeout.ms": "5",
        "worker.sync.timeout.ms": "7",
        "B.group.id": "mine",
        "B.client.id": "b",
        "A.admin.retries": "3",
        "errors.tolerance": "all",
        "errors.deadletterqueue.topic.name": "not taken",
        "transforms": "none",
        "name": "named",
        "consumer.fetch.min.bytes": "not taken",
    },
)


@pytest.mark.parametrize("props", FILES)
def test_a_file_gives_the_same_flows(judge: JavaJudge, props: dict[str, str]):
    """With the same configurations of workers and connectors, but for what is the mirror's own."""
    expected: dict[str, Any] = judge.mirrored("flows", props)
    found = {each.name: each for each in dedicated_config(props).flows}
    assert sorted(expected) == sorted(found)
    for name, flow in found.items():
        assert expected[name]["worker"] == flow.worker
        for connector, config in flow.connectors.items():
            own = {key: value for key, value in config.items() if key != GROUP_KEY}
            assert expected[name]["connectors"][connector] == own


@pytest.mark.parametrize("props", [{}, {"use.defaults.from": "source"}])
def test_remote_topics_get_the_same_settings(judge: JavaJudge, props: dict[str, str]):
    """When they are created, and later."""
    names = ("retention.ms", "min.insync.replicas", "cleanup.policy")
    asked = [
        [name if number == 0 else f"{name}.{number}", "1", *each]
        for name in names
        for number, each in enumerate(
            (origin, read_only, sensitive)
            for origin in (
                "DYNAMIC_TOPIC_CONFIG",
                "DYNAMIC_BROKER_CONFIG",
                "DYNAMIC_DEFAULT_BROKER_CONFIG",
                "STATIC_BROKER_CONFIG",
                "DEFAULT_CONFIG",
            )
            for read_only in (False, True)
            for sensitive in (False, True)
        )
    ]
    expected = judge.mirrored("given", {"config": FLOW | props, "settings": asked})
    source = {
        name: TopicSetting(
            value,
            is_own=origin == "DYNAMIC_TOPIC_CONFIG",
            is_static=origin == "STATIC_BROKER_CONFIG",
            is_read_only=read_only,
            is_sensitive=sensitive,
            is_default=origin == "DEFAULT_CONFIG",
        )
        for name, value, origin, read_only, sensitive in asked
    }
    chosen = property_filter(props)
    assert expected["created"] == settings_at_creation(source, chosen)
    assert dict(expected["changed"]) == settings_changed(source, chosen)


def test_rights_become_the_same_on_the_target(judge: JavaJudge):
    """Those of single topics."""
    acls = [
        Acl("TOPIC", "t", "LITERAL", "User:x", "*", operation, permission)
        for operation in ("ALL", "READ", "WRITE", "CREATE", "DELETE", "ALTER", "DESCRIBE")
        for permission in ("ALLOW", "DENY")
    ]
    expected = judge.mirrored("allowed", {"config": FLOW, "acls": acls})
    topics = MirrorSourceConfig.parse(FLOW).topics_copied
    kept = dict.fromkeys(Acl(*each) for each in expected if each is not None)
    assert tuple(kept) == remote_acls(acls, topics)


def test_topics_filters_choose_by_the_same_defaults(judge: JavaJudge):
    """Of the filter alone, without policy."""
    calls = [["shouldReplicateTopic", topic] for topic in TOPICS]
    asked = {"class": "DefaultTopicFilter", "config": {}, "calls": calls}
    chosen = topic_filter({})
    assert judge.mirrored("called", asked) == [chosen.copies(topic) for topic in TOPICS]
