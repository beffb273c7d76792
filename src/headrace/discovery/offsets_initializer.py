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
4. **Discovery is on by default, every 5 minutes**; an interval of 0 switches it off (``settings``).
5. **All partitions that are there have to be found by the first discovery.** An old partition that is first seen later is
   taken for a new one and read from its beginning, which may mean duplicates.

An initializer says what is wanted, and ``resolved_starts`` and ``resolved_stops`` make numbers of it, once: what was resolved
is stored, so that a restart does not move it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final, NamedTuple, Protocol

from headrace.connect.errors import ConfigError, TaskFailedError
from headrace.discovery.offsets_retriever import Offsets, PartitionOffsetsRetriever
from headrace.kafka.sentences import listed
from headrace.kafka.topic_partition import TopicPartition
from headrace.kafka.wire.cluster import EARLIEST, LATEST

COMMITTED: Final = -3
"""In place of an offset, as ``EARLIEST`` and ``LATEST``: what the consumer group has committed, else by the reset strategy."""
_MARKS: Final = (LATEST, EARLIEST, COMMITTED)


class OffsetResetStrategy(Enum):
    """Where to start instead of an offset that is not there, in the words of ``auto.offset.reset``."""

    EARLIEST = "earliest"
    LATEST = "latest"
    NONE = "none"
    """Nowhere: it is an error."""


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
    if not partitions:
        return Starts({})
    wanted = _wanted(initializer, partitions, retriever, "start")
    beginnings = retriever.beginning_offsets([at for at in partitions if wanted[at] != LATEST])
    committed = retriever.committed_offsets(_marked(wanted, COMMITTED))
    asked = {
        place: committed.get(place) if offset == COMMITTED else offset
        for place, offset in wanted.items()
        if offset not in (EARLIEST, LATEST)
    }
    outside = _outside(asked, beginnings, retriever)
    replacements = _replacements(initializer.auto_offset_reset, outside, beginnings, retriever)
    ends = retriever.end_offsets(_marked(wanted, LATEST))
    offsets = {
        **{place: beginnings[place] for place in _marked(wanted, EARLIEST)},
        **{place: ends[place] for place in _marked(wanted, LATEST)},
        **{place: offset for place, offset in asked.items() if offset is not None},
        **replacements,
    }
    resets = (Reset(place, wanted, replacements[place]) for place, wanted in outside.items())
    return Starts(offsets, tuple(sorted(resets)))


def earliest_starts(
    partitions: Collection[TopicPartition], retriever: PartitionOffsetsRetriever
) -> Offsets:
    """Where new partitions start, whatever the mode: at the number that their log begins with now."""
    return retriever.beginning_offsets(partitions) if partitions else {}


def resolved_stops(
    initializer: OffsetsInitializer | None,
    partitions: Collection[TopicPartition],
    retriever: PartitionOffsetsRetriever,
) -> Offsets:
    """The offsets before which *partitions* stop, as they are now; empty without an *initializer*.

    A partition that stops at or before its start is read to its end at once, and one that stops at its end now is done for
    good there, whatever is written later. Raises as ``resolved_starts`` does.
    """
    if initializer is None or not partitions:
        return {}
    wanted = _wanted(initializer, partitions, retriever, "stop")
    early = sorted(_marked(wanted, EARLIEST))
    if early:
        raise TaskFailedError(
            f"{early[0]} cannot stop at its earliest offset: nothing would be read."
        )
    ends = retriever.end_offsets(_marked(wanted, LATEST))
    committed = retriever.committed_offsets(_marked(wanted, COMMITTED))
    uncommitted = {place: None for place in _marked(wanted, COMMITTED) if place not in committed}
    strategy = initializer.auto_offset_reset
    beginnings = (
        retriever.beginning_offsets(uncommitted) if strategy is OffsetResetStrategy.EARLIEST else {}
    )
    return {
        **wanted,
        **ends,
        **committed,
        **_replacements(strategy, uncommitted, beginnings, retriever),
    }


