"""How topics are called on the target cluster, and which cluster a name says that a topic comes from."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Self

from headrace.mirror.classes import JAVA_PACKAGE, class_named, class_problem, known_as

CLASS_KEY: Final = "replication.policy.class"
SEPARATOR_KEY: Final = "replication.policy.separator"
INTERNAL_SEPARATOR_KEY: Final = "replication.policy.internal.topic.separator.enabled"
SOURCE_ALIAS_KEY: Final = "source.cluster.alias"
DEFAULT_SEPARATOR: Final = "."
DEFAULT_POLICY: Final = f"{JAVA_PACKAGE}DefaultReplicationPolicy"
_ANY_TOPIC: Final = "topic"
_ALLOWED: Final = re.compile(r"[a-zA-Z0-9._-]+")


class ReplicationPolicy(ABC):
    """Names topics. Extend it for names of your own, and give ``module:Class`` as ``replication.policy.class``.

    One is made for each connector on the driver, and one in each slot. Every method is pure: the same name gives the same
    answer in all of them, and in the next version too, since positions are stored under remote names.
    """

    @classmethod
    def configured(cls, props: Mapping[str, str]) -> Self:  # noqa: ARG003 (for those who override it)
        """Make one from the connector's whole configuration. By default *props* are not looked at."""
        return cls()

    @abstractmethod
    def remote_topic(self, source: str, topic: str) -> str:
        """The name on the target of *topic* of the cluster *source*; two topics must not get the same one."""

    @abstractmethod
    def topic_source(self, topic: str) -> str | None:
        """The alias of the cluster that the remote *topic* was copied from; ``None`` if it is not a remote one."""

    def upstream_topic(self, topic: str) -> str | None:
        """The name that the remote *topic* has on its source; ``None`` if it is not a remote one."""
        source = self.topic_source(topic)
        return None if source is None else topic[len(source) + 1 :]

    def original_topic(self, topic: str) -> str:
        """The name of *topic* on the cluster where it was first written, however often it was copied since."""
        while (upstream := self.upstream_topic(topic)) is not None and upstream != topic:
            topic = upstream
        return topic

    def is_cycle(self, topic: str, target: str) -> bool:
        """Whether *topic* has been on the cluster *target* before, as far as its name says so: it is not copied there."""
        while (source := self.topic_source(topic)) is not None:
            if source == target:
                return True
            upstream = self.upstream_topic(topic)
            if upstream is None or upstream == topic:
                return False
            topic = upstream
        return False

    @property
    def heartbeats_topic(self) -> str:
        """The topic of heartbeats on the cluster that they are sent to."""
        return "heartbeats"

    def offset_syncs_topic(self, alias: str) -> str:
        """The topic of offset syncs; *alias* is the cluster at the other end of the flow."""
        return f"mm2-offset-syncs.{alias}.internal"

    def offset_ranges_topic(self, source: str) -> str:
        """The topic on the target in which this mirror writes where offsets of the cluster *source* went."""
        return f"mm2-offset-ranges.{source}.internal"

    def checkpoints_topic(self, source: str) -> str:
        """The topic on the target with the checkpoints of groups of the cluster *source*."""
        return f"{source}.checkpoints.internal"

    def is_heartbeats_topic(self, topic: str) -> bool:
        """Whether *topic* has heartbeats, this cluster's or copied ones."""
        return self.original_topic(topic) == self.heartbeats_topic

    def is_checkpoints_topic(self, topic: str) -> bool:
        """Whether *topic* has checkpoints."""
        return topic.endswith(".checkpoints.internal")

    def is_mirrors_internal(self, topic: str) -> bool:
        """Whether *topic* is one of a mirror's own, heartbeats aside."""
        return _is_mirrors(topic, ".internal") or self.is_checkpoints_topic(topic)

    def is_internal(self, topic: str) -> bool:
        """Whether *topic* is one of Kafka's, Connect's or a mirror's own: it is never copied."""
        return topic.startswith(("__", ".")) or self.is_mirrors_internal(topic)


