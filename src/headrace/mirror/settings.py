"""The settings of the three connectors: MirrorMaker's keys and defaults, and the mirror's own beside them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final, Literal, TypeVar

from headrace.connect.config import Config, Problem, every_problem
from headrace.connect.connector import ExactlyOnceSupport
from headrace.connect.setting import SettingType, setting
from headrace.mirror.client_settings import (
    PASSED_ON,
    SERVERS,
    ClientKind,
    ClientRole,
    Side,
    client_id,
    client_settings,
)
from headrace.mirror.filters import (
    ConfigPropertyFilterConfig,
    CopiedTopics,
    GroupFilterConfig,
    TopicFilterConfig,
    topic_filter,
)
from headrace.mirror.policies import (
    DEFAULT_POLICY,
    DEFAULT_SEPARATOR,
    IdentityReplicationPolicy,
    ReplicationPolicy,
    alias_problem,
    policy_problem,
    replication_policy,
    separator_problem,
)

_FORWARDING_ADMIN: Final = "org.apache.kafka.clients.admin.ForwardingAdmin"
_READ_COMMITTED: Final = "read_committed"
_REFRESH_TOPICS: Final = "refresh.topics.interval.seconds"
_SYNCS_KEYS: Final = ("offset-syncs-", "offset-syncs.topic.")
_OF_WORKERS: Final = ("config.providers", "metric.reporters", "sasl.", "security.protocol", "ssl.")
SYNCS_REPLICATION: Final = "offset-syncs.topic.replication.factor"
RANGES_REPLICATION: Final = "mirror.offset.ranges.topic.replication.factor"
_BROKERS_DEFAULT: Final = -1
_LONG: Final = SettingType.LONG
_SHORT: Final = SettingType.SHORT


def _admin_problem(path: str) -> str | None:
    if path.strip() in (_FORWARDING_ADMIN, "ForwardingAdmin"):
        return None
    return "Java classes are not supported here; leave it out. Topics are created with the mirror's own client"


def _start_problem(text: str) -> str | None:
    if text in ("earliest", "latest") or (text.isascii() and text.isdecimal()):
        return None
    return "It is earliest, latest, or a time in milliseconds since 1970"


def _replication_problem(factor: int) -> str | None:
    is_possible = factor == _BROKERS_DEFAULT or factor > 0
    return None if is_possible else "Value must be positive, or -1 for the broker's default"


def _interval_problem(seconds: int) -> str | None:
    # MirrorMaker's scheduler fails with it, or does not pause.
    return "Value must be at least 1, or negative for never" if seconds == 0 else None


PATIENCE_SECONDS: Final = 15.0
"""How long an answer of a cluster is waited for on the driver, at most; what got none is tried again."""


class MirrorConnectorConfig(Config):
    """What the three connectors have in common."""

    enabled: bool = setting(
        default=True,
        importance="low",
        doc="Whether the flow is copied; `false`: the connector runs without doing anything.",
    )
    source_cluster_alias: str = setting(
        importance="high",
        non_empty=True,
        doc="What the source cluster is called; remote topics are named after it.",
    )
    target_cluster_alias: str = setting(
        default="target",
        importance="high",
        non_empty=True,
        doc="What the target cluster is called; a topic that was copied from it is not copied back to it.",
    )
    admin_timeout_ms: int = setting(
        default=60_000,
        kind=_LONG,
        importance="low",
        doc="How long, in milliseconds, a request that creates, lists or changes topics may take.",
    )
    replication_policy_class: str = setting(
        default=DEFAULT_POLICY,
        kind=SettingType.CLASS,
        importance="low",
        valid=policy_problem,
        doc="How remote topics are called: DefaultReplicationPolicy (the source's alias before the name), "
        "IdentityReplicationPolicy (the same name), or package.module:Class of your own.",
    )
    replication_policy_separator: str = setting(
        default=DEFAULT_SEPARATOR,
        importance="low",
        valid=separator_problem,
        doc="What stands between an alias and a topic's name.",
    )
    replication_policy_internal_topic_separator_enabled: bool = setting(
        default=True,
        importance="low",
        doc="Whether that separator is also used in the names of internal topics; otherwise they have a dot.",
    )
    forwarding_admin_class: str = setting(
        default=_FORWARDING_ADMIN,
        kind=SettingType.CLASS,
        importance="low",
        valid=_admin_problem,
        doc="MirrorMaker's class for creating topics elsewhere than on the brokers; only its default is supported.",
    )

    def check(self) -> Iterator[Problem]:
        """Aliases have to be found again in remote names."""
        policy = self.policy
        for key, alias in (
            ("source.cluster.alias", self.source_cluster_alias),
            ("target.cluster.alias", self.target_cluster_alias),
        ):
            if (problem := alias_problem(policy, alias)) is not None:
                yield key, problem

    @property
    def policy(self) -> ReplicationPolicy:
        """The policy, configured."""
        return replication_policy(self.originals)

    @property
    def patience_seconds(self) -> float:
        """How long the driver waits for an answer of a cluster."""
        return min(self.admin_timeout_ms / 1e3, PATIENCE_SECONDS)

    @property
    def name(self) -> str:
        """The connector's name."""
        return self.originals.get("name", "")

    @property
    def flow(self) -> str:
        """Where from and where to: ``A->B``."""
        return f"{self.source_cluster_alias}->{self.target_cluster_alias}"

    def client(
        self, side: Side, kind: ClientKind, role: ClientRole, *, task: int | None = None
    ) -> dict[str, str]:
        """The settings of one of the connector's own clients, under the Java clients' names; may lack servers."""
        called = client_id(
            source=self.source_cluster_alias,
            target=self.target_cluster_alias,
            connector=self.name,
            role=role,
            task=task,
        )
        return client_settings(self.originals, side, kind, called)


