"""Exact translation of offsets, by what the mirror itself wrote down: where each unbroken run of records went.

Each transaction has the runs that it copied, so that there is one for every copied record, and none for any other. Some may
be left out nevertheless, where runs are short or a reader has read many: an offset that no run has is translated to the end
of the run before it, never to more. So a group that goes on there misses nothing, and reads twice no more than what was
left out.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final

import numpy as np

from headrace.kafka.topic_partition import TopicPartition
from headrace.mirror.formats import OffsetRange
from headrace.mirror.range_columns import RangeColumns

# For a flow with a commit every second, an hour of exact offsets; a partition has 24 bytes for each.
MOST_KEPT: Final = 4096
DEFAULT_RETENTION_MS: Final = 7 * 24 * 3600 * 1000
"""Kafka's own."""


def merged(ranges: Iterable[OffsetRange]) -> Iterator[OffsetRange]:
    """*ranges*, one for those of a partition that follow each other without a gap on both sides. Pure.

    Those of one partition come in the order of their offsets.
    """
    last = dict[TopicPartition, OffsetRange]()
    for each in ranges:
        place = TopicPartition(each.topic, each.partition)
        before = last.get(place)
        if before is not None and _adjoin(before, each):
            last[place] = before._replace(records=before.records + each.records)
            continue
        if before is not None:
            yield before
        last[place] = each
    yield from last.values()


