"""The settings of a worker: their declarations, the rules across them, and warnings that do not prevent a start."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, Literal

from headrace.config.providers import provider_problems
from headrace.config.spark_cores import (
    is_elsewhere,
    is_loopback,
    machine_cores,
    master_problem,
    shortage,
)
from headrace.config.unknown_keys import (
    DISTRIBUTED_TOPICS,
    GROUP_PREFIXES,
    REST_KEYS,
    REST_PREFIXES,
    WORKER_DEFAULTS,
    WORKER_PREFIXES,
    nearest,
    unknown_key_warnings,
    worker_refusals,
)
from headrace.connect.config import Config, Problem, setting
from headrace.connect.setting import SettingType
from headrace.kafka.client_config import (
    CONNECTION_PREFIXES,
    DEFAULT_TRANSACTION_TIMEOUT_MS,
    servers_problem,
)
from headrace.task.connector_spec import Delivery, PluginChoice

ANYWHERE: Final = ("0.0.0.0", "::")  # noqa: S104 (not bound)
"""The addresses of all interfaces, at which a listener can be bound, and to which no one can connect."""

_LAST_PORT = 65_535
OVERRIDES: Final = ("producer.override.", "consumer.override.", "admin.override.")
"""Prefixes of a connector's keys that override the worker's settings of its clients."""

POLICIES: Final = ("All", "Allowlist", "None", "Principal")
"""The policies by their short names."""

_PACKAGE = "org.apache.kafka.connect.connector.policy"
_SUFFIX = "ConnectorClientConfigOverridePolicy"
SIMPLE_HEADERS: Final = "org.apache.kafka.connect.storage.SimpleHeaderConverter"
ROLES: Final[tuple[Role, ...]] = ("key", "value", "header")
"""The parts of a record that have a converter each."""

_PASSED_ON = (
    *CONNECTION_PREFIXES,
    *(f"{role}.converter." for role in ROLES),
    *REST_PREFIXES,
    *WORKER_PREFIXES,
    "admin.",
    "config.providers.",
    "consumer.",
    "producer.",
    "spark.",
)
_SERVERS = "bootstrap.servers"
_IGNORED = ("internal.key.converter", "internal.value.converter")


def topic_count(value: int) -> str | None:
    """What is wrong with a number of partitions or replicas of a topic to create."""
    # Kafka's own -1 means the broker's default.
    return (
        None
        if value == -1 or value > 0
        else "Value must be positive, or -1 for the broker's default"
    )


def listener(value: str) -> str | None:
    """What is wrong with the address at which the worker listens for its tasks."""
    host, _, port = value.rpartition(":")
    if not host or not port.isdecimal() or int(port) > _LAST_PORT:
        return "It must be host:port, with port 0 for a free one"
    if host.strip("[]") in ANYWHERE:
        # Slots connect to it.
        return "Name an address at which tasks can reach this worker"
    return None


def policy_name(named: str) -> str | None:
    """The short name of the policy that *named* stands for, by short name or Java's class; else ``None``."""
    short = named.strip().removeprefix(f"{_PACKAGE}.").removesuffix(_SUFFIX)
    return short if short in POLICIES else None


def policy_problem(named: str) -> str | None:
    """What is wrong with a policy's name."""
    if policy_name(named):
        return None
    return f"Class {named} could not be found. Valid ones are: {', '.join(POLICIES)}."


