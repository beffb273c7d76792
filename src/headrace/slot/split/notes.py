"""What rows that are not records carry, as bytes."""

from __future__ import annotations

import pickle
import traceback
from dataclasses import replace
from typing import Any

import pyarrow as pa

from headrace.connect.record import SourceRecord
from headrace.slot.frames import DeadLetter, Failed, Filtered, Frame, Records, Refused
from headrace.slot.split.carried import carried_error, carried_record


class ReadingTrace(Exception):  # noqa: N818 (a cause that is printed, never raised)
    """The stack trace of an error, as it was in the process that reads."""

    def __init__(self, trace: str) -> None:
        super().__init__(trace)

    def __str__(self) -> str:
        return f"in the process that reads:\n{self.args[0]}"


def note_of(frame: Frame) -> bytes:
    """*frame*, which is not records, as bytes."""
    match frame:
        case Failed() | DeadLetter() | Refused():
            trace = "".join(traceback.format_exception(frame.error))
            return pickle.dumps((_carried(frame), trace))
        case Filtered():
            return pickle.dumps((replace(frame, records=_records(frame.records)), None))
        case _:
            return pickle.dumps((frame, None))


def frame_of(note: bytes) -> Frame:
    """The frame that :func:`note_of` has written."""
    frame, trace = pickle.loads(note)  # noqa: S301 (the process that reads has written it, which is ours)
    if isinstance(frame, Failed | DeadLetter | Refused):
        frame.error.__cause__ = ReadingTrace(trace)
    return frame


def _carried(frame: Any) -> Any:  # noqa: ANN401 (one of three kinds, as given)
    """*frame* as another process can have it, and without the columns that its one row is a slice of."""
    frame = replace(frame, error=carried_error(frame.error))
    match frame:
        case DeadLetter(original=SourceRecord() as original):
            return replace(frame, original=carried_record(original))
        case Refused(records=records):
            row = Records(records.batch.take(pa.array([0])), records.originals)
            return replace(frame, records=_records(row))
        case Failed(refused=Refused() as refused):
            return replace(frame, refused=_carried(refused))
        case _:
            return frame


def _records(records: Records) -> Records:
    if records.originals is None:
        return records
    return replace(records, originals=[carried_record(each) for each in records.originals])
