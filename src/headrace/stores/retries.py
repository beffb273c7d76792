"""Trying again what may pass."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from headrace.stores.errors import StoreUnavailableError

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Retries:
    """How often to try in all, and how long to wait in between: twice as long each time, with jitter."""

    attempts: int = 6
    first_seconds: float = 0.1
    longest_seconds: float = 20.0
    sleep: Callable[[float], object] = time.sleep

    def call(self, action: Callable[[], _T]) -> _T:
        """What *action* returns, as soon as it does not raise ``StoreUnavailableError``."""
        for failed in range(1, self.attempts):
            try:
                return action()
            except StoreUnavailableError:
                self.sleep(self.seconds(failed) * random.uniform(0.5, 1.0))
        return action()

    def seconds(self, failed: int) -> float:
        """The longest wait after *failed* attempts."""
        return min(self.longest_seconds, self.first_seconds * 2 ** (failed - 1))