class WorkerSettings(Config):
    """The settings of a worker's file; :class:`~headrace.config.worker_config.WorkerConfig` interprets them."""

    bootstrap_servers: tuple[str, ...] = setting(
        default=("localhost:9092",),
        importance="high",
        valid=servers_problem,
        doc="The Kafka cluster for records and offsets, as host:port, separated by commas.",
    )
    key_converter: str = setting(
        kind=SettingType.CLASS,
        importance="high",
        doc="Converter of keys, for connectors that name none; its settings follow it with a dot.",
    )
    value_converter: str = setting(
        kind=SettingType.CLASS,
        importance="high",
        doc="Converter of values, for connectors that name none; its settings follow it with a dot.",
    )
    header_converter: str = setting(
        kind=SettingType.CLASS,
        default=SIMPLE_HEADERS,
        importance="low",
        doc="Converter of headers, for connectors that name none; its settings follow it with a dot.",
    )
    group_id: str | None = setting(
        default=None,
        importance="high",
        non_empty=True,
        doc="The worker's name in Kafka: transactional ids and the offsets topic begin with it. "
        "Without it, a name is generated once and kept in the state file.",
    )
    exactly_once_source_support: str | None = setting(
        default=None,
        importance="high",
        one_of=("disabled", "enabled", "preparing"),
        doc="Whether records and offsets are written in one transaction. Not set means enabled.",
    )
    offset_storage_topic: str | None = setting(
        default=None,
        importance="high",
        non_empty=True,
        doc="The topic of source offsets. Default: the group id followed by -offsets.",
    )
    offset_storage_partitions: int = setting(
        default=25,
        importance="low",
        valid=topic_count,
        doc="Partitions of the topic of source offsets when it is created; -1 for the broker's default.",
    )
    offset_storage_replication_factor: int = setting(
        default=-1,
        kind=SettingType.SHORT,
        importance="low",
        valid=topic_count,
        doc="Replicas of the topic of source offsets when it is created; -1 for the broker's default.",
    )
    offset_storage_file_filename: str | None = setting(
        default=None,
        importance="low",
        non_empty=True,
        doc="The offsets file of a standalone Java worker that this one replaces: it is read once, when "
        "this worker has no offsets yet, and never written. A relative path begins at the working directory.",
    )
    state_file: str | None = setting(
        default=None,
        non_empty=True,
        doc="The SQLite file of configurations and statuses, and of offsets when exactly-once is "
        "off. A relative path begins at the worker file's folder. Default: a file of its own for "
        "each worker file, in $XDG_STATE_HOME/headrace or ~/.local/state/headrace.",
    )
    offset_flush_interval_ms: int = setting(
        default=60_000,
        kind=SettingType.LONG,
        importance="low",
        at_least=1,
        doc="How often offsets are committed when exactly-once is off, how often an idle connector "
        "may move them, and how long a transaction is with transaction.boundary=interval.",
    )
    task_shutdown_graceful_timeout_ms: int = setting(
        default=5_000,
        kind=SettingType.LONG,
        importance="low",
        at_least=0,
        doc="How long tasks may take to end when they have to stop.",
    )
    slots: int = setting(
        "headrace.slots",
        default=2,
        at_least=1,
        doc="How many tasks run at once, when headrace starts Spark by itself.",
    )
    batch_budget_ms: int = setting(
        "headrace.batch.budget.ms",
        default=10_000,
        kind=SettingType.LONG,
        at_least=100,
        doc="How long a micro-batch stays open while other connectors wait for slots, or while one of its "
        "own polled tasks has ended because it was idle.",
    )
    lease_ms: int = setting(
        "headrace.lease.ms",
        default=10_000,
        kind=SettingType.LONG,
        at_least=1_000,
        doc="After how long without an answer from the worker a task gives up and aborts.",
    )
    channel_listener: str = setting(
        "headrace.channel.listener",
        default="127.0.0.1:0",
        importance="low",
        valid=listener,
        doc="Where the worker listens for its tasks, as host:port; port 0 takes a free one.",
    )
    channel_security_protocol: str | None = setting(
        "headrace.channel.security.protocol",
        default=None,
        importance="low",
        one_of=("SSL", "PLAINTEXT"),
        doc="Whether what the worker and its tasks send each other, with connectors' passwords, is encrypted. By default it is "
        "SSL, unless headrace.channel.listener is on the loopback interface, which other machines cannot reach.",
    )
    start_deadline_ms: int = setting(
        "headrace.start.deadline.ms",
        default=60_000,
        kind=SettingType.LONG,
        at_least=0,
        doc="How long to wait for Kafka at the start before giving up.",
    )
    idle_poll_ms: int = setting(
        "headrace.idle.poll.ms",
        default=1_000,
        kind=SettingType.LONG,
        at_least=10,
        doc="How often an idle connector is checked for new work: a planned one makes a plan, a polled one is "
        "probed with has_work, if it has that.",
    )
    poll_linger_ms: int = setting(
        default=1_000,
        kind=SettingType.LONG,
        at_least=0,
        doc="How long a task of a polled connector keeps polling without records before its micro-batch ends, and how long "
        "there has been nothing for any task of a connector that follows its source. The time in which poll waits counts.",
    )
    poll_idle_max_ms: int = setting(
        default=30_000,
        kind=SettingType.LONG,
        at_least=0,
        doc="The longest pause between two micro-batches of a polled connector that finds nothing. The first is a "
        "quarter of a second, each one twice as long as the one before it, until there are records.",
    )
    spark_master: str | None = setting(
        default=None,
        non_empty=True,
        doc="Spark's master. Default: local, with headrace.slots tasks at once; a local one with "
        "fewer is refused. Every other spark.* key is passed to Spark as well.",
    )
    spark_remote: str | None = setting(
        default=None,
        non_empty=True,
        doc="Address of a Spark Connect server, in place of spark.master.",
    )
    config_providers: tuple[str, ...] = setting(
        default=(),
        importance="low",
        doc="Names of configuration providers: with config.providers.x.class set to file, env or directory (or "
        "to Kafka's class), ${x:path:key} in a configuration stands for a value that is kept elsewhere.",
    )
    connector_client_config_override_policy: str = setting(
        default="All",
        valid=policy_problem,
        doc="Which settings of their Kafka clients connectors may override: All, None, Principal (security.protocol, "
        "sasl.mechanism and sasl.jaas.config), or Allowlist (those of connector.client.config.override.allowlist).",
    )
    connector_client_config_override_allowlist: tuple[str, ...] = setting(
        default=(),
        doc="The settings of Kafka clients that connectors may override with the policy Allowlist.",
    )
    topic_creation_enable: bool = setting(
        default=True,
        importance="low",
        doc="Whether topics are created as the settings topic.creation.* of connectors say.",
    )
    topic_tracking_enable: bool = setting(
        default=True,
        importance="low",
        doc="Whether the worker records which topics each connector has written to, and lists them over REST.",
    )
    topic_tracking_allow_reset: bool = setting(
        default=True,
        importance="low",
        doc="Whether a request may reset the topics of a connector.",
    )
    rest_mask_passwords: bool = setting(
        default=False,
        importance="low",
        doc="Whether answers show [hidden] in place of connectors' passwords. A changed configuration with "
        "[hidden] then keeps the stored one.",
    )
    plugin_path: tuple[str, ...] = setting(
        default=(),
        doc="Folders of plugins in Python: modules, packages and installed distributions, in a folder itself or in "
        "one directly below it. A relative path begins at the worker file's folder. Java plugins are ignored.",
    )
    plugin_discovery: str = setting(
        default="hybrid_warn",
        one_of=("only_scan", "hybrid_warn", "hybrid_fail", "service_load"),
        ignore_case=True,
        importance="low",
        doc="service_load lists plugins of plugin.path only if they have entry points; otherwise its modules are "
        "searched for classes, too.",
    )
    plugin_modules: tuple[str, ...] = setting(
        default=(),
        doc="Python modules or packages from which classes of plugins may be loaded.",
    )


