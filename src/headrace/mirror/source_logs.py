"""What a mirror's driver asks the source about its logs: where they begin and end, and where leader epochs end."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Final, NamedTuple
from uuid import UUID

from headrace.kafka.deadline import Deadline
from headrace.kafka.sentences import counted
from headrace.kafka.topic_partition import TopicPartition
from headrace.kafka.wire.cluster import (
    EARLIEST,
    LATEST,
    Cluster,
    ClusterMetadata,
    IsolationLevel,
    ListedOffset,
)
from headrace.kafka.wire.epoch_ends import EpochEnds, epoch_ends
from headrace.kafka.wire.error_codes import ErrorCode, Reaction
from headrace.mirror.filters import CopiedTopics
from headrace.mirror.positions import Position
from headrace.mirror.starts import SourceLog

_log = logging.getLogger(__name__)

AskEpochs = Callable[[Cluster, Mapping[TopicPartition, int], Deadline], EpochEnds]
# A new leader says a lower end for a moment, until its followers have told it theirs (KAFKA-7703).
_ASKED_AGAIN: Final = (0.0, 0.1, 0.4)


def topics_of(
    metadata: ClusterMetadata, copied: CopiedTopics
) -> frozenset[tuple[str, UUID | None, int]]:
    """Name, id and number of partitions of each topic in *metadata* that is *copied*. Pure."""
    return frozenset(
        (name, topic.topic_id, len(topic.partitions))
        for name, topic in metadata.topics.items()
        if topic.error is None and not topic.is_internal and copied.copies(name)
    )


class ReadableEnds(NamedTuple):
    """Up to where partitions can be read now: *ends* of those whose leaders have said so.

    *silent* are those whose leaders do not answer now, *refused* those that no retry makes readable, with why.
    """

    ends: Mapping[TopicPartition, int]
    silent: frozenset[TopicPartition]
    refused: Mapping[TopicPartition, ErrorCode]


class SourceLogs:
    """Asks the source cluster. Used by one thread; each method raises what the cluster raises.

    Partitions whose leader does not answer now are left out.
    """

    def __init__(
        self,
        cluster: Cluster,
        isolation: IsolationLevel,
        *,
        seconds: float,
        epoch_ends: AskEpochs = epoch_ends,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._cluster = cluster
        self._isolation = isolation
        self._seconds = seconds
        self._epoch_ends = epoch_ends
        self._sleep = sleep
        self._silent = frozenset[TopicPartition]()

    @property
    def cluster_id(self) -> str | None:
        """The cluster's id, as it was last answered."""
        return self._cluster.known.cluster_id

    def topic_id(self, topic: str) -> UUID | None:
        """The id of *topic*, as it was last answered."""
        found = self._cluster.known.topics.get(topic)
        return None if found is None else found.topic_id

    def leader_epoch(self, place: TopicPartition) -> int:
        """The epoch of the partition's leader, as it was last answered; -1 where it is not known."""
        topic = self._cluster.known.topics.get(place.topic)
        found = topic and topic.partitions.get(place.partition)
        return found.leader_epoch if found else -1

    def topics(self, copied: CopiedTopics) -> frozenset[tuple[str, UUID | None, int]]:
        """Name, id and number of partitions of each topic that is *copied*, as it was last answered."""
        return topics_of(self._cluster.known, copied)

    def partitions(self, topic: str) -> int:
        """How many partitions *topic* has, as it was last answered."""
        found = self._cluster.known.topics.get(topic)
        return 0 if found is None else len(found.partitions)

    def readable_ends(self, places: Iterable[TopicPartition]) -> ReadableEnds:
        """Up to where each of *places* can be read now: by default the last stable offset. Silent ones are logged once."""
        listed = self._listed(dict.fromkeys(places, LATEST), self._isolation)
        errors = {place: each.error for place, each in listed.items() if each.error is not None}
        refused = {
            place: error for place, error in errors.items() if error.reaction is Reaction.FAIL
        }
        silent = frozenset(errors.keys() - refused.keys())
        self._report_silent(silent)
        return ReadableEnds(_offsets_in(listed), silent, refused)

    def beginnings(self, places: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Where the log of each of *places* begins now."""
        return self._offsets(dict.fromkeys(places, EARLIEST), IsolationLevel.READ_UNCOMMITTED)

    def logs(self, positions: Mapping[TopicPartition, Position]) -> dict[TopicPartition, SourceLog]:
        """The log of each partition in *positions*, for a comparison with them."""
        if not positions:
            return {}
        beginnings = self.beginnings(positions)
        ends = self._written_ends(positions)
        known = beginnings.keys() & ends.keys()
        epochs = self._epoch_ends(
            self._cluster,
            {
                place: position.leader_epoch
                for place, position in positions.items()
                if place in known and position.leader_epoch is not None
            },
            self._deadline(),
        )
        return {
            place: SourceLog(
                self.cluster_id,
                self.topic_id(place.topic),
                beginnings[place],
                ends[place],
                epochs.found.get(place),
            )
            for place in positions
            if place in known and place not in epochs.unanswered
        }

    def _written_ends(
        self, positions: Mapping[TopicPartition, Position]
    ) -> dict[TopicPartition, int]:
        """The high watermarks; one that is below its position is asked for again before it counts."""
        wanted = dict.fromkeys(positions, LATEST)
        ends = self._offsets(wanted, IsolationLevel.READ_UNCOMMITTED)
        for pause in _ASKED_AGAIN:
            below = {place: LATEST for place, end in ends.items() if end < positions[place].next}
            if not below:
                break
            self._sleep(pause)
            ends |= self._offsets(below, IsolationLevel.READ_UNCOMMITTED)
        return ends

    def _offsets(
        self, wanted: Mapping[TopicPartition, int], isolation: IsolationLevel
    ) -> dict[TopicPartition, int]:
        return _offsets_in(self._listed(wanted, isolation))

    def _listed(
        self, wanted: Mapping[TopicPartition, int], isolation: IsolationLevel
    ) -> Mapping[TopicPartition, ListedOffset]:
        if not wanted:
            return {}
        return self._cluster.list_offsets(wanted, self._deadline(), isolation=isolation)

    def _report_silent(self, places: frozenset[TopicPartition]) -> None:
        if places - self._silent:
            _log.warning(
                "The source's brokers do not say now where the logs of %s end, such as %s; copying goes on when they do.",
                counted(len(places), "partition"),
                min(places),
            )
        self._silent = places

    def _deadline(self) -> Deadline:
        return Deadline.after(self._seconds)


def _offsets_in(listed: Mapping[TopicPartition, ListedOffset]) -> dict[TopicPartition, int]:
    return {place: each.offset for place, each in listed.items() if each.offset is not None}
