"""The settings that every source connector has, whatever it reads: delivery, errors (KIP-298), steps."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

from headrace import __version__
from headrace.config.topic_settings import TopicSettings
from headrace.config.unknown_keys import connector_refusals
from headrace.config.worker_config import Role, WorkerConfig, transaction_timeout_ms
from headrace.connect.config import Config, Problem, setting, under
from headrace.connect.connector import SourceConnector
from headrace.connect.setting import SettingType, parsed
from headrace.herder.requests import name_too_long
from headrace.task.connector_spec import BoundaryKind, ErrorPolicy, PluginChoice, StageChoice

_ALL: Final = "all"
_WITHOUT_END = -1
_TOPIC = re.compile(r"[a-zA-Z0-9._-]{1,249}")
_REQUIRED = "required"
DEFAULT_INTERVAL_MS: Final = 1_000
_OWN: Final = "headrace."
CONNECTOR_CLASS: Final = "connector.class"
TRANSFORMS: Final = "transforms"
PREDICATES: Final = "predicates"
KEYS: Final = (TRANSFORMS, PREDICATES)
"""The settings that list aliases."""

OF_RUNTIME: Final = ("type", "plugin.version", "predicate", "negate")
"""The keys of an alias that are not settings of its class."""


def topic_name_problem(name: str) -> str | None:
    """Why Kafka allows no topic of that *name*; an empty one means that there is no topic."""
    if not name or (_TOPIC.fullmatch(name) and name not in (".", "..")):
        return None
    return "It is not a valid name of a Kafka topic"


def _retry_timeout(milliseconds: int) -> str | None:
    return None if milliseconds >= _WITHOUT_END else "Value must be at least -1"


def _replication(number: int) -> str | None:
    if number == -1 or number >= 1:
        return None
    return "Value must be at least 1, or -1 for the brokers' default"


class ErrorSettings(Config):
    """Whether bad records fail the task, and where they go otherwise; part of every connector's configuration."""

    errors_retry_timeout: int = setting(
        default=0,
        kind=SettingType.LONG,
        valid=_retry_timeout,
        doc="How long in milliseconds a transformation or conversion with a temporary failure is tried again; "
        "-1: without limit; 0: not at all, the work is then planned again.",
        group="Error Handling",
        order=1,
        width="MEDIUM",
        display_name="Retry Timeout for Errors",
    )
    errors_retry_delay_max_ms: int = setting(
        default=60_000,
        kind=SettingType.LONG,
        at_least=1,
        doc="The longest wait between two of these tries, in milliseconds.",
        group="Error Handling",
        order=2,
        width="MEDIUM",
        display_name="Maximum Delay Between Retries for Errors",
    )
    errors_tolerance: str = setting(
        default="none",
        one_of=("none", _ALL),
        doc="What happens to a record that cannot be read, converted or sent: none fails the task, all skips "
        "the record and continues.",
        group="Error Handling",
        order=3,
        width="SHORT",
        display_name="Error Tolerance",
    )
    errors_log_enable: bool = setting(
        default=False,
        doc="Whether each bad record is logged with its stage, whether or not it is skipped.",
        group="Error Handling",
        order=4,
        width="SHORT",
        display_name="Log Errors",
    )
    errors_log_include_messages: bool = setting(
        default=False,
        doc="Whether the log also shows the content of such a record.",
        group="Error Handling",
        order=5,
        width="SHORT",
        display_name="Log Error Details",
    )
    errors_deadletterqueue_topic_name: str = setting(
        default="",
        valid=topic_name_problem,
        doc="The topic to which skipped records are sent; empty: they are not sent anywhere.",
        group="Error Handling",
        order=6,
        width="MEDIUM",
        display_name="Dead Letter Queue Topic Name",
    )
    errors_deadletterqueue_topic_replication_factor: int = setting(
        default=3,
        kind=SettingType.SHORT,
        valid=_replication,
        doc="The replication factor of that topic when it has to be created.",
        group="Error Handling",
        order=7,
        width="MEDIUM",
        display_name="Dead Letter Queue Topic Replication Factor",
    )
    errors_deadletterqueue_context_headers_enable: bool = setting(
        default=False,
        doc="Whether dead letters have headers, beginning with __connect.errors., that say what was wrong "
        "and where.",
        group="Error Handling",
        order=8,
        width="MEDIUM",
        display_name="Enable Error Context Headers",
    )

    def check(self) -> Iterator[Problem]:
        """Dead letters need a topic of their own, as for Kafka Connect's sinks."""
        name = self.errors_deadletterqueue_topic_name
        if name and name == self.originals.get("topic", "").strip():
            yield (
                "errors.deadletterqueue.topic.name",
                f"The connector's records go to {name} (topic). Name another topic for dead letters.",
            )

    @property
    def errors(self) -> ErrorPolicy:
        """What the tasks do with bad records."""
        return ErrorPolicy(
            tolerate=self.errors_tolerance == _ALL,
            dead_letters=self.errors_deadletterqueue_topic_name or None,
            replication=self.errors_deadletterqueue_topic_replication_factor,
            headers=self.errors_deadletterqueue_context_headers_enable,
            log=self.errors_log_enable,
            log_content=self.errors_log_include_messages,
            retry_seconds=None
            if self.errors_retry_timeout < 0
            else self.errors_retry_timeout / 1e3,
            retry_delay_seconds=self.errors_retry_delay_max_ms / 1e3,
        )


