"""The settings that every connector has, as Kafka Connect lists them: in its order, groups and places."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from headrace.admission.converter_plugins import Converters
from headrace.connect.setting import Setting
from headrace.runtime.settings.connector_config import ConnectorConfig
from headrace.runtime.settings.stage_settings import PREDICATES, TRANSFORMS
from headrace.runtime.settings.worker_config import ROLES, Role, WorkerConfig

# Kafka Connect's own numbers in the group, which moved with the versions of plugins.
_PLACES: Mapping[str, int] = {
    "tasks.max": 4,
    "key.converter": 6,
    "value.converter": 8,
    "header.converter": 10,
}
_ORDER = (
    "name",
    "connector.class",
    "connector.plugin.version",
    "tasks.max",
    "tasks.max.enforce",
    *(each for role in ROLES for each in (f"{role}.converter", f"{role}.converter.plugin.version")),
    TRANSFORMS,
    PREDICATES,
    "config.action.reload",
    "errors.retry.timeout",
    "errors.retry.delay.max.ms",
    "errors.tolerance",
    "errors.log.enable",
    "errors.log.include.messages",
    "errors.deadletterqueue.topic.name",
    "errors.deadletterqueue.topic.replication.factor",
    "errors.deadletterqueue.context.headers.enable",
    "topic.creation.groups",
    "exactly.once.support",
    "transaction.boundary",
    "transaction.boundary.interval.ms",
    "offsets.storage.topic",
)


def framework_settings(worker: WorkerConfig, converters: Converters) -> tuple[Setting, ...]:
    """Every setting that connectors have whatever their class, in Kafka Connect's order; then our own.

    The worker's converters are the defaults of the connector's, and *converters* what may be set.
    """
    known = {each.name: each for each in ConnectorConfig.settings()}
    ordered = (known.pop(name) for name in _ORDER)
    return tuple(_placed(each, worker, converters) for each in (*ordered, *known.values()))


def _placed(setting: Setting, worker: WorkerConfig, converters: Converters) -> Setting:
    placed = replace(setting, order=_PLACES.get(setting.name, setting.order))
    role = _role(setting.name)
    if role is None:
        return placed
    named = worker.converter(role).class_name
    return replace(
        placed, default=converters.full_name(named), recommended=converters.recommended(role)
    )


def _role(name: str) -> Role | None:
    return next((role for role in ROLES if name == f"{role}.converter"), None)
