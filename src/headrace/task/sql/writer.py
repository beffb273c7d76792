"""The process that writes for a slot what another one has read, from its token to its last word."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator

import pyarrow as pa

from headrace.connect.errors import ReplanError
from headrace.task.chain import work_of_writing
from headrace.task.frames import Frame
from headrace.task.sql.decoder import FrameDecoder
from headrace.task.work import STALE, Outcome, SlotReport, SlotTicket, SlotWork
from headrace.task.worker_task import run_slot

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
        """Wait until the other process has returned: Spark ends it as soon as no one waits for it."""
        for _ in self._arriving():
            pass

    def _arriving(self) -> Iterator[pa.RecordBatch]:
        try:
            yield from self._batches
        except (pa.ArrowException, OSError, EOFError) as error:
            raise ReplanError(f"{_LOST}: {error}") from error


_log = logging.getLogger(__name__)
_ENDED_BY_READING = frozenset({Outcome.FINISHED, Outcome.IDLE, Outcome.ASKED})


def write_part(ticket: SlotTicket, batches: Iterable[pa.RecordBatch]) -> SlotReport:
    """Write the rows in *batches*, which is what *ticket*'s token stands for, and say how it ended.

    Called by Spark as :func:`~headrace.task.worker_task.run_slot` is, beside
    :func:`~headrace.task.sql.reader.read_part`.
    """
    received = ReceivedFrames(batches)
    report = run_slot(ticket, received)
    if report.outcome in _ENDED_BY_READING or _is_a_copy(report):
        try:
            received.drain()
        except ReplanError as error:
            # Everything that it has read is committed by now, and the driver knows.
            _log.warning("%s", error)
    return report


def _is_a_copy(report: SlotReport) -> bool:
    """Whether nothing is written because another attempt was to; what fails Spark on the way here fails this one, too."""
    return report.outcome is Outcome.STALE and report.reason == STALE
