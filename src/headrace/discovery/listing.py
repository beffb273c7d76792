"""What the cluster has said about the topics of a subscription, in one discovery; pure, but for who is asked."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol

from headrace.connect.errors import TaskFailedError
from headrace.kafka.deadline import Deadline
from headrace.kafka.wire.cluster import ClusterMetadata, TopicMetadata
from headrace.kafka.wire.error_codes import UNKNOWN_TOPIC_OR_PARTITION, Reaction


class MetadataSource(Protocol):
    """Who is asked about topics: :class:`~headrace.kafka.wire.cluster.Cluster`, or a double of it."""

    def metadata(self, topics: Collection[str] | None, deadline: Deadline) -> ClusterMetadata:
        """The topics named, or with ``None`` all that this client may see; never creates one.

        Called by the thread that discovers, once or twice in a discovery. Raises
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
    source: MetadataSource, asked: frozenset[str] | None, known: Iterable[str], deadline: Deadline
) -> Listing:
    """Ask for the topics *asked*, and a second time for those that seem to be missing, also of the *known* ones.

    Raises what *source* raises, and :class:`~headrace.connect.errors.TaskFailedError` for a topic that was asked for by its
    name and that this client may not see.
    """
    if asked is not None and not asked:
        return Listing(asked=asked, topics={})
    first = _listing(asked, source.metadata(asked, deadline))
    missing = _missing(first, known)
    if not missing:
        return first
    second = _listing(missing, source.metadata(missing, deadline), is_named=asked is not None)
    topics = {**first.topics, **second.topics}
    unclear = {**first.unclear, **second.unclear}
    return replace(
        first,
        topics=topics,
        unknown=second.unknown,
        unclear={name: unclear[name] for name in unclear.keys() - topics.keys() - second.unknown},
    )


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