def error_warnings(settings: ErrorSettings) -> Iterator[str]:
    """Sentences about settings that have no effect, or an effect that is easily overlooked. Pure."""
    policy = settings.errors
    if policy.dead_letters is not None and not policy.tolerate:
        yield (
            "errors.deadletterqueue.topic.name has no effect, because errors.tolerance is none: a record that "
            "cannot be read fails the task."
        )
    if policy.tolerate and policy.dead_letters is None:
        yield (
            "errors.tolerance is all, and errors.deadletterqueue.topic.name is not set: records that cannot be "
            "read, converted or sent are skipped. Only their number is reported."
        )
    if policy.log_content and not policy.log:
        yield (
            "errors.log.include.messages has no effect, because errors.log.enable is false: bad records are not "
            "logged."
        )


class DeliverySettings(Config):
    """Transactions, and where source offsets are kept; part of every connector's configuration."""

    exactly_once_support: str = setting(
        default="requested",
        one_of=("REQUIRED", "REQUESTED"),
        ignore_case=True,
        doc="Whether the connector may run without exactly-once (requested) or not (required).",
        group="Exactly Once Support",
        order=2,
        width="SHORT",
        display_name="Exactly once support",
    )
    transaction_boundary: str | None = setting(
        default=None,
        one_of=("INTERVAL", "POLL", "CONNECTOR"),
        ignore_case=True,
        doc="Where transactions end: after each poll, after an interval, or where the connector "
        "says. Default: interval.",
        group="Exactly Once Support",
        order=3,
        width="SHORT",
        display_name="Transaction Boundary",
    )
    transaction_boundary_interval_ms: int | None = setting(
        "transaction.boundary.interval.ms",
        default=None,
        kind=SettingType.LONG,
        importance="low",
        at_least=0,
        doc="How long a transaction is, with the boundary interval. Default: one second; if "
        "transaction.boundary is set, the worker's offset.flush.interval.ms.",
        group="Exactly Once Support",
        order=4,
        width="SHORT",
        display_name="Transaction boundary interval",
    )
    offsets_storage_topic: str | None = setting(
        default=None,
        importance="low",
        non_empty=True,
        valid=topic_name_problem,
        doc="A topic of the connector's own for its source offsets, in the cluster that it writes to; created when it "
        "is missing. Without it, the offsets are kept with the worker's.",
        group="offsets.topic",
        order=1,
        width="LONG",
        display_name="Offsets topic",
    )

    @property
    def boundary(self) -> BoundaryKind:
        """Where transactions end."""
        return BoundaryKind((self.transaction_boundary or BoundaryKind.INTERVAL).lower())

    @property
    def requires_exactly_once(self) -> bool:
        """Whether the connector must not run without exactly-once."""
        return self.exactly_once_support.lower() == _REQUIRED


def _named_well(name: str) -> str | None:
    if not name:
        return "String may not be empty"
    too_long = name_too_long(name)
    if too_long is not None:
        return too_long
    control = [str(ord(each)) for each in name if ord(each) < ord(" ") or ord(each) == 0x7F]  # noqa: PLR2004 (delete)
    if not control:
        return None
    return (
        "String may not contain control sequences but had the following ASCII chars: "
        + ", ".join(control)
    )


