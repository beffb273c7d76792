"""Which topics and groups are copied, and which of a topic's settings."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Self

from headrace.connect.config import Config
from headrace.connect.setting import SettingType, setting
from headrace.java.regex import java_regex
from headrace.mirror.classes import JAVA_PACKAGE, class_named, class_problem, known_as
from headrace.mirror.policies import ReplicationPolicy

TOPIC_FILTER_KEY: Final = "topic.filter.class"
GROUP_FILTER_KEY: Final = "group.filter.class"
PROPERTY_FILTER_KEY: Final = "config.property.filter.class"


class TopicFilter(ABC):
    """Chooses topics of the source. Extend it for a rule of your own, and give ``module:Class`` as ``topic.filter.class``.

    Made on the driver with the connector's whole configuration; pure.
    """

    @classmethod
    def configured(cls, props: Mapping[str, str]) -> Self:  # noqa: ARG003 (for those who override it)
        """Make one from the connector's whole configuration. By default *props* are not looked at."""
        return cls()

    @abstractmethod
    def copies(self, topic: str) -> bool:
        """Whether *topic* is wanted. Internal topics and cycles are left out whatever this returns."""


class GroupFilter(ABC):
    """Chooses consumer groups of the source; otherwise as :class:`TopicFilter`, by ``group.filter.class``."""

    @classmethod
    def configured(cls, props: Mapping[str, str]) -> Self:  # noqa: ARG003 (for those who override it)
        """Make one from the connector's whole configuration. By default *props* are not looked at."""
        return cls()

    @abstractmethod
    def copies(self, group: str) -> bool:
        """Whether checkpoints of *group* are wanted."""


class ConfigPropertyFilter(ABC):
    """Chooses settings of topics; otherwise as :class:`TopicFilter`, by ``config.property.filter.class``."""

    @classmethod
    def configured(cls, props: Mapping[str, str]) -> Self:  # noqa: ARG003 (for those who override it)
        """Make one from the connector's whole configuration. By default *props* are not looked at."""
        return cls()

    @abstractmethod
    def copies(self, name: str) -> bool:
        """Whether the setting *name* is given to remote topics."""

    def copies_default(self, name: str) -> bool:
        """Whether *name* is given to remote topics also where the source topic has its cluster's default."""
        return False


@dataclass(frozen=True, slots=True)
class Patterns:
    """Whether a name is one of *patterns* as a whole; none matches nothing. Raises ``ValueError`` for an invalid one."""

    patterns: tuple[str, ...]

    def __post_init__(self) -> None:
        for each in self.patterns:
            java_regex(each)
        self._joined()

    def match(self, name: str) -> bool:
        """Whether one of the patterns is *name*."""
        return bool(self.patterns) and self._joined().fullmatch(name) is not None

    def _joined(self) -> re.Pattern[str]:
        # As in MirrorMaker it is one expression, whose flags and groups reach from one pattern to the next.
        return java_regex("|".join(self.patterns))


def _patterns_problem(patterns: Sequence[str]) -> str | None:
    try:
        Patterns(tuple(patterns))
    except ValueError as error:
        return f"{error}. Commas separate patterns, so that no pattern can have one in it."
    return None


def topic_filter_problem(path: str) -> str | None:
    """Why *path* is not the class of a topic filter, or ``None``."""
    return class_problem(path, _TOPICS, TopicFilter)


def group_filter_problem(path: str) -> str | None:
    """Why *path* is not the class of a group filter, or ``None``."""
    return class_problem(path, _GROUPS, GroupFilter)


def property_filter_problem(path: str) -> str | None:
    """Why *path* is not the class of a filter of topics' settings, or ``None``."""
    return class_problem(path, _PROPERTIES, ConfigPropertyFilter)


class TopicFilterConfig(Config):
    """The settings of the choice of topics."""

    topic_filter_class: str = setting(
        default=f"{JAVA_PACKAGE}DefaultTopicFilter",
        kind=SettingType.CLASS,
        importance="low",
        valid=topic_filter_problem,
        doc="What chooses topics: DefaultTopicFilter (`topics`, `topics.exclude`) or package.module:Class of your own.",
    )
    topics: tuple[str, ...] = setting(
        default=(".*",),
        importance="high",
        valid=_patterns_problem,
        doc="The topics to copy: names or regular expressions of Java, each for the whole name, separated by commas.",
    )
    topics_exclude: tuple[str, ...] = setting(
        default=(r"mm2.*\.internal", r".*\.replica", "__.*"),
        importance="high",
        valid=_patterns_problem,
        doc="Names or regular expressions of topics that are not copied, even if `topics` has them.",
    )


class GroupFilterConfig(Config):
    """The settings of the choice of groups."""

    group_filter_class: str = setting(
        default=f"{JAVA_PACKAGE}DefaultGroupFilter",
        kind=SettingType.CLASS,
        importance="low",
        valid=group_filter_problem,
        doc="What chooses groups: DefaultGroupFilter (`groups`, `groups.exclude`) or package.module:Class of your own.",
    )
    groups: tuple[str, ...] = setting(
        default=(".*",),
        importance="high",
        valid=_patterns_problem,
        doc="The consumer groups whose offsets are translated: names or regular expressions of Java.",
    )
    groups_exclude: tuple[str, ...] = setting(
        default=("console-consumer-.*", "connect-.*", "__.*"),
        importance="high",
        valid=_patterns_problem,
        doc="Names or regular expressions of groups that are left out, even if `groups` has them.",
    )


