"""One figure that is measured in addition to the table of records a second."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """*value* of *unit*, which is empty for a count; at most *most* is wanted, ``None`` where nothing is."""

    title: str
    value: float
    unit: str
    most: float | None = None

    @property
    def verdict(self) -> str:
        """Whether the goal is reached; empty without a goal."""
        if self.most is None:
            return ""
        return "reached" if self.value <= self.most else "missed"


def median_and_worst(
    title: str, seconds: Sequence[float], *, median: float | None = None, worst: float | None = None
) -> Sequence[Figure]:
    """Two figures of *seconds*, with what is wanted of each."""
    return [
        Figure(
            title=f"{title}, median of {len(seconds)}",
            value=statistics.median(seconds),
            unit="s",
            most=median,
        ),
        Figure(title="the same, longest", value=max(seconds), unit="s", most=worst),
    ]
