"""The keys that a validation lists besides a connector's own, in Kafka Connect's order, groups and places."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from headrace.config.connector_config import (
    CONNECTOR_CLASS,
    PREDICATES,
    TRANSFORMS,
    ConnectorConfig,
)
from headrace.config.worker_config import OVERRIDES, ROLES, Role, WorkerConfig
from headrace.connect.config import Problem, under
from headrace.connect.setting import Setting
from headrace.herder.answers import CheckedKey, ConfigValue, value_text
from headrace.plugins.converter_plugins import Converters
from headrace.plugins.validation_errors import ValidationErrors, reading

# Kafka Connect's own numbers in the group, which it shifted when it added the versions of plugins (KIP-891).
_PLACES: Mapping[str, int] = {
    "tasks.max": 4,
    "key.converter": 6,
    "value.converter": 8,
    "header.converter": 10,
}
_ORDER = (
    "name",
    CONNECTOR_CLASS,
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
_TYPE = "converter.type"
_CONVERTERS = ("header.converter", "key.converter", "value.converter")


def framework_settings(connector_version: str | None = None) -> tuple[Setting, ...]:
    """Every setting that connectors of any class have, in Kafka Connect's order; then our own.

    *connector_version* is the default of ``connector.plugin.version``.
    """
    known = {each.name: each for each in ConnectorConfig.settings()}
    ordered = (known.pop(name) for name in _ORDER)
    placed = (
        replace(each, order=_PLACES.get(each.name, each.order))
        for each in (*ordered, *known.values())
    )
    return tuple(
        versioned(each, connector_version) if each.name == "connector.plugin.version" else each
        for each in placed
    )


def in_worker(
    setting: Setting, props: Mapping[str, str], worker: WorkerConfig, converters: Converters
) -> Setting:
    """*setting* as it is for a connector with *props* in *worker*.

    A connector's converter defaults to the worker's, *converters* are the recommended values, and the version of
    a converter defaults to that of the chosen one.
    """
    role = _role(setting.name)
    if role is None:
        return setting
    own = worker.converter(role).class_name
    if setting.name.endswith(".plugin.version"):
        return versioned(setting, converters.version(props.get(f"{role}.converter", own)))
    return replace(
        setting, default=converters.full_name(own), recommended=converters.recommended(role)
    )


def versioned(setting: Setting, version: str | None) -> Setting:
    """*setting*, which asks for a version, for a plugin whose only version is *version*; ``None`` if there is none."""
    return replace(setting, default=version, recommended=() if version is None else (version,))


def _role(name: str) -> Role | None:
    keys = ("{}.converter", "{}.converter.plugin.version")
    return next((role for role in ROLES if name in [each.format(role) for each in keys]), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """Keys with one *prefix*, and the *settings* that define some of them, whose names include the prefix."""

    prefix: str
    settings: tuple[Setting, ...] = ()

    def completed(self, given: Mapping[str, str | None]) -> Mapping[str, str | None]:
        """*given*, with the role of a converter, which the worker sets itself."""
        if self.prefix in OVERRIDES:
            return given
        return {**given, f"{self.prefix}{_TYPE}": self.prefix.partition(".")[0]}


def sections(props: Mapping[str, str], converters: Converters) -> tuple[Section, ...]:
    """What is appended for *props*, in Kafka Connect's order.

    Settings of a converter are part of it only if *props* name the converter.
    """
    return (
        *(Section(prefix=prefix) for prefix in OVERRIDES),
        *(
            Section(prefix=f"{key}.", settings=_listed(f"{key}.", converters.settings(props[key])))
            for key in _CONVERTERS
            if key in props
        ),
    )


def section_problems(section: Section, given: Mapping[str, str | None]) -> Iterator[Problem]:
    """What is wrong with each defined key of *section* by itself; sentences name it without the prefix. Pure."""
    prefix = section.prefix
    mine = {
        key.removeprefix(prefix): value
        for key, value in section.completed(given).items()
        if key.startswith(prefix)
    }
    for each in section.settings:
        bare = replace(each, name=each.name.removeprefix(prefix))
        for message in reading(bare, mine).errors:
            yield each.name, message


def section_keys(
    section: Section, given: Mapping[str, str | None], errors: ValidationErrors
) -> Iterator[CheckedKey]:
    """The keys of *section*: those that are defined, and others that were given or have errors. Pure."""
    defined = {each.name: each for each in section.settings}
    others = dict.fromkeys((*_with(section.prefix, given), *errors.all_keys()))
    for name, setting in defined.items():
        value = value_text(reading(setting, section.completed(given)).value, setting.type)
        yield CheckedKey(
            definition=setting,
            value=ConfigValue(
                name=name,
                value=value,
                errors=errors.of(name),
                recommended=setting.recommended,
            ),
        )
    for name in others:
        is_other = name.startswith(section.prefix) and name not in defined
        # Undefined keys of a converter are passed on without being listed; overrides are all listed.
        if is_other and (section.prefix in OVERRIDES or errors.of(name)):
            value = errors.value_of(name) if given.get(name) is not None else None
            yield CheckedKey(
                definition=None,
                value=ConfigValue(name=name, value=value, errors=errors.of(name)),
            )


def _with(prefix: str, given: Mapping[str, str | None]) -> Iterator[str]:
    texts = {key: value or "" for key, value in given.items()}
    yield from (f"{prefix}{key}" for key in under(texts, prefix))


def _listed(prefix: str, settings: tuple[Setting, ...]) -> tuple[Setting, ...]:
    """*settings* with their *prefix*, in the order of the hash table by which Kafka Connect lists them."""
    ordered = sorted(settings, key=lambda each: _bucket(each.name, _buckets(len(settings))))
    return tuple(replace(each, name=f"{prefix}{each.name}") for each in ordered)


def _buckets(entries: int) -> int:
    """How many buckets Java's hash table has for so many *entries*: at least 16, filled by three quarters."""
    return max(16, 1 << math.ceil(entries * 4 / 3 - 1).bit_length())


def _bucket(text: str, buckets: int) -> int:
    """The bucket of *text*, which has no characters beyond 16 bits."""
    found = 0
    for each in text:
        found = (found * 31 + ord(each)) & 0xFFFFFFFF
    return (found ^ found >> 16) & (buckets - 1)
