"""The remote topics of a flow: created like their source topics, given more partitions with them, and never fewer."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from headrace.connect.errors import RetriableError
from headrace.kafka.deadline import Deadline
from headrace.kafka.sentences import counted
from headrace.kafka.topic_admin import TopicAdmin, TopicSetting, WantedTopic
from headrace.kafka.wire.cluster import Cluster, ClusterMetadata
from headrace.kafka.wire.error_codes import UNKNOWN_TOPIC_OR_PARTITION, Reaction
from headrace.mirror.filters import ConfigPropertyFilter
from headrace.mirror.topic_config_sync import necessary_settings, settings_at_creation

_log = logging.getLogger(__name__)


class RemoteTopic(NamedTuple):
    """What a remote topic is to be like: so many *partitions*, and the *settings* that it is created with."""

    partitions: int
    settings: Mapping[str, str] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicChanges:
    """What has to be done on the target before anything is copied to it."""

    created: Mapping[str, WantedTopic] = field(default_factory=dict[str, WantedTopic])
    grown: Mapping[str, int] = field(default_factory=dict[str, int])


def topic_changes(
    wanted: Mapping[str, RemoteTopic], existing: Mapping[str, int], *, replication: int
) -> TopicChanges:
    """What makes remote topics, by their names, of those that *exist* with so many partitions. Pure."""
    return TopicChanges(
        created={
            name: WantedTopic(
                name=name,
                partitions=topic.partitions,
                replication=replication,
                settings=topic.settings,
            )
            for name, topic in wanted.items()
            if name not in existing
        },
        grown={
            name: topic.partitions
            for name, topic in wanted.items()
            if existing.get(name, topic.partitions) < topic.partitions
        },
    )


def settings_of_remote(
    source: Mapping[str, TopicSetting], chosen: ConfigPropertyFilter, known: Collection[str]
) -> dict[str, str]:
    """The settings that a remote topic is created with: those *chosen* of its source's, and what it needs. Pure.

    *known* are the settings that topics of the target have.
    """
    return {**settings_at_creation(source, chosen), **necessary_settings(source, known)}


class ExistingTopics(NamedTuple):
    """How many *partitions* topics have, and why others are *refused* to this client. Those that do not exist are in neither."""

    partitions: Mapping[str, int]
    refused: Mapping[str, str]

    @classmethod
    def of(cls, answer: ClusterMetadata) -> ExistingTopics:
        """What *answer* says of the topics that it was asked for.

        Raises :class:`~headrace.connect.errors.RetriableError` where it does not say what one of them is now.
        """
        partitions, refused = dict[str, int](), dict[str, str]()
        for name, topic in answer.topics.items():
            error = topic.error
            if error is None:
                partitions[name] = len(topic.partitions)
            elif error.reaction is Reaction.FAIL:
                refused[name] = (
                    f"The remote topic {name} cannot be looked at: the target's brokers answer {error.name}. {error.advice}".rstrip()
                )
            elif error != UNKNOWN_TOPIC_OR_PARTITION:
                raise RetriableError(
                    f"The target's brokers do not say what the remote topic {name} is now ({error.name})."
                )
        return cls(partitions, refused)

    def lacks(self, topics: Collection[str]) -> frozenset[str]:
        """Those of *topics* that do not exist."""
        return frozenset(topics) - self.partitions.keys() - self.refused.keys()


def missing_topics(
    cluster: Cluster, lacking: Collection[str], deadline: Deadline, *, beside: str | None = None
) -> frozenset[str]:
    """Those of the topics *lacking* in an answer of *cluster* that another broker, if there is one, does not know either.

    Brokers learn of topics one after the other. *beside* is a topic that is there: an answer that lacks it, too, says nothing of
    the others, and is a :class:`~headrace.connect.errors.RetriableError`.
    """
    if not lacking:
        return frozenset()
    asked = {*lacking} if beside is None else {*lacking, beside}
    found = ExistingTopics.of(cluster.metadata(asked, deadline, again=True))
    if beside is not None and beside not in found.partitions:
        raise RetriableError(
            f"A broker of the target does not know all topics, as {beside} is there: it is asked again whether {min(lacking)} is."
        )
    return found.lacks(lacking)


class RemoteTopics:
    """Makes sure that remote topics are there. Used by the thread of one connector."""

    def __init__(
        self, admin: TopicAdmin, cluster: Cluster, *, replication: int, seconds: float
    ) -> None:
        self._admin = admin
        self._cluster = cluster
        self._replication = replication
        self._seconds = seconds

    def existing(self, topics: Collection[str]) -> ExistingTopics:
        """What the target has of *topics*. Raises :class:`~headrace.connect.errors.RetriableError` when it does not answer in time."""
        return ExistingTopics.of(self._cluster.metadata(topics, self._deadline()))

    def ensure(
        self, wanted: Mapping[str, RemoteTopic], existing: Mapping[str, int]
    ) -> dict[str, str]:
        """Create what is missing of *wanted*, by its remote name, and give more partitions to what has too few.

        *existing* is how many partitions :meth:`existing` has just answered. Returns why the target has refused some of them;
        raises :class:`~headrace.connect.errors.RetriableError` when it does not answer in time.
        """
        changes = topic_changes(wanted, existing, replication=self._replication)
        refused = dict[str, str]()
        if changes.created:
            refused |= self._admin.create(changes.created.values(), self._deadline())
        if changes.grown:
            refused |= self._admin.grow(changes.grown, self._deadline())
        changed = [each for each in (*changes.created, *changes.grown) if each not in refused]
        for name in changed:
            told = "given more partitions" if name in changes.grown else "created"
            count = wanted[name].partitions
            _log.info(
                "The remote topic %s was %s: it has %s.", name, told, counted(count, "partition")
            )
        if changed:
            self._await_known({name: wanted[name] for name in changed})
        return refused

    def _await_known(self, wanted: Mapping[str, RemoteTopic]) -> None:
        """Wait until a broker knows all of them: the controller has them before the others, and leaders take a moment."""
        deadline, is_again = self._deadline(), False
        while True:
            answer = self._cluster.metadata(wanted.keys(), deadline, again=is_again)
            counts = ExistingTopics.of(answer).partitions
            lacking = [
                name
                for name, topic in wanted.items()
                if counts.get(name, 0) < topic.partitions or not _has_leaders(answer, name)
            ]
            if not lacking:
                return
            if deadline.expired:
                raise RetriableError(
                    f"The brokers of the target do not know all of the remote topic {lacking[0]} yet."
                )
            is_again = True

    def _deadline(self) -> Deadline:
        return Deadline.after(self._seconds)


def _has_leaders(answer: ClusterMetadata, name: str) -> bool:
    partitions = answer.topics[name].partitions.values()
    return all(each.leader is not None for each in partitions)