Role = Literal["key", "value", "header"]
_ANY_ADDRESS: Final = frozenset({"0.0.0.0", "::", "[::]"})  # noqa: S104 (refused)
_DISTRIBUTED: Final = frozenset(DISTRIBUTED_TOPICS)
# Keys of what a worker that stands alone keeps, or begins with.
_ALONE: Final = ("state.file", "offset.storage.file.filename")


class WorkerConfig(WorkerSettings):
    """How a worker reaches Kafka and Spark, and how long things may take."""

    def check(self) -> Iterator[Problem]:
        """Check rules across settings, and refuse known keys that have no effect yet."""
        known = frozenset(each.name for each in type(self).settings())
        yield from worker_refusals(self.originals, known)
        yield from provider_problems(self.originals)
        if self.exactly_once_source_support == "preparing" and not known >= _DISTRIBUTED:
            yield (
                "exactly.once.source.support",
                "preparing is only needed to upgrade a Kafka Connect cluster; set enabled or disabled.",
            )
        if self.originals.get("spark.speculation", "").strip().lower() == "true":
            yield (
                "spark.speculation",
                "Speculative copies of a task would fence each other; leave it off.",
            )
        if self.spark_master and self.spark_remote:
            yield "spark.remote", "Set spark.master or spark.remote, not both."
        yield from self._slot_problems()
        yield from self._channel_problems()
        yield from self._timing_problems()

    def _slot_problems(self) -> Iterator[Problem]:
        unknown = self.spark_master and master_problem(self.spark_master)
        if unknown:
            yield "spark.master", unknown
        # Spark accepts local[…] as a remote, too: it then starts a server on this machine.
        for key, place in (
            ("spark.master", self.spark_master),
            ("spark.remote", self.spark_remote),
        ):
            problem = shortage(place or "", slots=self.slots, machine=machine_cores())
            if problem:
                yield key, problem

    def _channel_problems(self) -> Iterator[Problem]:
        host, _, _ = self.channel_listener.rpartition(":")
        for key, place in (
            ("spark.master", self.spark_master),
            ("spark.remote", self.spark_remote),
        ):
            if place and is_elsewhere(place) and (is_loopback(host) or host in _ANY_ADDRESS):
                yield (
                    "headrace.channel.listener",
                    (
                        f"With {key}={place} tasks run on other machines, which cannot reach the worker at {host}: set it to a name or an address "
                        "of this machine that they know, as host:port."
                    ),
                )

    def _timing_problems(self) -> Iterator[Problem]:
        timeout = transaction_timeout_ms(self.client("producer"))
        if self.exactly_once and timeout is not None and self.lease_ms >= timeout:
            yield (
                "headrace.lease.ms",
                (
                    f"It must be less than the producer's transaction.timeout.ms ({timeout}), so that "
                    "a task that is cut off gives up before the broker does."
                ),
            )

    @property
    def encrypts_channel(self) -> bool:
        """Whether tasks reach the worker over TLS."""
        if self.channel_security_protocol is None:
            return not is_loopback(self.channel_listener.rpartition(":")[0])
        return self.channel_security_protocol == "SSL"

    @property
    def exactly_once(self) -> bool:
        """Whether source tasks write in transactions; not yet while a group is being prepared for it."""
        return self.exactly_once_source_support in (None, "enabled")

    @property
    def lease_seconds(self) -> float:
        """After how long without an answer from the worker a task gives up."""
        return self.lease_ms / 1e3

    @property
    def delivery(self) -> Delivery:
        """The guarantee that connectors run with."""
        return Delivery.EXACTLY_ONCE if self.exactly_once else Delivery.AT_LEAST_ONCE

    @property
    def offsets_in_topic(self) -> bool:
        """Whether source offsets are in Kafka, and not in the state file."""
        return self.exactly_once or self.offset_storage_topic is not None

    def offsets_topic(self, group_id: str) -> str:
        """The topic of source offsets of the worker that *group_id* names."""
        return self.offset_storage_topic or f"{group_id}-offsets"

    def converter(self, role: Role) -> PluginChoice:
        """The worker's own converter of keys, values or headers, with its settings."""
        return PluginChoice(
            class_name=getattr(self, f"{role}_converter"), config=self.under(f"{role}.converter.")
        )

    def connection(self) -> dict[str, str]:
        """How to reach Kafka, for the worker's own clients."""
        kept = {
            key: value
            for key, value in self.originals.items()
            if key.startswith(CONNECTION_PREFIXES)
            and key not in WORKER_DEFAULTS
            and key not in REST_KEYS
        }
        return {"bootstrap.servers": ",".join(self.bootstrap_servers), **kept}

    def client(self, kind: Literal["producer", "admin"]) -> dict[str, str]:
        """The settings of connectors' clients of this *kind*, as in Connect: security keys need the prefix.

        Only admin clients begin with how the worker itself reaches Kafka.
        """
        servers = {"bootstrap.servers": ",".join(self.bootstrap_servers)}
        begin = self.connection() if kind == "admin" else servers
        return {**begin, **self.under(f"{kind}.")}

    def spark(self) -> dict[str, str]:
        """All of Spark's settings, including the master unless there is a remote."""
        given = {key: value for key, value in self.originals.items() if key.startswith("spark.")}
        if self.spark_remote:
            return given
        return {**given, "spark.master": self.spark_master or f"local[{self.slots}]"}


