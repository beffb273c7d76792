"""What a cluster says about its topics in one answer, and who is asked for it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Protocol
from uuid import UUID

from headrace.kafka.deadline import Deadline


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicMetadata:
    """One topic of an answer.

    *topic_id* is ``None`` where brokers have none (before Kafka 2.8). *leaders* has every partition of the topic, with the
    node that leads it, or ``None`` while it has no leader. *is_complete* is false when the cluster answered with an error
    that may pass, so that partitions may be missing from *leaders*.
    """

    name: str
    leaders: Mapping[int, int | None]
    topic_id: UUID | None = None
    is_internal: bool = False
    is_complete: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterMetadata:
    """One answer.

    *unknown* are topics that were asked for by name and that the cluster says do not exist: only this, and never the mere
    absence of a topic, may count as a removal. *is_complete* is false when topics may be missing from the answer.
    """

    topics: Mapping[str, TopicMetadata] = field(default_factory=dict[str, TopicMetadata])
    unknown: frozenset[str] = frozenset()
    is_complete: bool = True

    def merged_with(self, second: ClusterMetadata) -> ClusterMetadata:
        """This answer, with what a *second* one says about the topics that it was asked for."""
        topics = {**self.topics, **second.topics}
        return ClusterMetadata(
            topics=topics,
            unknown=(self.unknown | second.unknown) - topics.keys(),
            is_complete=self.is_complete and second.is_complete,
        )


class MetadataSource(Protocol):
    """Answers what topics a cluster has. Never creates a topic."""

    def topics(self, names: Collection[str] | None, deadline: Deadline) -> ClusterMetadata:
        """The topics *names*, or with ``None`` every topic that this client may see, internal ones included.

        Called by the one thread that discovers, twice in a discovery at most. Ids and leaders are of the same answer. A name
        that does not exist is in ``unknown``; a topic without leaders is answered as such and not waited for.

        Raises :class:`~headrace.connect.errors.RetriableError` when no broker answered by *deadline*, and
        :class:`~headrace.connect.errors.TaskFailedError` when a topic in *names* may not be seen or has an invalid name.
        """
        ...
