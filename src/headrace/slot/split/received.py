"""Frames as they come from the process that reads, by way of Spark."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa

from headrace.connect.errors import ReplanError
from headrace.slot.frames import Frame
from headrace.slot.split.cutting import work_of_writing
from headrace.slot.split.decoder import FrameDecoder
from headrace.slot.work import Outcome, SlotWork

_LOST = "The process that reads for this slot was lost"


class ReceivedFrames:
    """The frames in *batches*, which Spark hands to the process that writes. *outcome* is how reading ended."""

    def __init__(self, batches: Iterable[pa.RecordBatch]) -> None:
        self._batches = iter(batches)
        self.outcome = Outcome.ASKED

    def part_of(self, work: SlotWork) -> SlotWork:
        """What is left of the slot's *work* when it has been read."""
        return work_of_writing(work)

    def frames(self) -> Iterator[Frame]:
        """All of them, in order, until reading has ended.

        Raises :class:`~headrace.connect.errors.ReplanError` when it does not say that it has.
        """
        decoder = FrameDecoder()
        for batch in self._arriving():
            yield from decoder.frames(batch)
            if decoder.outcome is not None:
                self.outcome = decoder.outcome
                return
        raise ReplanError(f"{_LOST}: it ended without a last word.")

    def drain(self) -> None:
        """Wait until the other process has returned: Spark ends it as soon as nobody waits for it."""
        for _ in self._arriving():
            pass

    def _arriving(self) -> Iterator[pa.RecordBatch]:
        try:
            yield from self._batches
        except (pa.ArrowException, OSError, EOFError) as error:
            raise ReplanError(f"{_LOST}: {error}") from error
