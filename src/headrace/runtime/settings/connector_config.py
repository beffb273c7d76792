"""The settings that every source connector has, whatever it reads."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from headrace.connect.config import Problem, setting
from headrace.connect.setting_type import SettingType
from headrace.runtime.settings.delivery_settings import DeliverySettings
from headrace.runtime.settings.error_settings import ErrorSettings
from headrace.runtime.settings.topic_settings import TopicSettings
from headrace.runtime.settings.unsupported_keys import connector_refusals
from headrace.runtime.settings.version_ranges import range_problem
from headrace.runtime.settings.worker_config import Role, WorkerConfig, transaction_timeout_ms
from headrace.slot.work import PluginChoice

DEFAULT_INTERVAL_MS: Final = 1_000


def _named_well(name: str) -> str | None:
    if not name:
        return "String may not be empty"
    control = [str(ord(each)) for each in name if ord(each) < ord(" ") or ord(each) == 0x7F]  # noqa: PLR2004 (delete)
    if not control:
        return None
    return (
        "String may not contain control sequences but had the following ASCII chars: "
        + ", ".join(control)
    )


class ConnectorConfig(ErrorSettings, TopicSettings, DeliverySettings):
    """Name, class, tasks and converters of a source connector, and what the settings it is made of say."""

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
        "package.module:Class out of the worker's plugin.modules or plugin.path.",
        group="Common",
        order=2,
        width="LONG",
        display_name="Connector class",
    )
    connector_plugin_version: str | None = setting(
        default=None,
        importance="medium",
        valid=range_problem,
        doc="Which version of the connector is needed: one, as 1.2, or a range, as [1.0,2.0). Any, without it.",
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
        doc="Whether a connector that makes more tasks than tasks.max is failed; otherwise all of them run, with a "
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
        valid=range_problem,
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
        valid=range_problem,
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
        valid=range_problem,
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
        doc="What is done when a file has changed that a placeholder of this configuration names: restart "
        "the connector, or nothing.",
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
        doc="At most so many records a second are sent by each task. Default: no limit.",
    )
    restart_max_attempts: int = setting(
        "headrace.restart.max.attempts",
        default=0,
        importance="low",
        at_least=0,
        doc="How often in a row the connector is restarted by itself when it has failed.",
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
        """Dead letters, and known keys that have no effect yet."""
        yield from super().check()
        yield from connector_refusals(self.originals, frozenset(s.name for s in self.settings()))

    def converter(self, role: Role, worker: WorkerConfig) -> PluginChoice:
        """The converter to use: this connector's with its own settings, or else the worker's with its."""
        named: str | None = getattr(self, f"{role}_converter")
        if named is None:
            return worker.converter(role)
        return PluginChoice(class_name=named, config=self.under(f"{role}.converter."))

    def producer(self, worker: WorkerConfig) -> dict[str, str]:
        """The settings of the tasks' producers, in the Java client's names; the connector's win."""
        return {**worker.client("producer"), **self.under("producer.override.")}

    def admin(self, worker: WorkerConfig) -> dict[str, str]:
        """The settings of the admin clients that make its topics; the connector's win."""
        return {**worker.client("admin"), **self.under("admin.override.")}

    def interval_ms(self, worker: WorkerConfig) -> int:
        """How long a transaction is, with the boundary interval.

        Whoever asks for intervals without saying how long gets the worker's (KIP-618). Where the broker
        would abort such a transaction, as with Kafka Connect's own defaults, it is half of what it allows.
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
        """How long to go on before a commit, where time decides."""
        if worker.exactly_once:
            return self.interval_ms(worker) / 1e3
        return worker.offset_flush_interval_ms / 1e3
