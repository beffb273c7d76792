"""The settings of a worker, as declared: Kafka Connect's that have an effect here, and our own."""

from __future__ import annotations

from typing import Final

from headrace.connect.config import Config, setting
from headrace.connect.setting_type import SettingType
from headrace.runtime.settings.client_overrides import policy_problem
from headrace.runtime.settings.worker_values import listener, servers, topic_count

SIMPLE_HEADERS: Final = "org.apache.kafka.connect.storage.SimpleHeaderConverter"


class WorkerSettings(Config):
    """What a worker's file may say; :class:`~headrace.runtime.settings.worker_config.WorkerConfig` is what it means."""

    bootstrap_servers: tuple[str, ...] = setting(
        default=("localhost:9092",),
        importance="high",
        valid=servers,
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
        "Without it, a name is made once and kept in the state file.",
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
        doc="Partitions of the topic of source offsets when it is made; -1 for the broker's default.",
    )
    offset_storage_replication_factor: int = setting(
        default=-1,
        kind=SettingType.SHORT,
        importance="low",
        valid=topic_count,
        doc="Replicas of the topic of source offsets when it is made; -1 for the broker's default.",
    )
    offset_storage_file_filename: str | None = setting(
        default=None,
        importance="low",
        non_empty=True,
        doc="The offsets file of a standalone Java worker, whose place this one takes: it is read once, when "
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
        doc="How long tasks may take to end when they are asked to.",
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
        doc="How often an idle connector is asked for new work: a planned one for a plan, a polled one whether "
        "it has work, if it can tell.",
    )
    poll_linger_ms: int = setting(
        default=1_000,
        kind=SettingType.LONG,
        at_least=0,
        doc="How long a task of a polled connector goes on polling without records before its micro-batch ends. "
        "The time in which poll waits counts.",
    )
    poll_idle_max_ms: int = setting(
        default=30_000,
        kind=SettingType.LONG,
        at_least=0,
        doc="The longest rest between two micro-batches of a polled connector that finds nothing. The first is a "
        "quarter of a second, each one twice as long as the one before it, until something comes.",
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
        doc="Whether topics are made as the settings topic.creation.* of connectors say.",
    )
    topic_tracking_enable: bool = setting(
        default=True,
        importance="low",
        doc="Whether it is kept, and answered, which topics each connector has written to.",
    )
    topic_tracking_allow_reset: bool = setting(
        default=True,
        importance="low",
        doc="Whether a request may have these topics forgotten.",
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
        "one directly below it. A relative path begins at the worker file's folder. Java's are passed over.",
    )
    plugin_discovery: str = setting(
        default="hybrid_warn",
        one_of=("only_scan", "hybrid_warn", "hybrid_fail", "service_load"),
        ignore_case=True,
        importance="low",
        doc="service_load lists plugins of plugin.path only if they have entry points; otherwise its modules are "
        "looked through for classes, too.",
    )
    plugin_modules: tuple[str, ...] = setting(
        default=(),
        doc="Python modules or packages from which classes of plugins may be loaded.",
    )
