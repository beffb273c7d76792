"""One group of topics in a connector's configuration (KIP-158): its settings, and what is made of them; pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, cast

from headrace.connect.config import Problem, under
from headrace.connect.java_regex import regex_problem
from headrace.connect.setting import REQUIRED, Limits, Setting
from headrace.connect.setting_type import SettingType
from headrace.slot.topic_groups import TopicGroup

DEFAULT: Final = "default"
"""The group of every topic that no other group takes; nobody chooses its patterns."""

PREFIX: Final = "topic.creation."

_INCLUDE, _EXCLUDE = "include", "exclude"
_REPLICAS, _PARTITIONS = "replication.factor", "partitions"
_BROKERS_OWN = -1
_EVERY_TOPIC = (".*",)


def group_problems(group: str, props: Mapping[str, str]) -> Iterator[Problem]:
    """What is wrong with the settings of *group*, in Kafka Connect's words."""
    for each in _settings(group):
        try:
            each.read(props)
        except ValueError as error:
            yield each.name, str(error)


def topic_group(group: str, props: Mapping[str, str]) -> TopicGroup:
    """*group*, with the default group's numbers where it has none. Raises ``ValueError`` for one with a problem."""
    read = {each.name: each.read(props) for each in (*_settings(DEFAULT), *_settings(group))}

    def number(key: str) -> int:
        own = read[_key(group, key)]
        return cast("int", read[_key(DEFAULT, key)] if own is None else own)

    return TopicGroup(
        name=group,
        include=cast("tuple[str, ...]", read.get(_key(group, _INCLUDE), _EVERY_TOPIC)),
        exclude=cast("tuple[str, ...]", read.get(_key(group, _EXCLUDE), ())),
        partitions=number(_PARTITIONS),
        replicas=number(_REPLICAS),
        settings={
            key: value
            for key, value in under(props, f"{PREFIX}{group}.").items()
            if key not in (_INCLUDE, _EXCLUDE, _REPLICAS, _PARTITIONS)
        },
    )


def ignored_patterns(props: Mapping[str, str]) -> list[str]:
    """The keys of patterns that were given for the default group."""
    return [key for each in (_INCLUDE, _EXCLUDE) if (key := _key(DEFAULT, each)) in props]


def _settings(group: str) -> tuple[Setting, ...]:
    numbers = (
        _setting(group, _REPLICAS, SettingType.SHORT, Limits(valid=_replicas_problem)),
        _setting(group, _PARTITIONS, SettingType.INT, Limits(valid=_partitions_problem)),
    )
    if group == DEFAULT:
        return numbers
    patterns = Limits(valid=_patterns_problem)
    return (
        _setting(group, _INCLUDE, SettingType.LIST, patterns, default=REQUIRED),
        _setting(group, _EXCLUDE, SettingType.LIST, patterns, default=()),
        *numbers,
    )


def _setting(
    group: str, key: str, kind: SettingType, limits: Limits, *, default: object = None
) -> Setting:
    chosen = REQUIRED if group == DEFAULT else default
    return Setting(name=_key(group, key), doc="", type=kind, default=chosen, limits=limits)


def _key(group: str, key: str) -> str:
    return f"{PREFIX}{group}.{key}"


def _partitions_problem(count: int) -> str | None:
    if count == _BROKERS_OWN or count >= 1:
        return None
    return "Number of partitions must be positive, or -1 to use the broker's default"


def _replicas_problem(count: int) -> str | None:
    if count == _BROKERS_OWN or count >= 1:
        return None
    return (
        "Replication factor must be positive and not larger than the number of brokers in the Kafka cluster, "
        "or -1 to use the broker's default"
    )


def _patterns_problem(patterns: tuple[str, ...]) -> str | None:
    problem = next(filter(None, map(regex_problem, patterns)), None)
    return f"Syntax error in regular expression: {problem}" if problem else None
