"""Which partitions of the source a flow copies, and where those of its first discovery start. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from headrace.discovery.discoverer import Subscription
from headrace.discovery.enumerator import DataLossPolicy, DiscoveryPolicies, RecreatedPolicy
from headrace.discovery.offsets_initializer import (
    EarliestOffsets,
    LatestOffsets,
    OffsetsInitializer,
    TimestampOffsets,
)
from headrace.discovery.state import EnumeratorState, PartitionState, Status
from headrace.discovery.subscribers import Growth
from headrace.kafka.topic_partition import TopicPartition
from headrace.kafka.wire.cluster import TopicMetadata
from headrace.mirror.filters import CopiedTopics
from headrace.mirror.positions import Position

REPORTED = DiscoveryPolicies(
    removed=DataLossPolicy.CONTINUE,
    recreated=RecreatedPolicy.CONTINUE,
    truncated=DataLossPolicy.CONTINUE,
)
"""Discovery only reports losses: what is done about one is a setting of the mirror, for each partition."""


@dataclass(frozen=True, slots=True)
class MirrorSubscriber:
    """All partitions of the topics that a flow copies; see :class:`~headrace.discovery.subscribers.Subscriber`."""

    copied: CopiedTopics

    @property
    def names(self) -> None:
        """Topics are asked for without naming them: patterns choose, and topics come and go."""
        return None

    @property
    def growth(self) -> Growth:
        """Topics may be found later."""
        return Growth.TOPICS

    def subscribed(self, topics: Mapping[str, TopicMetadata]) -> Collection[TopicPartition]:
        """The partitions to be copied."""
        return [
            TopicPartition(name, number)
            for name, topic in topics.items()
            if not topic.is_internal and self.copied.copies(name)
            for number in topic.partitions
        ]


def subscription(copied: CopiedTopics, start: str) -> Subscription:
    """What is copied; *start* is ``earliest``, ``latest``, or a time in milliseconds."""
    return Subscription(subscriber=MirrorSubscriber(copied), starting=_initializer(start))


def restored(
    positions: Mapping[TopicPartition, Position], *, is_discovered: bool
) -> EnumeratorState:
    """What discovery knew when *positions* were stored."""
    return EnumeratorState(
        partitions={
            place: PartitionState(Status.UNASSIGNED, position=each.next)
            for place, each in positions.items()
        },
        topic_ids={
            place.topic: each.topic_id
            for place, each in positions.items()
            if each.topic_id is not None
        },
        initial_discovery_finished=is_discovered,
    )


def _initializer(start: str) -> OffsetsInitializer:
    if start == "latest":
        return LatestOffsets()
    if start.isdecimal():
        return TimestampOffsets(int(start))
    return EarliestOffsets()
