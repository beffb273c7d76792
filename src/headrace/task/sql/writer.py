"""The process that writes for a slot what another process has read, from its claim to its final report."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator

import pyarrow as pa

from headrace.connect.errors import ReplanError
from headrace.task.frames import Frame
from headrace.task.slot_report import STALE, Outcome, SlotReport
from headrace.task.slot_work import SlotTicket, SlotWork
from headrace.task.sql.frame_codec import FrameDecoder
from headrace.task.sql.step import work_of_writing
from headrace.task.worker_task import run_slot

_log = logging.getLogger(__name__)

_LOST = "The process that reads for this slot was lost"
_ENDED_BY_READING = frozenset({Outcome.FINISHED, Outcome.IDLE, Outcome.ASKED})


class ReceivedFrames:
    """The frames in *batches*, which Spark hands to the process that writes; *outcome* is how reading ended."""

    def __init__(self, batches: Iterable[pa.RecordBatch]) -> None:
        self._batches = iter(batches)
        self.outcome = Outcome.ASKED

    def part_of(self, work: SlotWork) -> SlotWork:
        """The part of the slot's *work* after reading."""
        return work_of_writing(work)

    def frames(self) -> Iterator[Frame]:
        """All frames, in order, until reading has ended.

        Raises :class:`~headrace.connect.errors.ReplanError` when the row that says so is missing.
        """
        decoder = FrameDecoder()
        for batch in self._arriving():
            yield from decoder.frames(batch)
            if decoder.outcome is not None:
                self.outcome = decoder.outcome
                return
        raise ReplanError(f"{_LOST}: it ended without a final report.")

    def drain(self) -> None:
        """Wait until the reading process has returned, because Spark ends it when its rows are no longer consumed."""
        for _ in self._arriving():
            pass

    def _arriving(self) -> Iterator[pa.RecordBatch]:
        try:
            yield from self._batches
        except (pa.ArrowException, OSError, EOFError) as error:
            raise ReplanError(f"{_LOST}: {error}") from error


def write_part(ticket: SlotTicket, batches: Iterable[pa.RecordBatch]) -> SlotReport:
    """Write the rows in *batches* for *ticket*'s token; returns how it ended.

    Called by Spark as :func:`~headrace.task.worker_task.run_slot` is, beside
    :func:`~headrace.task.sql.reader.read_part`.
    """
    received = ReceivedFrames(batches)
    report = run_slot(ticket, received)
    if report.outcome in _ENDED_BY_READING or _is_a_copy(report):
        try:
            received.drain()
        except ReplanError as error:
            # Everything that it read is committed by now, and the driver has the report.
            _log.warning("%s", error)
    return report


def _is_a_copy(report: SlotReport) -> bool:
    """Whether this is a copy of a slot that another attempt has claimed; it is drained so that a Spark failure reaches it."""
    return report.outcome is Outcome.STALE and report.reason == STALE
