"""Medians with intervals that assume nothing about how the values are distributed. Pure."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

WANTED_COVERAGE = 0.95


@dataclass(frozen=True, slots=True, kw_only=True)
class MedianInterval:
    """A median and two of the values, between which the true one lies with probability *coverage*."""

    median: float
    low: float
    high: float
    coverage: float


def median_interval(
    values: Sequence[float], *, coverage: float = WANTED_COVERAGE
) -> MedianInterval:
    """The narrowest interval between order statistics that covers as wanted, or else the widest.

    Of n values the k-th smallest and k-th largest enclose the median unless fewer than k of them lie on
    one side of it, which is a matter of n coins. Raises ValueError when there are no values.
    """
    ordered = sorted(values)
    if not ordered:
        raise ValueError("A median needs at least one value.")
    ranks = range(1, len(ordered) // 2 + 1)
    enough = [rank for rank in ranks if _coverage(len(ordered), rank) >= coverage]
    rank = max(enough, default=1)
    return MedianInterval(
        median=statistics.median(ordered),
        low=ordered[rank - 1],
        high=ordered[-rank],
        coverage=_coverage(len(ordered), rank),
    )


def _coverage(count: int, rank: int) -> float:
    """How likely at least *rank* of *count* values lie on each side of the median."""
    if count == 1:
        return 0.0
    return 1 - 2 * sum(math.comb(count, below) for below in range(rank)) / 2**count