def transaction_timeout_ms(producer: Mapping[str, str]) -> int | None:
    """How long a transaction of a producer with these settings may stay open; ``None`` if it is no number."""
    given = producer.get("transaction.timeout.ms", str(DEFAULT_TRANSACTION_TIMEOUT_MS)).strip()
    return int(given) if given.isdecimal() else None


def unsupported_keys(props: Mapping[str, str]) -> frozenset[str]:
    """The keys of *props* that are refused because they have no effect here, most of them a distributed worker's."""
    known = frozenset(each.name for each in WorkerConfig.settings())
    return frozenset(key for key, _ in worker_refusals(props, known))


def worker_warnings(
    props: Mapping[str, str], kind: type[WorkerConfig] = WorkerConfig
) -> tuple[str, ...]:
    """Sentences about keys that have no effect for a worker of that *kind*, such as misspelt ones."""
    known = _known(kind)
    is_distributed = _is_distributed(kind)
    of_others = () if is_distributed else GROUP_PREFIXES
    apart = (*_PASSED_ON, *_IGNORED, *of_others)
    unknown = (key for key in props if key not in known and not key.startswith(apart))
    ignored = (
        f"{key} is ignored: internal records are always JSON without schemas."
        for key in _IGNORED
        if any(each.startswith(key) for each in props)
    )
    return (
        *unknown_key_warnings(unknown, known),
        *ignored,
        *(_alone_warnings(props) if is_distributed else _group_warnings(props)),
        *_delivery_warnings(props),
    )


