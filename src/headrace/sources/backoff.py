"""How long to wait when there is nothing, or when something failed: twice as long each time."""

from __future__ import annotations

import random

_LONGEST_STEP = 11
"""2 to the power of this, in milliseconds, is the longest wait: it fits into the time of a clean stop."""
_JITTER_MS = 512


class Backoff:
    """The waits of the seed's framework: 2, 4, 8 … 2048 ms, each with half a second of chance around it."""

    def __init__(self, choices: random.Random | None = None) -> None:
        self._choices = choices or random.Random()
        self._step = 0

    def reset(self) -> None:
        """Begin with the shortest wait again."""
        self._step = 0

    def next_seconds(self) -> float:
        """How long to wait now, at least 0."""
        self._step = min(self._step + 1, _LONGEST_STEP)
        jitter = self._choices.randrange(-_JITTER_MS, _JITTER_MS)
        return max(0, 2**self._step + jitter) / 1000
