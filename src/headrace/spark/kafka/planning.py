"""How much of the backlog one micro-batch reads, and which Spark task reads what. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple
from uuid import UUID

from headrace.connect.errors import TaskFailedError
from headrace.discovery.state import EnumeratorState, Status
from headrace.kafka.topic_partition import TopicPartition

SMALL_RECORDS: Final = 10_000
"""Ranges with fewer records than this share a task, once there are more than :data:`FEW_TASKS` of them."""

FEW_TASKS: Final = 64
"""Up to so many ranges have a task each, as with Spark's own source, however small they are."""


class OffsetRange(NamedTuple):
    """What is read of one partition: the offsets from *start* up to, not including, *end*."""

    place: TopicPartition
    start: int
    end: int
    topic_id: UUID | None = None
    """The topic as it was planned; another id at reading means that it was deleted and made again."""

    @property
    def size(self) -> int:
        """How many offsets these are; there may be fewer records."""
        return self.end - self.start


def ranges(start: EnumeratorState, end: EnumeratorState) -> list[OffsetRange]:
    """What a batch from *start* to *end* reads, in the order of partitions; a function of these two and nothing else.

    A partition that is not in *start* (of the first batch, or found since) begins where *end* says that it starts: this
    was resolved once, when it was found. So a batch that is planned again, after a crash, is the same batch.
    """
    return list(_ranges(start, end))


def _ranges(start: EnumeratorState, end: EnumeratorState) -> Iterator[OffsetRange]:
    for place, one in sorted(end.partitions.items()):
        if one.status is not Status.ASSIGNED or one.position is None:
            continue
        topic_id = end.topic_ids.get(place.topic)
        before = start.partitions.get(place)
        # Without an id the topic was stored by brokers that have none.
        is_same = start.topic_ids.get(place.topic) in (None, topic_id)
        begin = None if before is None else before.position
        if begin is None or (one.start is not None and not is_same):
            begin = one.start
        if begin is None:
            raise TaskFailedError(
                f"The query's checkpoint does not say where {place} begins; it was not written by this source."
            )
        if begin < one.position:
            yield OffsetRange(place, begin, one.position, topic_id)


def limited(
    backlog: Mapping[TopicPartition, tuple[int, int]], most: int
) -> dict[TopicPartition, int]:
    """The end of each partition's share of *most* offsets. *backlog* holds where each begins and ends now.

    Shares are in proportion to what is left to read, at least one offset each. The sum is never above *most*: where
    that is less than there are partitions, they take turns; whose turn it is follows from the offsets alone, so that a
    restarted query plans the same.
    """
    waiting = sorted((place, end - start) for place, (start, end) in backlog.items() if end > start)
    total = sum(size for _, size in waiting)
    ends = {place: start for place, (start, _) in backlog.items()}
    if total <= most:
        return ends | {place: ends[place] + size for place, size in waiting}
    turn = sum(ends.values()) % len(waiting)
    waiting = waiting[turn:] + waiting[:turn]
    spare = most - len(waiting)
    if spare < 0:
        return ends | {place: ends[place] + 1 for place, _ in waiting[:most]}
    beyond = total - len(waiting)
    shares = {place: 1 + spare * (size - 1) // beyond for place, size in waiting}
    rest = most - sum(shares.values())
    for place, size in waiting:
        if rest and shares[place] < size:
            shares[place] += 1
            rest -= 1
    return ends | {place: ends[place] + share for place, share in shares.items()}


def tasks(
    ranges: Sequence[OffsetRange], *, at_least: int = 0, most_records: int | None = None
) -> list[tuple[OffsetRange, ...]]:
    """What each Spark task reads, by ``minPartitions`` (*at_least*) and ``maxRecordsPerPartition`` (*most_records*).

    One range each; large ones are split to meet both numbers. Where there are many small ones, several share a task:
    starting a task costs more than reading them.
    """
    pieces = [piece for each in ranges for piece in _split(each, _at_most(each.size, most_records))]
    total = sum(each.size for each in pieces)
    if len(pieces) < at_least and total:
        pieces = [
            piece for each in pieces for piece in _split(each, round(at_least * each.size / total))
        ]
    return list(_shared(pieces, max(at_least, FEW_TASKS), most_records))


def _at_most(size: int, most: int | None) -> int:
    return 1 if most is None else -(-size // most)


def _split(whole: OffsetRange, count: int) -> Iterator[OffsetRange]:
    count = max(1, min(count, whole.size))
    for number in range(count):
        start = whole.start + whole.size * number // count
        end = whole.start + whole.size * (number + 1) // count
        yield whole._replace(start=start, end=end)


def _shared(
    pieces: Sequence[OffsetRange], few: int, most: int | None
) -> Iterator[tuple[OffsetRange, ...]]:
    if len(pieces) <= few:
        yield from ((each,) for each in pieces)
        return
    # A share is never larger than what makes *few* tasks of all, nor than what is small.
    enough = min(SMALL_RECORDS, -(-sum(each.size for each in pieces) // few))
    together: list[OffsetRange] = []
    size = 0
    for each in pieces:
        if together and most is not None and size + each.size > most:
            yield tuple(together)
            together, size = [], 0
        if together and together[-1].place == each.place:
            # One task reads a partition as one range.
            together[-1] = together[-1]._replace(end=each.end)
        else:
            together.append(each)
        size += each.size
        if size >= enough:
            yield tuple(together)
            together, size = [], 0
    if together:
        yield tuple(together)