class OffsetSyncsConfig(Config):
    """Where offset syncs are, for those who write and those who read them."""

    offset_syncs_topic_location: Literal["source", "target"] = setting(
        "offset-syncs.topic.location",
        default="source",
        importance="low",
        doc="On which of the two clusters the topic of offset syncs is: `source` or `target`.",
    )
    emit_offset_syncs_enabled: bool = setting(
        "emit.offset-syncs.enabled",
        default=True,
        importance="low",
        doc="Whether offset syncs are written, by which MirrorMaker's checkpoint connector translates offsets.",
    )


class MetricNamesConfig(Config):
    """How metrics are called, for the connectors that have some."""

    metric_names_formats: tuple[str, ...] = setting(
        default=("legacy",),
        one_of=("legacy", "new"),
        importance="low",
        doc="Under which of MirrorMaker's two kinds of names metrics are offered: `legacy`, `new`, or both.",
    )


class RecordsLostConfig(Config):
    """What is done where what is there does not fit the positions; one partition at a time, and always reported."""

    on_lost: Literal["fail", "continue"] = setting(
        "mirror.on.lost",
        default="fail",
        doc="What to do when records of the source that were to be copied next are gone: deleted before they were copied, or "
        "lost with an unclean leader election that moved the partition's end back. `fail`, or `continue` with what is there.",
    )
    on_recreated: Literal["fail", "continue", "restart"] = setting(
        "mirror.on.recreated",
        default="fail",
        doc="What to do when a topic of the source was deleted and created again: `fail`, `continue` at the old position, or "
        "`restart` with the new topic's first record.",
    )
    on_removed: Literal["fail", "continue"] = setting(
        "mirror.on.removed",
        default="continue",
        doc="What to do when a topic of the source is gone: `continue` with the others, or `fail`. Its remote topic stays.",
    )
    on_foreign: Literal["fail", "continue"] = setting(
        "mirror.on.foreign",
        default="fail",
        doc="What to do with a position that this flow did not write, or wrote when the source's alias meant another cluster, "
        "and with a remote topic that has records of others: `fail`, or `continue` and take them for this flow's own.",
    )
    on_expired: Literal["fail", "continue"] = setting(
        "mirror.on.expired",
        default="fail",
        doc="What to do with a partition that has no position although its remote partition has records, as after "
        "`offsets.retention.minutes` without the mirror: `fail`, or `continue` as with a new one, which may copy records "
        "twice.",
    )
    on_remote_removed: Literal["fail", "continue"] = setting(
        "mirror.on.remote.removed",
        default="fail",
        doc="What to do when a remote topic was deleted, or has fewer partitions than copied ones and cannot be extended: "
        "`fail`, or `continue`: it is created again, and copying goes on at the position, or at the beginning where the "
        "position is gone with the topic.",
    )


