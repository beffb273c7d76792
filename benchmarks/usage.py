"""CPU time and memory over time, from samples. Pure."""

from __future__ import annotations

import bisect
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """All processes of a program at one moment: *at* in seconds since the epoch."""

    at: float
    cpu_seconds: float
    rss_bytes: int
    slot_rss_bytes: int


class NeverBack:
    """Makes a sum that may drop, because a process ended without being waited for, one that does not."""

    def __init__(self) -> None:
        self._lost = 0.0
        self._last = 0.0

    def total(self, seen: float) -> float:
        """What was used so far, when the living processes say *seen*."""
        self._lost += max(0.0, self._last - seen)
        self._last = seen
        return self._lost + seen


@dataclass(frozen=True, slots=True)
class Usage:
    """The readings of one run, in the order of time."""

    readings: Sequence[Reading]

    def cpu_seconds(self, start: float, end: float) -> float:
        """CPU time used between two moments, straight lines drawn between readings."""
        return self._cpu_at(end) - self._cpu_at(start)

    @property
    def peak_rss_bytes(self) -> int:
        """The most memory that all processes had at once; what they share counts for each."""
        return max((each.rss_bytes for each in self.readings), default=0)

    @property
    def peak_slot_rss_bytes(self) -> int:
        """The most memory that one slot's process had; 0 where there are no slots."""
        return max((each.slot_rss_bytes for each in self.readings), default=0)

    def _cpu_at(self, moment: float) -> float:
        after = bisect.bisect_left(self.readings, moment, key=lambda each: each.at)
        if after == len(self.readings):
            return self.readings[-1].cpu_seconds
        later = self.readings[after]
        # Before the first reading nothing was used.
        earlier = self.readings[after - 1] if after else None
        if earlier is None:
            return later.cpu_seconds
        share = (moment - earlier.at) / (later.at - earlier.at)
        return earlier.cpu_seconds + share * (later.cpu_seconds - earlier.cpu_seconds)