def thinned(ranges: Sequence[OffsetRange], most: int) -> Sequence[OffsetRange]:
    """At most *most* of one partition's *ranges*: the last one, and others at equal distances. Pure.

    For transactions out of a compacted topic, which may have as many runs as records.
    """
    if len(ranges) <= most:
        return ranges
    last = len(ranges) - 1
    return [ranges[last - last * back // most] for back in reversed(range(most))]


def retention_ms(topics: Iterable[Mapping[str, str | None]]) -> int:
    """How long ranges are kept that speak of remote *topics* with these settings: as long as the longest of their records.

    -1 is for ever, as where one of the topics is compacted.
    """
    longest = 0
    for settings in topics:
        found = int(settings.get("retention.ms") or DEFAULT_RETENTION_MS)
        if found < 0 or "compact" in (settings.get("cleanup.policy") or ""):
            return -1
        longest = max(longest, found)
    return longest or DEFAULT_RETENTION_MS


class RangesRetention:
    """Decides how long ranges are kept, by one listing of the remote topics after the other. Used by one thread.

    What is deleted cannot be got back, and a listing may lack topics: those that this client may not see, or that a broker
    does not know yet. So the time is made longer by any listing, and shorter only by one that has all topics that are
    expected, and all that the one before had.
    """

    def __init__(self) -> None:
        self._before: frozenset[str] | None = None

    def decided(
        self,
        listed: Mapping[str, Mapping[str, str | None]],
        expected: Collection[str],
        *,
        now_ms: int,
    ) -> int:
        """The ``retention.ms`` from now on, where it is *now_ms*, after topics with these settings were *listed*. -1 is for ever."""
        if not listed:
            return now_ms
        before, self._before = self._before, frozenset(listed)
        longest = retention_ms(listed.values())
        is_sure = before is not None and listed.keys() >= before.union(expected)
        return longest if is_sure or not _is_shorter(longest, now_ms) else now_ms


def _is_shorter(retention: int, other: int) -> bool:
    return retention >= 0 and (other < 0 or retention < other)


def _adjoin(before: OffsetRange, after: OffsetRange) -> bool:
    follows = before.upstream_end == after.upstream
    return follows and before.downstream_end == after.downstream


class OffsetRangeStore:
    """What was read of the topic of offset ranges. One thread owns it.

    Of each partition it keeps at most *most* runs: the newest half all, and of the older ones the fewer the further back.
    """

    def __init__(self, *, most: int = MOST_KEPT) -> None:
        self._most = most
        self._runs = dict[TopicPartition, _Runs]()

    def add(self, found: OffsetRange) -> None:
        """Take the next range of the topic. What it contradicts of earlier ones is forgotten.

        An offset of the source comes again when a topic was made again or is copied once more, and one of the target when the
        remote topic was made again.
        """
        runs = self._runs.setdefault(TopicPartition(found.topic, found.partition), _Runs())
        runs.add(found)
        if len(runs) > self._most:
            runs.thin()

    def extend(self, found: RangeColumns) -> None:
        """Take the next ranges of one partition, as :meth:`add` does one by one."""
        runs = self._runs.setdefault(found.place, _Runs())
        if found.grows and runs.is_before(found):
            runs.extend(found, self._most)
            return
        for each in found.ranges():
            self.add(each)

    def translated(self, place: TopicPartition, upstream: int) -> int | None:
        """Where on the target a group goes on whose next offset of *place* on the source is *upstream*.

        ``None`` for an offset before all known runs. One after them all is translated to their end.
        """
        runs = self._runs.get(place)
        return None if runs is None else runs.translated(upstream)

    def end(self, place: TopicPartition) -> int | None:
        """The source offset after the last run of *place*; ``None`` without one."""
        runs = self._runs.get(place)
        return None if runs is None else runs.end()

    def kept(self, place: TopicPartition) -> tuple[OffsetRange, ...]:
        """The runs of *place* that are kept, in order."""
        return tuple(
            OffsetRange(place.topic, place.partition, *run)
            for run in (self._runs[place].all() if place in self._runs else ())
        )


class _Runs:
    """The runs of one partition, whose offsets grow on both sides."""

    def __init__(self) -> None:
        self._upstream, self._downstream, self._count = array("q"), array("q"), array("q")

    def __len__(self) -> int:
        return len(self._upstream)

    def all(self) -> Iterator[tuple[int, int, int]]:
        return zip(self._upstream, self._downstream, self._count, strict=True)

    def end(self) -> int | None:
        return self._end()[0] if self._upstream else None

    def add(self, found: OffsetRange) -> None:
        self._forget(found)
        if self._upstream and self._end() == (found.upstream, found.downstream):
            self._count[-1] += found.records
            return
        self._upstream.append(found.upstream)
        self._downstream.append(found.downstream)
        self._count.append(found.records)

    def is_before(self, found: RangeColumns) -> bool:
        """Whether all of *found*, whose offsets grow, are after the last run."""
        if not self._upstream:
            return True
        upstream, downstream = self._end()
        return bool(found.upstream[0] >= upstream and found.downstream[0] >= downstream)

    def extend(self, found: RangeColumns, most: int) -> None:
        """Append what :meth:`is_before`, and never keep more than *most* runs."""
        _, upstream, downstream, records = found
        begins = np.ones(len(records), bool)
        begins[1:] = (upstream[1:] != upstream[:-1] + records[:-1]) | (
            downstream[1:] != downstream[:-1] + records[:-1]
        )
        starts = np.flatnonzero(begins)
        counts = np.add.reduceat(records, starts)
        if self._upstream and self._end() == (upstream[0], downstream[0]):
            self._count[-1] += int(counts[0])
            starts, counts = starts[1:], counts[1:]
        while len(starts):
            room = most + 1 - len(self)
            self._upstream.frombytes(upstream[starts[:room]].tobytes())
            self._downstream.frombytes(downstream[starts[:room]].tobytes())
            self._count.frombytes(counts[:room].tobytes())
            starts, counts = starts[room:], counts[room:]
            if len(self) > most:
                self.thin()

    def thin(self) -> None:
        older = (len(self) + 1) // 2
        for column in (self._upstream, self._downstream, self._count):
            del column[1:older:2]

    def translated(self, upstream: int) -> int | None:
        index = bisect_right(self._upstream, upstream) - 1
        if index < 0:
            return None
        return self._downstream[index] + min(upstream - self._upstream[index], self._count[index])

    def _forget(self, found: OffsetRange) -> None:
        """Forget all that *found* contradicts."""
        if self._upstream and found.downstream < self._end()[1]:
            self._cut(0)
        index = bisect_right(self._upstream, found.upstream - 1)
        self._cut(index)
        if index:
            self._count[-1] = min(self._count[-1], found.upstream - self._upstream[-1])

    def _cut(self, length: int) -> None:
        for column in (self._upstream, self._downstream, self._count):
            del column[length:]

    def _end(self) -> tuple[int, int]:
        """The offsets after the last run, on both sides."""
        count = self._count[-1]
        return self._upstream[-1] + count, self._downstream[-1] + count