class MirrorSourceConfig(
    TopicFilterConfig,
    ConfigPropertyFilterConfig,
    OffsetSyncsConfig,
    RecordsLostConfig,
    MetricNamesConfig,
    MirrorConnectorConfig,
):
    """The settings of the connector that copies records."""

    consumer_poll_timeout_ms: int = setting(
        default=1_000,
        kind=_LONG,
        importance="low",
        doc="How long, in milliseconds, a poll of the source waits for records.",
    )
    refresh_topics_enabled: bool = setting(
        default=True,
        importance="low",
        doc="Whether topics and partitions that are new are looked for while the connector runs.",
    )
    refresh_topics_interval_seconds: int | None = setting(
        default=None,
        kind=_LONG,
        importance="low",
        valid=_interval_problem,
        doc="How often, in seconds. Default: `partition.discovery.interval.ms`.",
    )
    partition_discovery_interval_ms: int = setting(
        default=300_000,
        kind=_LONG,
        importance="low",
        doc="The same in milliseconds, under the key of the Kafka source. 0 or less: only at the start.",
    )
    sync_topic_configs_enabled: bool = setting(
        default=True,
        importance="low",
        doc="Whether remote topics are given the settings of their source topics also when those change, and not only when they "
        "are created.",
    )
    sync_topic_configs_interval_seconds: int = setting(
        default=600,
        kind=_LONG,
        importance="low",
        valid=_interval_problem,
        doc="How often, in seconds.",
    )
    sync_topic_acls_enabled: bool = setting(
        default=True,
        importance="low",
        doc="Whether remote topics are given the ACLs of their source topics, but for those to write.",
    )
    sync_topic_acls_interval_seconds: int = setting(
        default=600,
        kind=_LONG,
        importance="low",
        valid=_interval_problem,
        doc="How often, in seconds.",
    )
    replication_factor: int = setting(
        default=2,
        importance="low",
        valid=_replication_problem,
        doc="The replication factor of remote topics that are created.",
    )
    offset_syncs_topic_replication_factor: int = setting(
        SYNCS_REPLICATION,
        default=3,
        kind=_SHORT,
        importance="low",
        valid=_replication_problem,
        doc="The replication factor of the topic of offset syncs when it is created.",
    )
    offset_lag_max: int = setting(
        default=100,
        kind=_LONG,
        at_least=0,
        importance="low",
        doc="By how many records a partition's last offset sync may be behind before another one is written.",
    )
    heartbeats_replication_enabled: bool = setting(
        default=True,
        importance="low",
        doc="Whether topics of heartbeats are copied although `topics` does not have them.",
    )
    mirror_group_id: str | None = setting(
        default=None,
        non_empty=True,
        doc="The consumer group on the target in which the mirror keeps its positions, and which nobody may consume with. "
        "Default: `connect-` and the connector's name.",
    )
    mirror_start: str | None = setting(
        default=None,
        valid=_start_problem,
        doc="Where topics start that are there when the mirror first runs: `earliest`, `latest`, or a time in milliseconds "
        "since 1970. Later ones start with their first record. Default: the consumer's `auto.offset.reset`, or `earliest`.",
    )
    mirror_offset_ranges_enabled: bool = setting(
        default=True,
        doc="Whether the mirror writes down, in the transactions of the records, where offsets of the source went, so that "
        "its checkpoints are exact.",
    )
    mirror_offset_ranges_topic_replication_factor: int | None = setting(
        default=None,
        kind=_SHORT,
        importance="low",
        valid=_replication_problem,
        doc="The replication factor of that topic when it is created. Default: `offset-syncs.topic.replication.factor`.",
    )
    transaction_producer_enabled: bool = setting(
        default=True,
        doc="Whether records and positions are written in transactions, which makes copying exactly once. `false`: an "
        "idempotent producer, with positions committed after the records.",
    )

    def check(self) -> Iterator[Problem]:
        """Rules of MirrorMaker, and of the mirror, across settings."""
        yield from super().check()
        yield from self._exactly_once_problems()
        yield from self._syncs_problems()
        yield from self._same_cluster_problems()
        if (
            _REFRESH_TOPICS in self.originals
            and "partition.discovery.interval.ms" in self.originals
        ):
            told = f"{_REFRESH_TOPICS} is given, too. Leave one of the two out."
            yield "partition.discovery.interval.ms", told

    @property
    def topics_copied(self) -> CopiedTopics:
        """Which topics are copied."""
        return CopiedTopics(
            policy=self.policy,
            chosen=topic_filter(self.originals),
            source=self.source_cluster_alias,
            target=self.target_cluster_alias,
            has_heartbeats=self.heartbeats_replication_enabled,
        )

    @property
    def group_id(self) -> str:
        """The group on the target that has the positions."""
        return self.mirror_group_id or f"connect-{self.name}"

    @property
    def start(self) -> str:
        """``earliest``, ``latest``, ``none``, or milliseconds since 1970, for partitions of the first discovery."""
        reset = self._consumer().get("auto.offset.reset", "earliest").strip().lower()
        return self.mirror_start or reset

    @property
    def isolation_level(self) -> str:
        """How the source is read: ``read_committed``, unless the consumer's settings say otherwise."""
        return self._consumer().get("isolation.level", _READ_COMMITTED).strip().lower()

    @property
    def exactly_once_support(self) -> ExactlyOnceSupport:
        """Whether copying is exactly once with these settings."""
        is_exact = self.transaction_producer_enabled and self.isolation_level == _READ_COMMITTED
        return ExactlyOnceSupport.SUPPORTED if is_exact else ExactlyOnceSupport.UNSUPPORTED

    @property
    def ranges_replication(self) -> int:
        """The replication factor of the topic of offset ranges."""
        own = self.mirror_offset_ranges_topic_replication_factor
        return self.offset_syncs_topic_replication_factor if own is None else own

    @property
    def ranges_replication_key(self) -> str:
        """The key of the setting that says it."""
        own = self.mirror_offset_ranges_topic_replication_factor
        return SYNCS_REPLICATION if own is None else RANGES_REPLICATION

    @property
    def discovery_seconds(self) -> float | None:
        """Seconds between two discoveries; ``None``: only the first one."""
        if not self.refresh_topics_enabled:
            return None
        if self.refresh_topics_interval_seconds is not None:
            return interval(enabled=True, seconds=self.refresh_topics_interval_seconds)
        milliseconds = self.partition_discovery_interval_ms
        return milliseconds / 1e3 if milliseconds > 0 else None

    @property
    def sync_configs_seconds(self) -> float | None:
        """Seconds between two syncs of topics' settings; ``None``: there are none."""
        return interval(
            enabled=self.sync_topic_configs_enabled,
            seconds=self.sync_topic_configs_interval_seconds,
        )

    @property
    def sync_acls_seconds(self) -> float | None:
        """Seconds between two syncs of ACLs; ``None``: there are none."""
        return interval(
            enabled=self.sync_topic_acls_enabled, seconds=self.sync_topic_acls_interval_seconds
        )

    @property
    def offset_syncs_topic(self) -> str:
        """The topic of offset syncs, on the cluster of ``offset-syncs.topic.location``."""
        return offset_syncs_topic(self, self.offset_syncs_topic_location)

    def _consumer(self) -> Mapping[str, str]:
        return self.client(Side.SOURCE, ClientKind.CONSUMER, ClientRole.REPLICATION_CONSUMER)

    def _exactly_once_problems(self) -> Iterator[Problem]:
        if self.originals.get("exactly.once.support", "").strip().lower() != "required":
            return
        if self.isolation_level != _READ_COMMITTED:
            yield (
                "exactly.once.support",
                (
                    "MirrorSourceConnector can only provide exactly-once guarantees when its source consumer is configured with "
                    "isolation.level set to 'read_committed'; otherwise, records from aborted and uncommitted transactions will be "
                    "replicated from the source cluster to the target cluster."
                ),
            )
        if not self.transaction_producer_enabled:
            yield (
                "exactly.once.support",
                "Without transactions there is no exactly-once: leave transaction.producer.enabled out.",
            )

    def _syncs_problems(self) -> Iterator[Problem]:
        has_keys = any(key.startswith(_SYNCS_KEYS) for key in self.originals)
        if has_keys and not self.emit_offset_syncs_enabled:
            yield (
                "emit.offset-syncs.enabled",
                "MirrorSourceConnector can't setup offset-syncs feature while emit.offset-syncs.enabled set to false",
            )

    def _same_cluster_problems(self) -> Iterator[Problem]:
        if not isinstance(self.policy, IdentityReplicationPolicy):
            return
        servers = {
            side: _addresses(self.originals.get(f"{side.value}.cluster.{SERVERS}", ""))
            for side in Side
        }
        if servers[Side.SOURCE] & servers[Side.TARGET]:
            yield "replication.policy.class", same_cluster(self.flow)


