"""How long a polled connector rests after a micro-batch that brought nothing; pure."""

from __future__ import annotations

from collections.abc import Mapping

from headrace.connect.partition import SourceOffset, SourcePartition
from headrace.runtime.offset_desk import OffsetSnapshot
from headrace.runtime.running.batch_run import BatchResult


class Rests:
    """The rests of one polled connector: each twice as long as the one before, until something comes.

    What comes is a record, also one that was passed over, or an offset that moves without one: a task that
    reads on and on while nothing matches is not idle. Used by the connector's thread.
    """

    def __init__(self, *, first_seconds: float, longest_seconds: float) -> None:
        self._first_seconds = first_seconds
        self._longest_seconds = longest_seconds
        self._seconds = 0.0
        self._idle_since: Mapping[SourcePartition, SourceOffset] | None = None

    def ended(self, result: BatchResult | None, began_at: OffsetSnapshot) -> None:
        """Note how the micro-batch ended that began with the offsets *began_at*; ``None``: it did not begin.

        One whose slots did not all end for want of records says nothing about how long to rest.
        """
        if result is None:
            return
        if result.brought_anything():
            self._seconds = 0.0
        elif result.idle():
            self._idle_since = began_at.known()

    def due(self, offsets: OffsetSnapshot) -> float | None:
        """How many seconds to rest before the next micro-batch; ``None`` when it may begin.

        A rest is due at most once for each micro-batch.
        """
        before, self._idle_since = self._idle_since, None
        if before is None:
            return None
        if before != offsets.known():
            self._seconds = 0.0
            return None
        self._seconds = min(max(self._seconds * 2, self._first_seconds), self._longest_seconds)
        return self._seconds
