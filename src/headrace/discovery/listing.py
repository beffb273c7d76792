"""What the cluster has said about the topics of a subscription, in one discovery; pure, but for who is asked."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol
from uuid import UUID

from headrace.connect.errors import TaskFailedError
from headrace.kafka.deadline import Deadline
from headrace.kafka.wire.cluster import ClusterMetadata, TopicMetadata
from headrace.kafka.wire.error_codes import UNKNOWN_TOPIC_OR_PARTITION, Reaction


class MetadataSource(Protocol):
    """Who is asked about topics: :class:`~headrace.kafka.wire.cluster.Cluster`, or a double of it."""

    def metadata(
        self, topics: Collection[str] | None, deadline: Deadline, *, again: bool = False
    ) -> ClusterMetadata:
        """The topics named, or with ``None`` all that this client may see; never creates one.

        *again* doubts the last answer: it asks after a short pause, and another broker if there is one, since brokers learn
        of topics one after the other. Called by the thread that discovers, up to three times in a discovery. Raises
        :class:`~headrace.connect.errors.RetriableError` when no broker has answered by *deadline*.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """What is known of the topics that were *asked* for, ``None`` for all.

    *topics* were answered. *unknown* do not exist: the cluster has said so of each when it was asked for it by its name, and
    it was missing from an answer before. The mere absence of a topic says nothing. *unclear* are those about which the answer
    may be another one soon, with the name of the error.
    """

    asked: frozenset[str] | None
    topics: Mapping[str, TopicMetadata]
    unknown: frozenset[str] = frozenset()
    unclear: Mapping[str, str] = field(default_factory=dict[str, str])


def listing(
    source: MetadataSource,
    asked: frozenset[str] | None,
    deadline: Deadline,
    *,
    known: Iterable[str],
    ids: Mapping[str, UUID],
) -> Listing:
    """Ask for the topics *asked*, and again where one broker's word is not enough.

    That is for topics that seem to be missing, also of the *known* ones, for those that seem to have another id than in
    *ids*, and where there seems to be no topic at all.

    Raises what *source* raises, and :class:`~headrace.connect.errors.TaskFailedError` for a topic that was asked for by its
    name and that this client may not see.
    """
    if asked is not None and not asked:
        return Listing(asked=asked, topics={})
    first = _listing(asked, source.metadata(asked, deadline))
    if asked is None and not first.topics:
        first = _listing(asked, source.metadata(asked, deadline, again=True))
    changed = frozenset(name for name in first.topics if has_other_id(first, name, ids))
    doubtful = _missing(first, known) | changed
    if not doubtful:
        return first
    answer = source.metadata(doubtful, deadline, again=True)
    second = _listing(doubtful, answer, is_named=asked is not None)
    topics = {name: one for name, one in first.topics.items() if name not in changed}
    topics |= second.topics
    # Of one that was there before, the second answer alone does not say that it is gone.
    unknown = second.unknown - changed
    disputed = dict.fromkeys(changed, "the brokers do not agree on it")
    unclear = {**first.unclear, **disputed, **second.unclear}
    return replace(
        first,
        topics=topics,
        unknown=unknown,
        unclear={name: unclear[name] for name in unclear.keys() - topics.keys() - unknown},
    )


def has_other_id(listing: Listing, topic: str, ids: Mapping[str, UUID]) -> bool:
    """Whether *topic* is answered with another id than in *ids*: it was deleted and created again."""
    if topic not in listing.topics or topic not in ids:
        return False
    return listing.topics[topic].topic_id not in (None, ids[topic])


def _listing(
    asked: frozenset[str] | None, answer: ClusterMetadata, *, is_named: bool = True
) -> Listing:
    topics = dict[str, TopicMetadata]()
    unknown, unclear = set[str](), dict[str, str]()
    for name, topic in answer.topics.items():
        if topic.error is None:
            topics[name] = topic
        elif topic.error == UNKNOWN_TOPIC_OR_PARTITION:
            unknown.add(name)
        elif topic.error.reaction is not Reaction.FAIL:
            unclear[name] = topic.error.name
        elif asked is not None and is_named:
            raise TaskFailedError(
                f"The topic {name} cannot be read: the brokers answer {topic.error.name}. {topic.error.advice}".rstrip()
            )
    unclear |= dict.fromkeys((asked or frozenset()) - answer.topics.keys(), "not answered")
    return Listing(asked=asked, topics=topics, unknown=frozenset(unknown), unclear=unclear)


def _missing(first: Listing, known: Iterable[str]) -> frozenset[str]:
    """The topics that should be there and are not answered."""
    if first.asked is not None:
        return first.asked - first.topics.keys()
    # An answer without a single topic is that of a broker that has just started, and says nothing about any of them.
    return frozenset(known) - first.topics.keys() if first.topics else frozenset()
