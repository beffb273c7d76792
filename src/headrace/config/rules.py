"""What is wrong with configurations of workers and connectors beyond single settings; calls no connector's class."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Final

from headrace.config.client_settings import (
    connector_client_problems,
    connector_client_warnings,
    offsets_topic_problems,
    override_problems,
    wire_sender_problems,
    worker_client_problems,
)
from headrace.config.connector_config import ConnectorConfig, error_warnings
from headrace.config.topic_settings import topic_problems, topic_warnings
from headrace.config.worker_config import ROLES, Role, WorkerConfig, transaction_timeout_ms
from headrace.connect.config import Problem, every_problem
from headrace.connect.errors import ConfigError
from headrace.task.connector_spec import BoundaryKind, PluginChoice

_VERSION: Final = "plugin.version"

ConverterCheck = Callable[[Role, str, Mapping[str, str]], tuple[Problem, ...]]
"""What is wrong with a converter's class (the empty key) and its settings."""


def every_worker_problem(
    props: Mapping[str, str],
    check_of: Callable[[WorkerConfig], ConverterCheck],
    kind: type[WorkerConfig] = WorkerConfig,
) -> tuple[Problem, ...]:
    """All that is wrong with the *props* of a worker of this *kind*, single settings and rules across them; contacts no broker."""
    return every_problem(
        kind,
        props,
        lambda worker: worker_problems(worker, check_of(worker)),
        instead=_harmless(props),
    )


def _harmless(props: Mapping[str, str]) -> dict[str, object]:
    """Values in place of settings that cannot be read, so that no rule reports a clash with their defaults."""
    producers = props.get("producer.bootstrap.servers", "localhost:9092")
    return {
        "bootstrap.servers": (producers,),
        "exactly.once.source.support": "disabled",
        "headrace.slots": 1,
    }


def worker_problems(worker: WorkerConfig, check: ConverterCheck) -> tuple[Problem, ...]:
    """What is wrong with a worker's converters and its settings of Kafka clients; contacts no broker."""
    # A missing converter is reported by its setting.
    named: list[Role] = [role for role in ROLES if getattr(worker, f"{role}_converter") is not None]
    wrong = (
        each for role in named for each in _converter_problems(role, worker.converter(role), check)
    )
    return (*wrong, *worker_client_problems(worker))


def connector_problems(
    props: Mapping[str, str], worker: WorkerConfig, check: ConverterCheck
) -> tuple[Problem, ...]:
    """Everything that is wrong with a connector's *props* in this *worker*, except the settings of its class.

    Contacts no broker. Called before a connector is made, and for validation.
    """
    refused = dict(
        override_problems(
            props,
            worker.connector_client_config_override_policy,
            worker.connector_client_config_override_allowlist,
        )
    )
    try:
        config = ConnectorConfig.parse({key: props[key] for key in props if key not in refused})
    except ConfigError as error:
        return (*error.problems, *refused.items())
    clients = dict(
        connector_client_problems(
            config.originals,
            worker,
            producer=config.producer(worker),
            admin=config.admin(worker),
        )
    )
    by_wire = (each for each in wire_sender_problems(config, worker) if each[0] not in clients)
    return (
        *refused.items(),
        *_named_converter_problems(config, worker, check),
        *topic_problems(config, enabled=worker.topic_creation_enable),
        *_delivery_problems(config, worker),
        *offsets_topic_problems(config),
        *clients.items(),
        *by_wire,
    )


def connector_warnings(config: ConnectorConfig, worker: WorkerConfig) -> tuple[str, ...]:
    """Sentences about settings that have no effect, or not the one that they seem to have. Pure."""
    return (
        *connector_client_warnings(config, worker),
        *_interval_warnings(config, worker),
        *error_warnings(config),
        *topic_warnings(config, enabled=worker.topic_creation_enable),
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


def _named_converter_problems(
    config: ConnectorConfig, worker: WorkerConfig, check: ConverterCheck
) -> Iterator[Problem]:
    for role in ROLES:
        choice = config.converter(role, worker)
        version = config.originals.get(f"{role}.converter.{_VERSION}")
        if getattr(config, f"{role}_converter") is not None:
            yield from _converter_problems(role, choice, check)
        elif version is not None:
            # The worker's converter; the connector only requires a version of it.
            versioned = replace(choice, config={**choice.config, _VERSION: version})
            yield from _converter_problems(role, versioned, check)


def _converter_problems(
    role: Role, choice: PluginChoice, check: ConverterCheck
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
