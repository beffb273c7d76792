"""Where the partitions of a source start, and where they stop.

The five statements that FLIP-288 wants its users to know:

1. **Specified offsets**: a partition that is in the map starts at its offset. Any other starts at the offset that the consumer
   group has committed for it, and without one where the reset strategy says (by default at its earliest offset). A specified
   offset should not be beyond the partition's end: otherwise the reset strategy decides, too.
2. **Timestamp**: a partition with no record of that time or later yet starts at its latest offset.
3. **Partitions that are found after the first discovery always start at their earliest offset**, whatever the mode. There is
   no setting for it: with specified offsets it would depend on how much had been written before the discovery (offset 10 of a
   log with 5 records starts at 0, of one with 15 at 10), and with a timestamp that is yet to come, partitions made before it
   would lose what they have and those made after it would not. Only the earliest offset is predictable.
4. **Discovery is on by default, every 5 minutes**; an interval of 0 switches it off (``intervals``).
5. **All partitions that are there have to be found by the first discovery.** An old partition that is first seen later is
   taken for a new one and read from its beginning, which may mean duplicates.

An initializer says what is wanted, and ``resolved_starts`` and ``resolved_stops`` make numbers of it, once: what was resolved
is stored, so that a restart does not move it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final, NamedTuple, Protocol

from headrace.connect.errors import ConfigError, RetriableError
from headrace.kafka.topic_partition import TopicPartition

LATEST: Final = -1
"""In place of an offset: the end, as a reader of the configured isolation level sees it."""
EARLIEST: Final = -2
"""In place of an offset: the first one that is there."""
COMMITTED: Final = -3
"""In place of an offset: the one that the consumer group has committed, else what the reset strategy says."""

Offsets = Mapping[TopicPartition, int]


class OffsetResetStrategy(Enum):
    """Where to start instead of an offset that is not there, in the words of ``auto.offset.reset``."""

    EARLIEST = "earliest"
    LATEST = "latest"
    NONE = "none"
    """Nowhere: it is an error."""


class PartitionsUnavailableError(RetriableError):
    """The offsets of *partitions* cannot be had now, such as those without a leader; those of others can."""

    def __init__(self, message: str, *, partitions: Collection[TopicPartition]) -> None:
        self.partitions = frozenset(partitions)
        super().__init__(message)


class PartitionOffsetsRetriever(Protocol):
    """Looks offsets up. Each method is called with the partitions of one discovery, by the thread that discovers.

    Each answers every partition that it was asked for, but for ``committed_offsets``. They raise
    :class:`PartitionsUnavailableError` when some of the partitions have no answer now,
    :class:`~headrace.connect.errors.RetriableError` when none has, and
    :class:`~headrace.connect.errors.TaskFailedError` when asking again is of no use.
    """

    def committed_offsets(self, partitions: Collection[TopicPartition]) -> Offsets:
        """What the consumer group has committed, without the partitions for which it has nothing.

        Empty, and without a request, where there is no group.
        """
        ...

    def beginning_offsets(self, partitions: Collection[TopicPartition]) -> Offsets:
        """The first offset that is there: that of the log's start."""
        ...

    def end_offsets(self, partitions: Collection[TopicPartition]) -> Offsets:
        """The end for this reader: with ``read_committed`` the last stable offset, else the high watermark."""
        ...

    def high_watermarks(self, partitions: Collection[TopicPartition]) -> Offsets:
        """The end of what is replicated, whatever the isolation level: an offset up to it is in the log."""
        ...

    def offsets_for_times(
        self, timestamps: Mapping[TopicPartition, int]
    ) -> Mapping[TopicPartition, int | None]:
        """The first offset whose timestamp, in milliseconds, is that or later; ``None`` where there is no such record."""
        ...


class OffsetsInitializer(Protocol):
    """What offsets are wanted; of the built-in ones below, or a user's own."""

    @property
    def auto_offset_reset(self) -> OffsetResetStrategy:
        """Where to start instead of an offset that is not there."""
        ...

    def partition_offsets(
        self, partitions: Collection[TopicPartition], retriever: PartitionOffsetsRetriever
    ) -> Offsets:
        """An offset for each of *partitions*, or one of ``LATEST``, ``EARLIEST``, ``COMMITTED`` in its place.

        Called by the thread that discovers, in the first discovery and again for partitions that it could not settle. A
        partition without an answer fails the discovery with an error that names it.
        """
        ...


