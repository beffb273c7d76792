"""How long a producer's queue has not moved, which tells a broker that is slow from one that does not answer."""

from __future__ import annotations

from headrace.kafka.deadline import Clock


class Stall:
    """Watches a queue while its owner waits for it. *longest* is the longest time without movement, in seconds."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._length = 0
        self._moved_at = 0.0
        self.longest = 0.0

    def begin(self, length: int) -> None:
        """The owner begins to wait; *length* records are in the queue."""
        self._length, self._moved_at = length, self._clock()

    def see(self, length: int) -> None:
        """The owner still waits, or has just ended, with *length* records left."""
        now = self._clock()
        self.longest = max(self.longest, now - self._moved_at)
        if length < self._length:
            self._length, self._moved_at = length, now