class ConfigPropertyFilterConfig(Config):
    """The settings of the choice of topics' settings."""

    config_property_filter_class: str = setting(
        default=f"{JAVA_PACKAGE}DefaultConfigPropertyFilter",
        kind=SettingType.CLASS,
        importance="low",
        valid=property_filter_problem,
        doc="What chooses the settings of topics that remote topics get: DefaultConfigPropertyFilter "
        "(`config.properties.exclude`, `use.defaults.from`) or package.module:Class of your own.",
    )
    config_properties_exclude: tuple[str, ...] = setting(
        default=(
            "follower.replication.throttled.replicas",
            "leader.replication.throttled.replicas",
            "message.timestamp.difference.max.ms",
            "log.message.timestamp.before.max.ms",
            "log.message.timestamp.after.max.ms",
            "message.timestamp.type",
            "unclean.leader.election.enable",
            "min.insync.replicas",
        ),
        importance="high",
        valid=_patterns_problem,
        doc="Names or regular expressions of topics' settings that remote topics do not get.",
    )
    use_defaults_from: str = setting(
        default="target",
        doc="Where the source topic has its cluster's default: `target` leaves the remote topic with the default of its "
        "own cluster, `source` gives it the source's value.",
    )


@dataclass(frozen=True, slots=True)
class DefaultTopicFilter(TopicFilter):
    """Topics by two lists of patterns."""

    included: Patterns
    excluded: Patterns

    @classmethod
    def configured(cls, props: Mapping[str, str]) -> Self:
        config = TopicFilterConfig.parse(props)
        return cls(Patterns(config.topics), Patterns(config.topics_exclude))

    def copies(self, topic: str) -> bool:
        return self.included.match(topic) and not self.excluded.match(topic)


@dataclass(frozen=True, slots=True)
class DefaultGroupFilter(GroupFilter):
    """Groups by two lists of patterns."""

    included: Patterns
    excluded: Patterns

    @classmethod
    def configured(cls, props: Mapping[str, str]) -> Self:
        config = GroupFilterConfig.parse(props)
        return cls(Patterns(config.groups), Patterns(config.groups_exclude))

    def copies(self, group: str) -> bool:
        return self.included.match(group) and not self.excluded.match(group)


@dataclass(frozen=True, slots=True)
class DefaultConfigPropertyFilter(ConfigPropertyFilter):
    """Every setting but those of one list of patterns."""

    excluded: Patterns
    has_source_defaults: bool = False

    @classmethod
    def configured(cls, props: Mapping[str, str]) -> Self:
        config = ConfigPropertyFilterConfig.parse(props)
        return cls(Patterns(config.config_properties_exclude), config.use_defaults_from == "source")

    def copies(self, name: str) -> bool:
        return not self.excluded.match(name)

    def copies_default(self, name: str) -> bool:
        return self.has_source_defaults


_TOPICS: Final = known_as(DefaultTopicFilter)
_GROUPS: Final = known_as(DefaultGroupFilter)
_PROPERTIES: Final = known_as(DefaultConfigPropertyFilter)


def topic_filter(props: Mapping[str, str]) -> TopicFilter:
    """The topic filter that *props* name. Raises :class:`~headrace.connect.errors.ConfigError`."""
    path = props.get(TOPIC_FILTER_KEY, DefaultTopicFilter.__name__)
    return class_named(TOPIC_FILTER_KEY, path, _TOPICS, TopicFilter).configured(props)


def group_filter(props: Mapping[str, str]) -> GroupFilter:
    """The group filter that *props* name. Raises :class:`~headrace.connect.errors.ConfigError`."""
    path = props.get(GROUP_FILTER_KEY, DefaultGroupFilter.__name__)
    return class_named(GROUP_FILTER_KEY, path, _GROUPS, GroupFilter).configured(props)


def property_filter(props: Mapping[str, str]) -> ConfigPropertyFilter:
    """The filter of topics' settings that *props* name. Raises :class:`~headrace.connect.errors.ConfigError`."""
    path = props.get(PROPERTY_FILTER_KEY, DefaultConfigPropertyFilter.__name__)
    return class_named(PROPERTY_FILTER_KEY, path, _PROPERTIES, ConfigPropertyFilter).configured(
        props
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class CopiedTopics:
    """Which topics of the source a flow to the cluster *target* copies, and which of the target are its own."""

    policy: ReplicationPolicy
    chosen: TopicFilter
    source: str
    target: str
    has_heartbeats: bool = True

    def copies(self, topic: str) -> bool:
        """Whether *topic* of the source is copied."""
        return (
            (self.chosen.copies(topic) or self._is_heartbeats(topic))
            and not self.policy.is_internal(topic)
            and not self.policy.is_cycle(topic, self.target)
        )

    def remote_topic(self, topic: str) -> str:
        """The name of *topic* on the target."""
        return self.policy.remote_topic(self.source, topic)

    def is_own(self, topic: str) -> bool:
        """Whether *topic* of the target is a remote one that comes from this flow's source."""
        return self.policy.topic_source(
            topic
        ) == self.source and topic != self.policy.checkpoints_topic(self.source)

    def is_remote(self, topic: str) -> bool:
        """Whether *topic* of the target would be the remote one of a topic that is copied."""
        upstream = self.policy.upstream_topic(topic)
        return (
            upstream is not None and self.remote_topic(upstream) == topic and self.copies(upstream)
        )

    def _is_heartbeats(self, topic: str) -> bool:
        return self.has_heartbeats and self.policy.is_heartbeats_topic(topic)
