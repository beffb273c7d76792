"""The process that writes for a slot what another one has read, from its token to its last word."""

from __future__ import annotations

import logging
from collections.abc import Iterable

import pyarrow as pa

from headrace.connect.errors import ReplanError
from headrace.slot.entry import run_slot
from headrace.slot.split.received import ReceivedFrames
from headrace.slot.work import STALE, Outcome, SlotReport, SlotTicket

_log = logging.getLogger(__name__)
_ENDED_BY_READING = frozenset({Outcome.FINISHED, Outcome.IDLE, Outcome.ASKED})


def write_part(ticket: SlotTicket, batches: Iterable[pa.RecordBatch]) -> SlotReport:
    """Write the rows in *batches*, which is what *ticket*'s token stands for, and say how it ended.

    Called by Spark as :func:`~headrace.slot.entry.run_slot` is, beside
    :func:`~headrace.slot.split.reader.read_part`.
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
