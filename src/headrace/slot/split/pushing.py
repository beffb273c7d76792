"""Pushes rows through Spark, which hands on only full batches, to the process that writes."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import pyarrow as pa

from headrace.connect.errors import TaskFailedError
from headrace.slot.frames import (
    Abort,
    Commit,
    EndOfPoll,
    Failed,
    Frame,
    Place,
    Records,
    Waiting,
)
from headrace.slot.split.encoder import FrameEncoder

_log = logging.getLogger(__name__)

# Half of the usual time between two commits: what was read a moment ago is to be in the next one.
PUSH_SECONDS = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Push:
    """What is enough to push: *rows* fill a batch of Spark's, *octets* the buffer of a Python process."""

    rows: int
    octets: int


class Pushing:
    """Rows of frames, pushed twice a second, however few frames come."""

    def __init__(
        self, encoder: FrameEncoder, push: Push, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.encoder = encoder
        self._push = push
        self._clock = clock
        self._pushed_at = clock()

    def rows(self, frames: Iterable[Frame | None]) -> Iterator[pa.RecordBatch]:
        """The rows of *frames*; the last of them say what was wrong when a frame is none that can travel.

        Each ``None`` among them says that nothing has come for :data:`PUSH_SECONDS`.
        """
        at: Place | None = None
        before: Frame | None = None
        try:
            for frame in frames:
                if frame is None:
                    yield from self._meanwhile(before)
                    continue
                before = frame
                at = frame.begins_at if isinstance(frame, Records) else None
                yield from self.encoder.rows(frame)
                if self._is_due(frame):
                    yield from self.pushes()
        except TaskFailedError as error:
            yield from self.encoder.rows(Failed(error, at, abandons=at is None))
        except Exception as error:  # noqa: BLE001 (a Spark job that it ended would be tried again for ever)
            _log.exception("Records could not be handed to Spark")
            told = TaskFailedError(f"Records could not be handed to Spark: {error!r}")
            yield from self.encoder.rows(Failed(told, abandons=True))

    def _meanwhile(self, before: Frame | None) -> Iterator[pa.RecordBatch]:
        """Rows to push while nothing comes behind the frame *before*."""
        if isinstance(before, EndOfPoll):
            before = Waiting()
        if isinstance(before, Waiting):
            yield from self.encoder.rows(before)
        yield from self.pushes()

    def _is_due(self, frame: Frame) -> bool:
        """Whether to push behind *frame*: not before the end of its poll, unless that is long in coming."""
        if isinstance(frame, Commit | Abort):
            return True
        patience = 2 * PUSH_SECONDS if isinstance(frame, Records) else PUSH_SECONDS
        return self._clock() >= self._pushed_at + patience

    def pushes(self) -> Iterator[pa.RecordBatch]:
        """Rows that mean nothing, and are enough."""
        yield self.encoder.nothing(self._push.rows)
        yield self.encoder.nothing(1, bytes(self._push.octets))
        self._pushed_at = self._clock()