@dataclass(frozen=True, slots=True)
class EarliestOffsets:
    """Everything that is still there."""

    auto_offset_reset: OffsetResetStrategy = OffsetResetStrategy.EARLIEST

    def partition_offsets(
        self, partitions: Collection[TopicPartition], retriever: PartitionOffsetsRetriever
    ) -> Offsets:
        return dict.fromkeys(partitions, EARLIEST)


@dataclass(frozen=True, slots=True)
class LatestOffsets:
    """What is written after the first discovery, in which the number is fixed."""

    auto_offset_reset: OffsetResetStrategy = OffsetResetStrategy.LATEST

    def partition_offsets(
        self, partitions: Collection[TopicPartition], retriever: PartitionOffsetsRetriever
    ) -> Offsets:
        return dict.fromkeys(partitions, LATEST)


@dataclass(frozen=True, slots=True)
class CommittedOffsets:
    """Where the consumer group is."""

    auto_offset_reset: OffsetResetStrategy = OffsetResetStrategy.NONE

    def partition_offsets(
        self, partitions: Collection[TopicPartition], retriever: PartitionOffsetsRetriever
    ) -> Offsets:
        return dict.fromkeys(partitions, COMMITTED)


@dataclass(frozen=True, slots=True)
class TimestampOffsets:
    """The first record of *timestamp_ms* or later; a start, and no filter: older records behind it are read.

    Without such a record the end, taken before the search, so that nothing written in between is skipped.
    """

    timestamp_ms: int
    auto_offset_reset: OffsetResetStrategy = OffsetResetStrategy.LATEST

    def __post_init__(self) -> None:
        # Kafka has special meanings for negative ones.
        if self.timestamp_ms < 0:
            reason = f"{self.timestamp_ms} is no time: give milliseconds since 1970, 0 or more."
            raise ConfigError([("timestamp", reason)])

    def partition_offsets(
        self, partitions: Collection[TopicPartition], retriever: PartitionOffsetsRetriever
    ) -> Offsets:
        ends = retriever.end_offsets(partitions)
        found = retriever.offsets_for_times(dict.fromkeys(partitions, self.timestamp_ms))
        return {at: ends[at] if offset is None else offset for at, offset in found.items()}


@dataclass(frozen=True, slots=True)
class SpecifiedOffsets:
    """*offsets* for the partitions in it, ``COMMITTED`` for the others; a value may be one of the marks, too."""

    offsets: Offsets
    auto_offset_reset: OffsetResetStrategy = OffsetResetStrategy.EARLIEST

    def partition_offsets(
        self, partitions: Collection[TopicPartition], retriever: PartitionOffsetsRetriever
    ) -> Offsets:
        return {place: self.offsets.get(place, COMMITTED) for place in partitions}


class Reset(NamedTuple):
    """An offset that was not there, and where the partition starts instead. *wanted* is ``None`` if nothing was committed."""

    place: TopicPartition
    wanted: int | None
    start: int


class Starts(NamedTuple):
    """Where partitions start, and which of them not where they were meant to."""

    offsets: Offsets
    resets: tuple[Reset, ...] = ()


def resolved_starts(
    initializer: OffsetsInitializer,
    partitions: Collection[TopicPartition],
    retriever: PartitionOffsetsRetriever,
) -> Starts:
    """The offsets at which *partitions* start, all of them numbers that are in the log now.

    The end itself is in the log: the partition then waits. Raises :class:`~headrace.connect.errors.TaskFailedError` naming
    the partitions that have no start, and what *retriever* raises.
    """
    raise NotImplementedError


def resolved_stops(
    initializer: OffsetsInitializer | None,
    partitions: Collection[TopicPartition],
    retriever: PartitionOffsetsRetriever,
) -> Mapping[TopicPartition, int]:
    """The offsets before which *partitions* stop, as they are now; empty without an *initializer*."""
    raise NotImplementedError


def initializer_problems(
    starting: OffsetsInitializer, stopping: OffsetsInitializer | None, *, group_id: str | None
) -> list[tuple[str, str]]:
    """What is wrong with what was configured, as ``(setting, sentence)``."""
    raise NotImplementedError