class MirrorCheckpointConfig(
    TopicFilterConfig,
    GroupFilterConfig,
    OffsetSyncsConfig,
    MetricNamesConfig,
    MirrorConnectorConfig,
):
    """The settings of the connector that translates groups' offsets."""

    consumer_poll_timeout_ms: int = setting(
        default=1_000,
        kind=_LONG,
        importance="low",
        doc="How long, in milliseconds, a poll of offset syncs and checkpoints waits.",
    )
    refresh_groups_enabled: bool = setting(
        default=True, importance="low", doc="Whether groups that are new are looked for."
    )
    refresh_groups_interval_seconds: int = setting(
        default=600,
        kind=_LONG,
        importance="low",
        valid=_interval_problem,
        doc="How often, in seconds.",
    )
    emit_checkpoints_enabled: bool = setting(
        default=True, importance="low", doc="Whether checkpoints are written to the target."
    )
    emit_checkpoints_interval_seconds: int = setting(
        default=60,
        kind=_LONG,
        importance="low",
        valid=_interval_problem,
        doc="How often, in seconds.",
    )
    sync_group_offsets_enabled: bool = setting(
        default=False,
        importance="low",
        doc="Whether translated offsets are also committed on the target, for groups that have no members there.",
    )
    sync_group_offsets_interval_seconds: int = setting(
        default=60,
        kind=_LONG,
        importance="low",
        valid=_interval_problem,
        doc="How often, in seconds.",
    )
    checkpoints_topic_replication_factor: int = setting(
        default=3,
        kind=_SHORT,
        importance="low",
        valid=_replication_problem,
        doc="The replication factor of the topic of checkpoints when it is created.",
    )

    def check(self) -> Iterator[Problem]:
        """Rules of MirrorMaker across settings."""
        yield from super().check()
        if not self.enabled:
            return
        if not self.emit_checkpoints_enabled:
            yield (
                "emit.checkpoints.enabled",
                "MirrorCheckpointConnector can't run with emit.checkpoints.enabled set to false",
            )
        if not self.emit_offset_syncs_enabled:
            yield (
                "emit.offset-syncs.enabled",
                "MirrorCheckpointConnector can't run without offset syncs",
            )

    @property
    def refresh_groups_seconds(self) -> float | None:
        """Seconds between two looks for groups; ``None``: only the first one."""
        return interval(
            enabled=self.refresh_groups_enabled, seconds=self.refresh_groups_interval_seconds
        )

    @property
    def emit_seconds(self) -> float | None:
        """Seconds between two checkpoints of a group; ``None``: there are none."""
        return interval(
            enabled=self.emit_checkpoints_enabled, seconds=self.emit_checkpoints_interval_seconds
        )

    @property
    def sync_offsets_seconds(self) -> float | None:
        """Seconds between two commits of translated offsets; ``None``: there are none."""
        return interval(
            enabled=self.sync_group_offsets_enabled,
            seconds=self.sync_group_offsets_interval_seconds,
        )

    @property
    def offset_syncs_topic(self) -> str:
        """The topic of offset syncs, on the cluster of ``offset-syncs.topic.location``."""
        return offset_syncs_topic(self, self.offset_syncs_topic_location)