def initializer_problems(
    starting: OffsetsInitializer,
    stopping: OffsetsInitializer | None,
    *,
    group_id: str | None,
    group_key: str = "group.id",
) -> Iterator[tuple[str, str]]:
    """What is wrong with what was configured, as ``(what, sentence)``; to be asked before anything starts.

    *group_key* is the setting that *group_id* comes from.
    """
    for what, initializer in (("starting offsets", starting), ("stopping offsets", stopping)):
        if isinstance(initializer, CommittedOffsets) and not group_id:
            yield what, f"{group_key} is required when committed offsets are used."
        if isinstance(initializer, SpecifiedOffsets):
            yield from (
                (what, each) for each in _problems_of_map(initializer.offsets, group_id, group_key)
            )
    if isinstance(stopping, EarliestOffsets):
        yield (
            "stopping offsets",
            "A source cannot stop at the earliest offset: nothing would be read.",
        )
    elif isinstance(stopping, SpecifiedOffsets):
        for place in sorted(_marked(stopping.offsets, EARLIEST)):
            yield (
                "stopping offsets",
                f"{place} cannot stop at its earliest offset: nothing would be read.",
            )


def _problems_of_map(offsets: Offsets, group_id: str | None, group_key: str) -> Iterator[str]:
    for place, offset in sorted(offsets.items()):
        if offset == COMMITTED and not group_id:
            yield f"{group_key} is required, because {place} is to use its committed offset."
        elif offset < 0 and offset not in _MARKS:
            yield f"{offset} is no offset for {place}: give 0 or more, {EARLIEST} (earliest) or {LATEST} (latest)."


def _wanted(
    initializer: OffsetsInitializer,
    partitions: Collection[TopicPartition],
    retriever: PartitionOffsetsRetriever,
    end: str,
) -> Offsets:
    """What *initializer* says about exactly *partitions*."""
    answered = initializer.partition_offsets(partitions, retriever)
    unanswered = sorted(place for place in partitions if place not in answered)
    name = type(initializer).__name__
    if unanswered:
        raise TaskFailedError(
            f"{name} does not say where to {end} {listed(unanswered)}: it has to return an offset for every partition that it "
            "is asked for."
        )
    wanted = {place: answered[place] for place in partitions}
    for place, offset in wanted.items():
        if offset < 0 and offset not in _MARKS:
            raise TaskFailedError(
                f"{name} says {offset} for {place}, which is no offset to {end} at."
            )
    return wanted


def _marked(wanted: Offsets, mark: int) -> list[TopicPartition]:
    return [place for place, offset in wanted.items() if offset == mark]


def _outside(
    asked: Mapping[TopicPartition, int | None],
    beginnings: Offsets,
    retriever: PartitionOffsetsRetriever,
) -> dict[TopicPartition, int | None]:
    """Those whose offset is not in the log, or that have none."""
    numbers = {place: offset for place, offset in asked.items() if offset is not None}
    ends = retriever.high_watermarks(numbers)
    return {
        place: offset
        for place, offset in asked.items()
        if offset is None or not beginnings[place] <= offset <= ends[place]
    }


def _replacements(
    strategy: OffsetResetStrategy,
    outside: Mapping[TopicPartition, int | None],
    beginnings: Offsets,
    retriever: PartitionOffsetsRetriever,
) -> Offsets:
    if not outside:
        return {}
    if strategy is OffsetResetStrategy.LATEST:
        return retriever.end_offsets(outside)
    if strategy is OffsetResetStrategy.EARLIEST:
        return {place: beginnings[place] for place in outside}
    uncommitted = sorted(place for place, offset in outside.items() if offset is None)
    if uncommitted:
        raise TaskFailedError(
            f"No offset is committed for {listed(uncommitted)}, and the reset strategy is none. Commit one, or set "
            "auto.offset.reset to earliest or latest."
        )
    ends = retriever.high_watermarks(outside)
    places = [
        f"{place} at {offset} (its log is from {beginnings[place]} to {ends[place]})"
        for place, offset in sorted(outside.items())
    ]
    raise TaskFailedError(
        f"An offset to start at is not in its log, and the reset strategy is none: {listed(places)}. Correct the offset, or "
        "set auto.offset.reset to earliest or latest."
    )
