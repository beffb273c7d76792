"""Offset syncs as MirrorMaker has them: which are written, which are kept, and how offsets are translated by them.

A sync says of one record where it is on both sides. A reader keeps at most 64 of a partition, the further back the fewer, so
that a translated offset is never ahead of the exact one, and behind it by no more than the group's distance to the newest.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from headrace.kafka.topic_partition import TopicPartition
from headrace.mirror.formats import OffsetSync

SLOTS: Final = 64


class OffsetSyncStore:
    """What was read of the topic of offset syncs. One thread owns it.

    *is_precise* says that checkpoints which were written earlier are known, so that every sync may be used. Otherwise only
    the last sync of each partition that there is when reading begins: with older ones, an offset could be translated to less
    than it was before.
    """

    def __init__(self, *, is_precise: bool) -> None:
        self._is_precise = is_precise
        self._is_complete = False
        self._slots = dict[TopicPartition, Sequence[OffsetSync]]()

    def add(self, sync: OffsetSync) -> None:
        """Take the next *sync* of the topic."""
        place = TopicPartition(sync.topic, sync.partition)
        known = self._slots.get(place)
        is_usable = self._is_precise or self._is_complete
        if known is not None and is_usable and sync.upstream >= known[0].upstream:
            self._slots[place] = updated(known, sync)
        else:
            # None of the earlier syncs may be used any more: the slots are all one.
            self._slots[place] = (sync,) * SLOTS

    def complete(self) -> None:
        """All that the topic had when reading began has been added: from now on offsets can be translated."""
        self._is_complete = True

    def translated(self, place: TopicPartition, upstream: int) -> int | None:
        """Where on the target a group goes on whose next offset of *place* on the source is *upstream*.

        ``None`` when that is not known: no sync was read, or all that are kept are of later records.
        """
        if not self._is_complete or place not in self._slots:
            return None
        for sync in self._slots[place]:
            if sync.upstream == upstream:
                return sync.downstream
            if sync.upstream < upstream:
                # Of records after the synced one only the order is known.
                return sync.downstream + 1
        return None

    def kept(self, place: TopicPartition) -> tuple[OffsetSync, ...]:
        """The different syncs of *place* that are kept, the newest first."""
        return tuple(dict.fromkeys(self._slots.get(place, ())))


def updated(slots: Sequence[OffsetSync], new: OffsetSync) -> Sequence[OffsetSync]:
    """The slots after *new*, whose upstream offset is not before that of ``slots[0]``. Pure.

    What holds afterwards: slot 0 is the newest sync. A slot ``j`` after a slot ``i`` with another sync is of a record that
    is earlier by at most ``2**j - 2**i`` (so that precision is known) and at least ``2**(i-2)`` (so that syncs are spread
    out). Syncs further back stay where they are as long as that allows.
    """
    result = [new, *slots[1:]]
    candidates = _Candidates(slots, new)
    for index in range(1, SLOTS):
        chosen = candidates.chosen(result, index)
        if _is_near(result[index - 1], result[index], index):
            break
        result[index] = chosen
    return tuple(result)


class _Candidates:
    """Which sync is to be in a slot whose own one is too far back: a kept one if any fits, and else the one before."""

    def __init__(self, slots: Sequence[OffsetSync], new: OffsetSync) -> None:
        self._old = slots
        self._next = 0
        self._best = new

    def chosen(self, result: Sequence[OffsetSync], index: int) -> OffsetSync:
        """The sync for slot *index* of *result*; asked for one slot after the other."""
        before = result[index - 1]
        while True:
            old = self._old[self._next]
            is_apart = _is_apart(before, old, index - 1)
            fits = is_apart and _is_near(before, old, index) and _has_room(old, result, index)
            if fits:
                self._best = old
            # What is too close to the slot before is so for all further ones.
            is_passed = not is_apart or self._is_repeated()
            self._next += fits or is_passed
            if not is_passed or self._next >= index:
                return self._best

    def _is_repeated(self) -> bool:
        after = self._next + 1
        return after < SLOTS and self._old[self._next] is self._old[after]


def _is_near(newer: OffsetSync, older: OffsetSync, index: int) -> bool:
    """Whether *older* may be in slot *index*, after *newer* in the one before."""
    return newer is older or newer.upstream <= older.upstream + 2**index - 2 ** (index - 1)


def _is_apart(newer: OffsetSync, older: OffsetSync, index: int) -> bool:
    """Whether *newer* in slot *index* is far enough from *older* after it."""
    return newer is older or newer.upstream >= older.upstream + 2 ** max(index - 2, 0)


def _has_room(sync: OffsetSync, result: Sequence[OffsetSync], index: int) -> bool:
    """Whether *sync* in slot *index* is far enough from what the slot after it has."""
    return index + 1 == SLOTS or _is_apart(sync, result[index + 1], index)


class SyncedPartition:
    """Which syncs of one partition are written: one for every *lag_max* records, and wherever the distance changes.

    Told of the records in runs, it writes what MirrorMaker would write whose requests are still under way: only the last
    sync of a run. One thread owns it.
    """

    def __init__(self, place: TopicPartition, *, lag_max: int) -> None:
        self._place = place
        # The next offset after a synced one is known anyway; a sync for each record is the most there can be.
        self._step = max(lag_max, 0) + 1
        self._last_synced: int | None = None
        self._last_upstream = -1
        self._last_downstream = -1
        self._delayed: OffsetSync | None = None

    def copied(self, upstream: int, downstream: int, count: int = 1) -> OffsetSync | None:
        """The sync to be written now that *count* records from *upstream* on are at *downstream* and after it."""
        last = downstream + count - 1
        is_due = self._is_due(upstream, downstream)
        if is_due or self._last_synced is None:
            self._last_synced = downstream
        steps = (last - self._last_synced) // self._step
        self._last_synced += steps * self._step
        self._last_upstream, self._last_downstream = upstream + count - 1, last
        is_exact = self._last_synced == last and (is_due or steps > 0)
        self._delayed = None if is_exact else self._sync(self._last_upstream, last)
        synced = self._sync(upstream + self._last_synced - downstream, self._last_synced)
        return synced if is_due or steps > 0 else None

    def committed(self) -> OffsetSync | None:
        """The sync of the last record, if none was written for it: called at each commit, so that idle topics end exactly."""
        found, self._delayed = self._delayed, None
        return found

    def _is_due(self, upstream: int, downstream: int) -> bool:
        """Whether the first record of a run needs a sync of its own."""
        return (
            self._last_synced is None
            or upstream != self._last_upstream + 1
            or downstream < self._last_downstream
            or downstream - self._last_synced >= self._step
        )

    def _sync(self, upstream: int, downstream: int) -> OffsetSync:
        return OffsetSync(self._place.topic, self._place.partition, upstream, downstream)
