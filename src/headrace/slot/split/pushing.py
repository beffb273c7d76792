"""Pushes rows through Spark, which hands on only full batches, to the process that writes."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import pyarrow as pa

from headrace.connect.errors import TaskFailedError
from headrace.slot.frames import Failed, Frame
from headrace.slot.split.encoder import FrameEncoder

# Half of the usual time between two commits: what was read a moment ago is to be in the next one.
PUSH_SECONDS = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Push:
    """What is enough to push: *rows* fill a batch of Spark's, *octets* the buffer of a Python process."""

    rows: int
    octets: int


class Pushing:
    """Rows of frames, pushed twice a second as long as frames come, however few."""

    def __init__(
        self, encoder: FrameEncoder, push: Push, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.encoder = encoder
        self._push = push
        self._clock = clock
        self._pushed_at = clock()

    def rows(self, frames: Iterable[Frame]) -> Iterator[pa.RecordBatch]:
        """The rows of *frames*; the last of them say what was wrong when a frame is none that can travel."""
        try:
            for frame in frames:
                yield from self.encoder.rows(frame)
                if self._clock() >= self._pushed_at + PUSH_SECONDS:
                    yield from self.pushes()
        except TaskFailedError as error:
            yield from self.encoder.rows(Failed(error))

    def pushes(self) -> Iterator[pa.RecordBatch]:
        """Rows that mean nothing, and are enough."""
        yield self.encoder.nothing(self._push.rows)
        yield self.encoder.nothing(1, bytes(self._push.octets))
        self._pushed_at = self._clock()
