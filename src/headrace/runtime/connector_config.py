"""The settings that every source connector has, whatever it reads."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from headrace.connect.config import Problem, setting, under
from headrace.connect.errors import ConfigError
from headrace.connect.setting_type import SettingType
from headrace.kafka.client_config import ClientConfig, producer_config
from headrace.kafka.refused import producer_refusals
from headrace.runtime.error_settings import ErrorSettings, error_warnings
from headrace.runtime.unsupported_keys import connector_refusals
from headrace.runtime.worker_config import ROLES, Role, WorkerConfig, transaction_timeout_ms
from headrace.slot.work import BoundaryKind, ConverterChoice

ConverterCheck = Callable[[Role, str, Mapping[str, str]], tuple[Problem, ...]]
"""What is wrong with a converter's class (the empty key) and its settings."""

DEFAULT_INTERVAL_MS: Final = 1_000
_REQUIRED = "required"


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


class ConnectorConfig(ErrorSettings):
    """Name, class, tasks, converters, transactions and bad records of a source connector."""

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
        "package.module:Class out of the worker's plugin.modules.",
        group="Common",
        order=2,
        width="LONG",
        display_name="Connector class",
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
    exactly_once_support: str = setting(
        default="requested",
        one_of=("required", "requested"),
        ignore_case=True,
        doc="Whether the connector may run without exactly-once (requested) or not (required).",
        group="Exactly Once Support",
        order=2,
        width="SHORT",
        display_name="Exactly once support",
    )
    transaction_boundary: str | None = setting(
        default=None,
        one_of=("poll", "interval", "connector"),
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
    max_records_per_second: int | None = setting(
        "headrace.max.records.per.second",
        default=None,
        importance="low",
        at_least=1,
        doc="At most so many records a second are sent by each task. Default: no limit.",
    )

    def check(self) -> Iterator[Problem]:
        """Dead letters, and known keys that have no effect yet."""
        yield from super().check()
        yield from connector_refusals(self.originals, frozenset(s.name for s in self.settings()))

    @property
    def boundary(self) -> BoundaryKind:
        """Where transactions end."""
        return BoundaryKind((self.transaction_boundary or BoundaryKind.INTERVAL).lower())

    @property
    def requires_exactly_once(self) -> bool:
        """Whether the connector must not run without exactly-once."""
        return self.exactly_once_support.lower() == _REQUIRED

    def converter(self, role: Role, worker: WorkerConfig) -> ConverterChoice:
        """The converter to use: this connector's with its own settings, or else the worker's with its."""
        named: str | None = getattr(self, f"{role}_converter")
        if named is None:
            return worker.converter(role)
        return ConverterChoice(class_name=named, config=self.under(f"{role}.converter."))

    def producer(self, worker: WorkerConfig) -> dict[str, str]:
        """The settings of the tasks' producers, in the Java client's names; the connector's win."""
        return {**worker.client("producer"), **self.under("producer.override.")}

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


def worker_problems(worker: WorkerConfig, check: ConverterCheck) -> tuple[Problem, ...]:
    """What is wrong with a worker's converters and producer settings; asks no broker."""
    wrong = (
        each for role in ROLES for each in _converter_problems(role, worker.converter(role), check)
    )
    return (*wrong, *_producer_problems(worker.client("producer"), worker, prefix="producer."))


def connector_problems(
    props: Mapping[str, str], worker: WorkerConfig, check: ConverterCheck
) -> tuple[Problem, ...]:
    """Everything that is wrong with a connector's *props* in this *worker*, its class's settings apart.

    Asks no broker. Called before a connector is made, and for validation.
    """
    try:
        config = ConnectorConfig.parse(props)
    except ConfigError as error:
        return error.problems
    return (
        *_named_converter_problems(config, check),
        *_delivery_problems(config, worker),
        *_producer_problems(config.producer(worker), worker, prefix="producer.override."),
    )


def connector_warnings(config: ConnectorConfig, worker: WorkerConfig) -> tuple[str, ...]:
    """Sentences about settings that have no effect, or another one than they seem to. Pure."""
    return (
        *_producer(config.producer(worker), worker).warnings,
        *_interval_warnings(config, worker),
        *error_warnings(config),
    )


def _interval_warnings(config: ConnectorConfig, worker: WorkerConfig) -> Iterator[str]:
    interval, flush = config.interval_ms(worker), worker.offset_flush_interval_ms
    wanted = config.transaction_boundary is not None and config.boundary is BoundaryKind.INTERVAL
    inherited = wanted and config.transaction_boundary_interval_ms is None
    if worker.exactly_once and inherited and interval < flush:
        yield (
            f"transaction.boundary.interval.ms is not set, and the worker's offset.flush.interval.ms "
            f"({flush}) does not fit into the producer's transaction.timeout.ms: transactions end "
            f"after {interval} ms."
        )


def _named_converter_problems(config: ConnectorConfig, check: ConverterCheck) -> Iterator[Problem]:
    for role in ROLES:
        named: str | None = getattr(config, f"{role}_converter")
        if named is not None:
            settings = under(config.originals, f"{role}.converter.")
            choice = ConverterChoice(class_name=named, config=settings)
            yield from _converter_problems(role, choice, check)


def _converter_problems(
    role: Role, choice: ConverterChoice, check: ConverterCheck
) -> Iterator[Problem]:
    for key, sentence in check(role, choice.class_name, choice.config):
        yield f"{role}.converter.{key}".removesuffix("."), sentence


def _delivery_problems(config: ConnectorConfig, worker: WorkerConfig) -> Iterator[Problem]:
    if config.requires_exactly_once and not worker.exactly_once:
        yield (
            "exactly.once.support",
            "This worker does not have exactly-once source support enabled.",
        )
    timeout = transaction_timeout_ms(config.producer(worker))
    if not worker.exactly_once or timeout is None:
        return
    if config.boundary is BoundaryKind.INTERVAL and config.interval_ms(worker) >= timeout:
        yield (
            "transaction.boundary.interval.ms",
            (
                f"It must be less than the producer's transaction.timeout.ms ({timeout}): the broker "
                "aborts a transaction that stays open longer."
            ),
        )
    if worker.lease_ms >= timeout:
        yield (
            "producer.override.transaction.timeout.ms",
            f"It must be more than the worker's headrace.lease.ms ({worker.lease_ms}).",
        )


def _producer_problems(
    settings: Mapping[str, str], worker: WorkerConfig, *, prefix: str
) -> Iterator[Problem]:
    try:
        config = _producer(settings, worker)
        problems = producer_refusals(config, settings)
    except ConfigError as error:
        problems = error.problems
    for key, sentence in problems:
        yield f"{prefix}{key}", sentence


def _producer(settings: Mapping[str, str], worker: WorkerConfig) -> ClientConfig:
    # Each task has an id of its own; here only whether there is one counts.
    return producer_config(
        settings, transactional_id="one per task" if worker.exactly_once else None
    )
