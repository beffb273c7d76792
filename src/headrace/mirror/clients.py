"""A mirror's own clients: of the source cluster, which it reads, and of the target, where it looks and creates topics."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from headrace.connect.config import Problem
from headrace.connect.errors import ConfigError
from headrace.kafka.batches.decoding import Decoding
from headrace.kafka.client_config import client_config, named_servers, servers_problem
from headrace.kafka.topic_admin import TopicAdmin
from headrace.kafka.wire import consumer_settings
from headrace.kafka.wire.cluster import Cluster, IsolationLevel
from headrace.kafka.wire.consumer_settings import ISOLATION_LEVELS, checks_crcs
from headrace.kafka.wire.fetcher import FetchSettings
from headrace.kafka.wire.settings import wire_settings
from headrace.mirror.client_settings import SERVERS, ClientKind, ClientRole, Side
from headrace.mirror.settings import MirrorConnectorConfig, MirrorSourceConfig

# What was fetched stays in memory until the target has all of it, and some of it at least four times.
_USUAL: Final = FetchSettings(max_bytes=4 << 20, max_partition_bytes=4 << 20)


def source_cluster(config: MirrorSourceConfig, *, task: int | None = None) -> Cluster:
    """The cluster that is read, for the driver or for a *task*; nothing is connected before its first use."""
    consumer = _consumer(config, task)
    return Cluster(wire_settings(client_config(consumer).settings))


def source_admin_cluster(config: MirrorConnectorConfig, role: ClientRole) -> Cluster:
    """The source cluster, for questions of the driver; nothing is connected before its first use."""
    return Cluster(
        wire_settings(client_config(config.client(Side.SOURCE, ClientKind.ADMIN, role)).settings)
    )


def target_cluster(
    config: MirrorConnectorConfig,
    worker: Mapping[str, str],
    role: ClientRole = ClientRole.REPLICATION_TARGET_ADMIN,
) -> Cluster:
    """The cluster that is copied to, for questions; nothing is connected before its first use.

    Where the connector's own settings do not name it, *worker* says how an admin client of the worker's reaches it.
    """
    return Cluster(wire_settings(client_config(_target(config, worker, role)).settings))


def worker_admin(config: MirrorConnectorConfig, worker: Mapping[str, str]) -> TopicAdmin | None:
    """An admin client of the cluster that the tasks write to, if it may be another one than that of the connector's own settings."""
    return TopicAdmin(client_config(worker)) if _may_be_elsewhere(config, worker) else None


def target_admin(
    config: MirrorConnectorConfig,
    worker: Mapping[str, str],
    role: ClientRole = ClientRole.REPLICATION_TARGET_ADMIN,
) -> TopicAdmin:
    """An admin client of the cluster that is copied to; *worker* as for :func:`target_cluster`."""
    return TopicAdmin(client_config(_target(config, worker, role)))


def source_admin(
    config: MirrorConnectorConfig, role: ClientRole = ClientRole.REPLICATION_SOURCE_ADMIN
) -> TopicAdmin:
    """An admin client of the cluster that is read."""
    return TopicAdmin(client_config(config.client(Side.SOURCE, ClientKind.ADMIN, role)))


def isolation(config: MirrorSourceConfig) -> IsolationLevel:
    """Which records of transactions are copied."""
    return ISOLATION_LEVELS.get(config.isolation_level, IsolationLevel.READ_COMMITTED)


def fetch_settings(config: MirrorSourceConfig) -> FetchSettings:
    """How much a fetch brings, by the Java consumer's settings."""
    return consumer_settings.fetch_settings(_consumer(config), isolation(config), usual=_USUAL)


def decoding(config: MirrorSourceConfig) -> Decoding:
    """How batches are decoded where something looks at the records."""
    return Decoding(with_headers=True, check_crcs=checks_crcs(_consumer(config)))


def client_problems(config: MirrorSourceConfig) -> Iterator[Problem]:
    """What is wrong with the settings of these clients; reads key files, and asks no broker."""
    if not _consumer(config).get(SERVERS, "").strip():
        yield f"source.cluster.{SERVERS}", "Name brokers of the source cluster."
    yield from _problems_of(config, Side.SOURCE, ClientKind.CONSUMER, _consumer(config))
    yield from target_problems(config)
    try:
        fetch_settings(config)
    except ConfigError as error:
        yield from ((f"source.consumer.{key}", sentence) for key, sentence in error.problems)
    level = config.isolation_level
    if level not in ISOLATION_LEVELS:
        reason = f"{level} is no isolation level; it is read_committed or read_uncommitted."
        yield _key(config, Side.SOURCE, ClientKind.CONSUMER, "isolation.level"), reason


def admin_problems(config: MirrorConnectorConfig) -> Iterator[Problem]:
    """What is wrong with the settings of a connector's admin clients of both clusters."""
    source = config.client(Side.SOURCE, ClientKind.ADMIN, ClientRole.CHECKPOINT_SOURCE_ADMIN)
    if not source.get(SERVERS, "").strip():
        yield f"source.cluster.{SERVERS}", "Name brokers of the source cluster."
    yield from _problems_of(config, Side.SOURCE, ClientKind.ADMIN, source)
    yield from target_problems(config)


def target_problems(config: MirrorConnectorConfig) -> Iterator[Problem]:
    """What is wrong with the settings of clients of the target."""
    yield from _problems_of(config, Side.TARGET, ClientKind.ADMIN, _target(config, {}))


def _problems_of(
    config: MirrorConnectorConfig, side: Side, kind: ClientKind, client: Mapping[str, str]
) -> Iterator[Problem]:
    servers = named_servers(client.get(SERVERS, ""))
    if servers and (problem := servers_problem(servers)) is not None:
        yield _key(config, side, kind, SERVERS), problem
        return
    try:
        wire_settings(client_config(client).settings)
    except ConfigError as error:
        for key, sentence in error.problems:
            yield _key(config, side, kind, key), sentence


def _may_be_elsewhere(config: MirrorConnectorConfig, worker: Mapping[str, str]) -> bool:
    """Whether the connector's own settings name the target by other addresses than the *worker*'s."""
    own = _target(config, {}).get(SERVERS, "").strip()
    return bool(own and worker) and own != worker.get(SERVERS, "").strip()


def _consumer(config: MirrorSourceConfig, task: int | None = None) -> dict[str, str]:
    role = ClientRole.REPLICATION_CONSUMER
    return config.client(Side.SOURCE, ClientKind.CONSUMER, role, task=task)


def _target(
    config: MirrorConnectorConfig,
    worker: Mapping[str, str],
    role: ClientRole = ClientRole.REPLICATION_TARGET_ADMIN,
) -> dict[str, str]:
    own = config.client(Side.TARGET, ClientKind.ADMIN, role)
    if own.get(SERVERS, "").strip():
        return own
    return {**worker, **own, SERVERS: worker.get(SERVERS, "")}


def _key(config: MirrorConnectorConfig, side: Side, kind: ClientKind, key: str) -> str:
    """The user's own key for *key* of a client."""
    prefixes = (f"{side.value}.{kind.value}.", f"{kind.value}.", f"{side.value}.cluster.")
    given = (f"{prefix}{key}" for prefix in prefixes)
    return next((each for each in given if each in config.originals), f"{prefixes[0]}{key}")
