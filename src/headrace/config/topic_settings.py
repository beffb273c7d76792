"""The settings for the creation of missing topics (KIP-158), by groups."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, cast

from headrace.connect.config import Config, Problem, setting, under
from headrace.connect.setting import REQUIRED, Limits, Setting, SettingType
from headrace.java.regex import regex_problem
from headrace.task.topic_creation import TopicGroup

DEFAULT: Final = "default"
"""The group of every topic that matches no other group; it has no patterns of its own."""

PREFIX: Final = "topic.creation."

_INCLUDE, _EXCLUDE = "include", "exclude"
_REPLICAS, _PARTITIONS = "replication.factor", "partitions"
_BROKERS_OWN = -1
_EVERY_TOPIC = (".*",)
GROUPS: Final = "topic.creation.groups"
"""The key of the list of groups."""


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


class TopicSettings(Config):
    """Groups of topics with settings for their creation; part of every connector's configuration.

    The settings of a group, ``topic.creation.<group>.…``, are not attributes, because users name the groups.
    """

    topic_creation_groups: tuple[str, ...] = setting(
        default=(),
        importance="low",
        doc="Groups of topics that are created with their own settings, topic.creation.<group>.…, when they are "
        "missing. A topic belongs to the first group that matches it, or else to the group default.",
        group="Topic Creation",
        order=1,
        width="LONG",
        display_name="Topic Creation Groups",
    )

    @property
    def makes_topics(self) -> bool:
        """Whether any setting is about creating topics: tasks then create their topics when they are missing."""
        return any(key.startswith(PREFIX) for key in self.originals)

    @property
    def group_names(self) -> tuple[str, ...]:
        """All groups in the order in which they are matched, the default one last."""
        named = (each for each in self.topic_creation_groups if each != DEFAULT)
        return (*dict.fromkeys(named), DEFAULT)

    @property
    def topic_groups(self) -> tuple[TopicGroup, ...]:
        """The groups; empty unless tasks create topics. Raises ``ValueError`` when :func:`topic_problems` has any."""
        if not self.makes_topics:
            return ()
        return tuple(topic_group(each, self.originals) for each in self.group_names)


def topic_problems(config: TopicSettings, *, enabled: bool) -> Iterator[Problem]:
    """What is wrong with the groups; only with their names unless the worker has them *enabled*. Pure."""
    groups = config.topic_creation_groups
    if len(set(groups)) < len(groups):
        message = f"Invalid value [{', '.join(groups)}] for configuration {GROUPS}"
        yield GROUPS, f"{message}: Duplicate alias provided."
    if enabled and config.makes_topics:
        # In the order of a Java worker: problems of the default group come first.
        for each in (DEFAULT, *config.group_names[:-1]):
            yield from group_problems(each, config.originals)


def topic_warnings(config: TopicSettings, *, enabled: bool) -> Iterator[str]:
    """Sentences about settings of groups that have no effect. Pure."""
    if config.makes_topics and not enabled:
        yield (
            "topic.creation.* has no effect, because the worker has topic.creation.enable=false: a missing topic is "
            "created by the broker or not at all."
        )
        return
    if DEFAULT in config.topic_creation_groups:
        yield f"The group default in {GROUPS} has no effect: it is always there, and always the last one."
    for key in ignored_patterns(config.originals):
        yield f"{key} has no effect: the group default has every topic that matches no other group."
