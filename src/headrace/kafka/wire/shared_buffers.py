"""A bound for the memory of batches that are parts of one buffer: one batch alone would keep all of it."""

from __future__ import annotations

import weakref
from collections import deque

from headrace.kafka.wire.partition_queue import ProducerBatch


class SharedBuffers:
    """Gives a batch bytes of its own when *most_bytes* were handed over after it, and it is still to be acknowledged.

    Batches of many partitions are laid out together, or come in one answer of a broker. Where one partition is stuck while
    others go on, its batches would otherwise keep what they were laid out with: many times the bytes that are counted for
    them. So those of the last *most_bytes* share buffers, and older ones do not. In the usual course nothing is copied.
    """

    def __init__(self, most_bytes: int) -> None:
        self._most = most_bytes
        self._handed_over = 0
        self._sharing = deque[tuple[int, weakref.ref[ProducerBatch]]]()

    def add(self, batch: ProducerBatch) -> None:
        """*batch* was handed over; called for each one."""
        self._handed_over += batch.nbytes
        if memoryview(memoryview(batch.batch.data).obj).nbytes > batch.nbytes:
            self._sharing.append((self._handed_over, weakref.ref(batch)))
        while self._sharing:
            end, found = self._sharing[0]
            old, is_late = found(), end + self._most < self._handed_over
            if old is not None:
                if not is_late:
                    return
                old.batch = old.batch._replace(data=bytes(old.batch.data))
            self._sharing.popleft()