class ConnectorConfig(ErrorSettings, TopicSettings, DeliverySettings):
    """All settings of a source connector: name, class, tasks and converters, and those of its base classes."""

    name: str = setting(
        importance="high",
        valid=_named_well,
        doc="The connector's name, unique in its worker.",
        group="Common",
        order=1,
        width="MEDIUM",
        display_name="Connector name",
    )
    connector_class: str = setting(
        importance="high",
        non_empty=True,
        doc="The connector: a name such as files, Kafka Connect's class name, or "
        "package.module:Class from the worker's plugin.modules or plugin.path.",
        group="Common",
        order=2,
        width="LONG",
        display_name="Connector class",
    )
    connector_plugin_version: str | None = setting(
        default=None,
        importance="medium",
        doc="Which version of the connector is needed: one, as 1.2, or a range, as [1.0,2.0). Default: any.",
        group="Common",
        order=3,
        width="MEDIUM",
        display_name="Connector version",
    )
    tasks_max: int = setting(
        default=1,
        importance="high",
        at_least=1,
        doc="How many tasks may run at once.",
        group="Common",
        order=3,
        width="SHORT",
        display_name="Tasks max",
    )
    tasks_max_enforce: bool = setting(
        default=True,
        importance="low",
        doc="Whether a connector that makes more tasks than tasks.max fails; otherwise all of them run, with a "
        "warning.",
        group="Common",
        order=5,
        width="SHORT",
        display_name="Enforce tasks max",
    )
    key_converter: str | None = setting(
        default=None,
        kind=SettingType.CLASS,
        importance="low",
        doc="Converter of keys, in place of the worker's; its settings follow it with a dot.",
        group="Common",
        order=5,
        width="SHORT",
        display_name="Key converter class",
    )
    key_converter_plugin_version: str | None = setting(
        default=None,
        importance="low",
        doc="Which version of the converter is needed: one, or a range.",
        group="Common",
        order=7,
        width="SHORT",
        display_name="Key converter version",
    )
    value_converter: str | None = setting(
        default=None,
        kind=SettingType.CLASS,
        importance="low",
        doc="Converter of values, in place of the worker's; its settings follow it with a dot.",
        group="Common",
        order=6,
        width="SHORT",
        display_name="Value converter class",
    )
    value_converter_plugin_version: str | None = setting(
        default=None,
        importance="low",
        doc="Which version of the converter is needed: one, or a range.",
        group="Common",
        order=9,
        width="SHORT",
        display_name="Value converter version",
    )
    header_converter: str | None = setting(
        default=None,
        kind=SettingType.CLASS,
        importance="low",
        doc="Converter of headers, in place of the worker's; its settings follow it with a dot.",
        group="Common",
        order=7,
        width="SHORT",
        display_name="Header converter class",
    )
    header_converter_plugin_version: str | None = setting(
        default=None,
        importance="low",
        doc="Which version of the converter is needed: one, or a range.",
        group="Common",
        order=11,
        width="SHORT",
        display_name="Header converter version",
    )
    transforms: tuple[str, ...] = setting(
        default=(),
        importance="low",
        doc="Aliases of the transformations that records go through, in this order; the class of each is "
        "transforms.<alias>.type.",
        group="Transforms",
        order=12,
        width="LONG",
        display_name="Transforms",
    )
    predicates: tuple[str, ...] = setting(
        default=(),
        importance="low",
        doc="Aliases of the predicates that transformations name; the class of each is "
        "predicates.<alias>.type.",
        group="Predicates",
        order=13,
        width="LONG",
        display_name="Predicates",
    )
    config_action_reload: str = setting(
        default="restart",
        one_of=("none", "restart"),
        importance="low",
        doc="What to do when a file has changed that a placeholder of this configuration names: restart "
        "the connector, or nothing (none).",
        group="Common",
        order=14,
        width="MEDIUM",
        display_name="Reload Action",
    )
    max_records_per_second: int | None = setting(
        "headrace.max.records.per.second",
        default=None,
        importance="low",
        at_least=1,
        doc="The most records per second that each task sends. Default: no limit.",
    )
    sender: str | None = setting(
        "headrace.sender",
        default=None,
        one_of=("client", "wire"),
        importance="low",
        doc="What sends records to Kafka: headrace's own producer (wire), which needs less CPU for each record, or the client "
        "library's (client), which has more settings. Default: wire, if it can have the producer's settings. Offsets that are "
        "committed to a consumer group always go with headrace's own.",
    )
    restart_max_attempts: int = setting(
        "headrace.restart.max.attempts",
        default=0,
        importance="low",
        at_least=0,
        doc="How often in a row a failed connector is restarted automatically.",
    )
    restart_backoff_ms: int = setting(
        "headrace.restart.backoff.ms",
        default=10_000,
        kind=SettingType.LONG,
        importance="low",
        at_least=1,
        doc="The pause before the first restart of a failed connector; each further one is twice as "
        "long, up to five minutes.",
    )

    def check(self) -> Iterator[Problem]:
        """Check dead letters, and refuse known keys that have no effect yet."""
        yield from super().check()
        yield from connector_refusals(self.originals, frozenset(s.name for s in self.settings()))

    def converter(
        self, role: Role, worker: WorkerConfig, *, default: PluginChoice | None = None
    ) -> PluginChoice:
        """The converter to use: this connector's with its own settings, or else the worker's with its.

        *default* is the one of connectors that pass bytes on, in place of the worker's.
        """
        named: str | None = getattr(self, f"{role}_converter")
        if named is None:
            return default or worker.converter(role)
        return PluginChoice(class_name=named, config=self.under(f"{role}.converter."))

    def producer(self, worker: WorkerConfig) -> dict[str, str]:
        """The settings of the tasks' producers, in the Java client's names; the connector's win."""
        return {**worker.client("producer"), **self.under("producer.override.")}

    def admin(self, worker: WorkerConfig) -> dict[str, str]:
        """The settings of the admin clients that create its topics; the connector's win."""
        return {**worker.client("admin"), **self.under("admin.override.")}

    def interval_ms(self, worker: WorkerConfig) -> int:
        """How long a transaction is, with the boundary interval.

        A connector that sets the boundary without a length gets the worker's (KIP-618). Where the broker would abort
        such a transaction, as with Kafka Connect's own defaults, it is half of the transaction timeout.
        """
        given = self.transaction_boundary_interval_ms
        if given is not None:
            return given
        if self.transaction_boundary is None:
            return DEFAULT_INTERVAL_MS
        flush = worker.offset_flush_interval_ms
        timeout = transaction_timeout_ms(self.producer(worker))
        return flush if timeout is None or flush < timeout else timeout // 2

    def commit_seconds(self, worker: WorkerConfig) -> float:
        """The time between two commits, where time decides."""
        if worker.exactly_once:
            return self.interval_ms(worker) / 1e3
        return worker.offset_flush_interval_ms / 1e3


