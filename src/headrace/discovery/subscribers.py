"""Which partitions are read: of a list of topics, of a pattern, a set of partitions, or what a user's own class says."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from enum import Enum
from typing import Protocol

from headrace.connect.errors import ConfigError
from headrace.java.regex import translated
from headrace.kafka.topic_partition import TopicPartition
from headrace.kafka.wire.cluster import TopicMetadata


class Growth(Enum):
    """What may be found later without a change of the subscription."""

    NOTHING = "nothing"
    PARTITIONS = "partitions"
    TOPICS = "topics"


class Subscriber(Protocol):
    """What is subscribed to. Stateless; called once in each discovery, by the thread that discovers.

    A user's own one implements these three; ``subscribed`` may look at all that the metadata of a topic says.
    """

    @property
    def names(self) -> frozenset[str] | None:
        """The topics that are asked for by name, each of which has to exist; ``None`` asks for every topic."""
        ...

    @property
    def growth(self) -> Growth:
        """What may come and go while this subscription stays as it is; ``Growth.TOPICS`` if in doubt.

        Decides what the absence of a topic, and a new partition whose first records are gone, is taken for.
        """
        ...

    def subscribed(self, topics: Mapping[str, TopicMetadata]) -> Collection[TopicPartition]:
        """The partitions to be read, of the *topics* that the cluster has answered.

        One that does not exist in *topics* is an error of the discovery that names it. Empty means that nothing is there
        to be read yet.
        """
        ...


@dataclass(frozen=True, slots=True)
class TopicListSubscriber:
    """All partitions of the topics *topics*; a name that is there twice counts once. Internal topics only by name."""

    topics: tuple[str, ...]

    @property
    def names(self) -> frozenset[str]:
        return frozenset(self.topics)

    @property
    def growth(self) -> Growth:
        return Growth.PARTITIONS

    def subscribed(self, topics: Mapping[str, TopicMetadata]) -> Collection[TopicPartition]:
        names = self.names
        return _all_of(topic for name, topic in topics.items() if name in names)


@dataclass(frozen=True, slots=True)
class TopicPatternSubscriber:
    """All partitions of the topics whose whole name matches *pattern*; never internal ones. May match none."""

    pattern: re.Pattern[str]

    @property
    def names(self) -> None:
        return None

    @property
    def growth(self) -> Growth:
        return Growth.TOPICS

    def subscribed(self, topics: Mapping[str, TopicMetadata]) -> Collection[TopicPartition]:
        return _all_of(
            topic
            for name, topic in topics.items()
            if not topic.is_internal and self.pattern.fullmatch(name)
        )


@dataclass(frozen=True, slots=True)
class PartitionSetSubscriber:
    """Exactly *partitions*, which never become more."""

    partitions: frozenset[TopicPartition]

    @property
    def names(self) -> frozenset[str]:
        return frozenset(each.topic for each in self.partitions)

    @property
    def growth(self) -> Growth:
        return Growth.NOTHING

    def subscribed(self, topics: Mapping[str, TopicMetadata]) -> Collection[TopicPartition]:
        return self.partitions


def subscriber(
    *,
    topics: Iterable[str] | None = None,
    pattern: str | None = None,
    partitions: AbstractSet[TopicPartition] | None = None,
    custom: Subscriber | None = None,
) -> Subscriber:
    """The one way that is given. Raises :class:`~headrace.connect.errors.ConfigError` for none, and for two."""
    modes = {"topics": topics, "pattern": pattern, "partitions": partitions, "custom": custom}
    given = [name for name, value in modes.items() if value is not None]
    if len(given) != 1:
        found = f"{' and '.join(given)} are given" if given else "none is given"
        reason = f"Exactly one of topics, pattern, partitions and a subscriber of one's own says what is read; {found}."
        raise ConfigError([("subscription", reason)])
    if custom is not None:
        return custom
    if pattern is not None:
        return TopicPatternSubscriber(_compiled(pattern))
    if partitions is not None:
        return PartitionSetSubscriber(frozenset(partitions))
    return TopicListSubscriber(tuple(dict.fromkeys(topics or ())))


def _compiled(pattern: str) -> re.Pattern[str]:
    try:
        return re.compile(translated(pattern), re.ASCII)
    except (ValueError, re.error) as error:
        reason = f"{pattern!r} cannot be used as a regular expression of Java: {error}."
        raise ConfigError([("pattern", reason)]) from None


def _all_of(topics: Iterable[TopicMetadata]) -> Collection[TopicPartition]:
    return [TopicPartition(topic.name, number) for topic in topics for number in topic.partitions]
