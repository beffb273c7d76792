"""A moment by which something must have happened, shared by all the steps that lead to it."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

Clock = Callable[[], float]
"""Seconds of a clock that never goes back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Deadline:
    """Each step asks ``remaining`` for how long it may wait, and so spends from the same time."""

    at: float
    clock: Clock

    @classmethod
    def after(cls, seconds: float, clock: Clock = time.monotonic) -> Deadline:
        """The deadline *seconds* from now."""
        return cls(at=clock() + seconds, clock=clock)

    def remaining(self, at_most: float | None = None) -> float:
        """Seconds left, never negative, and no more than *at_most*."""
        left = max(0.0, self.at - self.clock())
        return left if at_most is None else min(left, at_most)

    @property
    def expired(self) -> bool:
        """Whether no time is left."""
        return self.clock() >= self.at