def connector_version(connector: type[SourceConnector]) -> str:
    """The version of a connector's class: what its author says, or that of headrace for its own. Pure."""
    return __version__ if connector.__module__.startswith(_OWN) else connector.version


def aliases(key: str, props: Mapping[str, str]) -> tuple[str, ...]:
    """The aliases that *key* lists in *props*. Pure."""
    listed = parsed(props.get(key, ""), SettingType.LIST)
    assert isinstance(listed, tuple)
    return listed


def own_settings(key: str, alias: str, props: Mapping[str, str]) -> dict[str, str]:
    """The settings that *props* have for the class of *alias*, without its prefix. Pure."""
    mine = under(props, f"{key}.{alias}.")
    return {name: value for name, value in mine.items() if name not in OF_RUNTIME}


def stage_choices(props: Mapping[str, str]) -> tuple[StageChoice, ...]:
    """The transformation chain of *props*, which are valid. Pure."""
    return tuple(_stage(alias, props) for alias in aliases(TRANSFORMS, props))


def _stage(alias: str, props: Mapping[str, str]) -> StageChoice:
    predicate = props.get(f"{TRANSFORMS}.{alias}.predicate", "").strip()
    negate = parsed(props.get(f"{TRANSFORMS}.{alias}.negate", "false"), SettingType.BOOLEAN)
    return StageChoice(
        transform=_choice(TRANSFORMS, alias, props),
        predicate=_choice(PREDICATES, predicate, props) if predicate else None,
        negate=negate is True,
    )


def _choice(key: str, alias: str, props: Mapping[str, str]) -> PluginChoice:
    return PluginChoice(
        class_name=props[f"{key}.{alias}.type"].strip(), config=own_settings(key, alias, props)
    )
