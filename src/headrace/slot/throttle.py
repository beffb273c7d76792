"""Holds a slot to a rate, by cutting batches and waiting between the pieces."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

from headrace.connect.batch import SourceBatch

_PIECES_PER_SECOND = 10


class Throttle:
    """At most *records_per_second*; ``None`` passes every batch on as it is."""

    def __init__(
        self, records_per_second: int | None, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._rate = records_per_second
        self._clock = clock
        self._free_at = clock()

    def paced(self, batch: SourceBatch, wait: Callable[[float], None]) -> Iterator[SourceBatch]:
        """The pieces of *batch*, each when its time has come; *wait* may return early."""
        if self._rate is None:
            yield batch
            return
        step = max(1, self._rate // _PIECES_PER_SECOND)
        for start in range(0, len(batch), step):
            piece = batch.slice(start, min(step, len(batch) - start))
            wait(max(0.0, self._free_at - self._clock()))
            self._free_at = max(self._free_at, self._clock()) + len(piece) / self._rate
            yield piece