def servers_problems(props: Mapping[str, str]) -> Iterator[Problem]:
    """The problem of a misspelt ``bootstrap.servers``: the default may be another cluster than the intended one."""
    meant = misspelt_servers(props)
    if meant:
        yield (
            _SERVERS,
            f"It is not set, but '{meant}' is, which isn't a known config. Did you mean '{_SERVERS}'?",
        )


def misspelt_servers(props: Mapping[str, str]) -> str | None:
    """The key of *props* that is meant to be ``bootstrap.servers``; ``None`` if that is set, or none resembles it."""
    return None if _SERVERS in props else nearest(_SERVERS, props.keys() - _known())


def _known(kind: type[WorkerConfig] = WorkerConfig) -> frozenset[str]:
    settings = frozenset(each.name for each in kind.settings())
    return settings | WORKER_DEFAULTS.keys() | REST_KEYS


def _is_distributed(kind: type[WorkerConfig]) -> bool:
    return frozenset(each.name for each in kind.settings()) >= _DISTRIBUTED


def _group_warnings(props: Mapping[str, str]) -> Iterator[str]:
    for key in props:
        if key.startswith(GROUP_PREFIXES):
            yield f"{key} has no effect here: it is for the workers of a group, which 'headrace worker' starts."


def _alone_warnings(props: Mapping[str, str]) -> Iterator[str]:
    for key in _ALONE:
        if key in props:
            yield (
                f"{key} has no effect here: a worker of a group keeps configurations, offsets and states in the topics of "
                "config.storage.topic, offset.storage.topic and status.storage.topic."
            )


def _delivery_warnings(props: Mapping[str, str]) -> Iterator[str]:
    if props.get("exactly.once.source.support", "").strip() == "disabled":
        yield (
            "exactly.once.source.support=disabled: after a failure, some records may be sent to Kafka again. "
            "Leave it out for exactly-once."
        )
