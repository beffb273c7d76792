"""A moment by which something must have happened, shared by all the steps that lead to it; and when to log what lasts."""

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


@dataclass(slots=True)
class Reminder:
    """When to log something that lasts: once, and again whenever *seconds* have passed."""

    seconds: float = 600.0
    _logged_at: float | None = None

    def is_due(self, now: float) -> bool:
        """Whether it is to be logged, at *now* by any clock that does not go back; it counts as logged then."""
        is_due = self._logged_at is None or now >= self._logged_at + self.seconds
        if is_due:
            self._logged_at = now
        return is_due

    def reset(self) -> None:
        """It is over: the next one is another."""
        self._logged_at = None