@dataclass(frozen=True, slots=True)
class DefaultReplicationPolicy(ReplicationPolicy):
    """The source's alias before the name: ``us-west.orders``. Internal topics have a separator of their own."""

    separator: str = DEFAULT_SEPARATOR
    internal_separator: str = DEFAULT_SEPARATOR

    @classmethod
    def configured(cls, props: Mapping[str, str]) -> Self:
        return cls(**_separators(props))

    def remote_topic(self, source: str, topic: str) -> str:
        return f"{source}{self.separator}{topic}"

    def topic_source(self, topic: str) -> str | None:
        source, found, rest = topic.partition(self.separator)
        # Separators at the end separate nothing.
        while rest.startswith(self.separator):
            rest = rest.removeprefix(self.separator)
        return source if found and rest else None

    def upstream_topic(self, topic: str) -> str | None:
        source = self.topic_source(topic)
        return None if source is None else topic[len(source) + len(self.separator) :]

    def offset_syncs_topic(self, alias: str) -> str:
        return self._internal("mm2-offset-syncs", alias)

    def offset_ranges_topic(self, source: str) -> str:
        return self._internal("mm2-offset-ranges", source)

    def checkpoints_topic(self, source: str) -> str:
        return self._internal(source, "checkpoints")

    def is_checkpoints_topic(self, topic: str) -> bool:
        return topic.endswith(self._internal("", "checkpoints"))

    def is_mirrors_internal(self, topic: str) -> bool:
        return _is_mirrors(topic, self._internal("")) or self.is_checkpoints_topic(topic)

    def _internal(self, *parts: str) -> str:
        return self.internal_separator.join((*parts, "internal"))


@dataclass(frozen=True, slots=True)
class IdentityReplicationPolicy(DefaultReplicationPolicy):
    """The same names on both sides, but for heartbeats, which are named as by default.

    A name does not say where a topic comes from: every topic is taken for one of *source*, the flow's source cluster. So
    cycles are not seen.
    """

    source: str | None = None

    @classmethod
    def configured(cls, props: Mapping[str, str]) -> Self:
        return cls(**_separators(props), source=props.get(SOURCE_ALIAS_KEY))

    def remote_topic(self, source: str, topic: str) -> str:
        if self._is_heartbeats(topic):
            return DefaultReplicationPolicy.remote_topic(self, source, topic)
        return topic

    def topic_source(self, topic: str) -> str | None:
        if self._is_heartbeats(topic):
            return DefaultReplicationPolicy.topic_source(self, topic)
        return self.source

    def upstream_topic(self, topic: str) -> str | None:
        if self._is_heartbeats(topic):
            return DefaultReplicationPolicy.upstream_topic(self, topic)
        return topic

    def _is_heartbeats(self, topic: str) -> bool:
        return topic.endswith(self.heartbeats_topic)


_KNOWN: Final = known_as(DefaultReplicationPolicy, IdentityReplicationPolicy)


def replication_policy(props: Mapping[str, str]) -> ReplicationPolicy:
    """The policy that a connector's *props* name, configured with them; imports the module of a custom one.

    Raises :class:`~headrace.connect.errors.ConfigError` for a class that does not exist or is no policy.
    """
    path = props.get(CLASS_KEY, DEFAULT_POLICY)
    return class_named(CLASS_KEY, path, _KNOWN, ReplicationPolicy).configured(props)


def policy_problem(path: str) -> str | None:
    """Why *path* is not the class of a policy, or ``None``; imports the module of a custom one."""
    return class_problem(path, _KNOWN, ReplicationPolicy)


def separator_problem(separator: str) -> str | None:
    """Why topics cannot be named with *separator*; ``None`` if they can."""
    if _ALLOWED.fullmatch(separator):
        return None
    return "A separator is one or more of the characters that topics' names may have: letters, digits, '.', '_' and '-'"


def alias_problem(policy: ReplicationPolicy, alias: str) -> str | None:
    """Why remote topics of the cluster *alias* could not be told from others by *policy*; ``None`` if they can."""
    if isinstance(policy, IdentityReplicationPolicy):
        return None
    remote = policy.remote_topic(alias, _ANY_TOPIC)
    if policy.topic_source(remote) == alias and policy.upstream_topic(remote) == _ANY_TOPIC:
        return None
    return (
        f"The alias {alias} cannot be found again in the name of a remote topic such as {remote}: it has the separator of "
        "replication.policy.separator in it, or ends with a part of it. Change one of the two."
    )


def _separators(props: Mapping[str, str]) -> dict[str, str]:
    # The switch for internal topics counts only beside a separator, as in MirrorMaker.
    separator = props.get(SEPARATOR_KEY)
    if separator is None:
        return {}
    is_internal_too = props.get(INTERNAL_SEPARATOR_KEY, "true").strip().lower() == "true"
    internal = separator if is_internal_too else DEFAULT_SEPARATOR
    return {"separator": separator, "internal_separator": internal}


def _is_mirrors(topic: str, suffix: str) -> bool:
    return topic.startswith("mm2") and topic.endswith(suffix)