class MirrorHeartbeatConfig(MirrorConnectorConfig):
    """The settings of the connector that sends heartbeats."""

    emit_heartbeats_enabled: bool = setting(
        default=True, importance="low", doc="Whether heartbeats are sent to the target."
    )
    emit_heartbeats_interval_seconds: int = setting(
        default=1,
        kind=_LONG,
        importance="low",
        valid=_interval_problem,
        doc="How often, in seconds.",
    )
    heartbeats_topic_replication_factor: int = setting(
        default=3,
        kind=_SHORT,
        importance="low",
        valid=_replication_problem,
        doc="The replication factor of the topic of heartbeats when it is created.",
    )

    @property
    def emit_seconds(self) -> float | None:
        """Seconds between two heartbeats; ``None``: there are none."""
        return interval(
            enabled=self.emit_heartbeats_enabled, seconds=self.emit_heartbeats_interval_seconds
        )


_Connector = TypeVar("_Connector", bound=MirrorConnectorConfig)


def mirror_problems(
    kind: type[_Connector],
    props: Mapping[str, str],
    of_clients: Callable[[_Connector], Iterable[Problem]],
) -> tuple[Problem, ...]:
    """All that is wrong with *props* as a *kind*, with what *of_clients* finds where single settings are wrong, too."""
    return every_problem(kind, props, of_clients, instead=_HARMLESS)


# In place of what is missing or cannot be read, so that rules about names have one.
_HARMLESS: Final = {"source.cluster.alias": "source"}

GIVEN_TO_ALL: Final = (
    *PASSED_ON,
    *_OF_WORKERS,
    *(
        each.name
        for config in (MirrorSourceConfig, MirrorCheckpointConfig, MirrorHeartbeatConfig)
        for each in config.settings()
    ),
)
"""Beginnings of keys that each of the three connectors may have without a warning.

MirrorMaker's dedicated mode gives each of them the settings of all three, of clients, and of the worker.
"""


def interval(*, enabled: bool, seconds: int) -> float | None:
    """The seconds between two runs of something that may be disabled; ``None``: it is, as by a negative interval."""
    return float(seconds) if enabled and seconds > 0 else None


def offset_syncs_topic(config: MirrorConnectorConfig, location: str) -> str:
    """The topic of offset syncs, which is named after the cluster where it is not."""
    is_at_source = location == Side.SOURCE.value
    other = config.target_cluster_alias if is_at_source else config.source_cluster_alias
    return config.policy.offset_syncs_topic(other)


def same_cluster(flow: str) -> str:
    """Why a *flow* cannot be copied under the same names within one cluster."""
    return (
        f"The source and the target of {flow} are one cluster, and the identity policy gives remote topics the names of "
        "their sources: each record would be copied again without end. Use DefaultReplicationPolicy, or name another "
        "cluster."
    )


def _addresses(servers: str) -> frozenset[str]:
    return frozenset(
        each.strip().rpartition("//")[2].lower() for each in servers.split(",") if each.strip()
    )
