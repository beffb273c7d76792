"""What rows that are not records carry, as bytes."""

from __future__ import annotations

import dataclasses
import pickle
import traceback
from typing import Any

import pyarrow as pa

from headrace.connect.errors import RecordError
from headrace.slot.dead_letters import class_name
from headrace.slot.frames import DeadLetter, Failed, Frame, Records, Refused


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
            error = _carried(frame.error)
            return pickle.dumps((_compact(dataclasses.replace(frame, error=error)), trace))
        case _:
            return pickle.dumps((frame, None))


def frame_of(note: bytes) -> Frame:
    """The frame that :func:`note_of` has written."""
    frame, trace = pickle.loads(note)  # noqa: S301 (the process that reads has written it, which is ours)
    if isinstance(frame, Failed | DeadLetter | Refused):
        frame.error.__cause__ = ReadingTrace(trace)
    return frame


def _compact(frame: Any) -> Any:  # noqa: ANN401 (one of three kinds, as given)
    """*frame* without the columns that its one row is a slice of."""
    match frame:
        case Refused():
            row = frame.records.batch.take(pa.array([0]))
            return dataclasses.replace(frame, records=Records(row, frame.records.originals))
        case Failed(refused=Refused() as refused):
            return dataclasses.replace(frame, refused=_compact(refused))
        case _:
            return frame


def _carried(error: Any) -> Any:  # noqa: ANN401 (of the class that it has)
    """*error*, or one that says the same where its class cannot be carried to another process."""
    try:
        pickle.loads(pickle.dumps(error))  # noqa: S301 (just written)
    except Exception:  # noqa: BLE001 (an author's class may do anything)
        return _plain(error)
    return error


def _plain(error: Exception) -> Exception:
    if not isinstance(error, RecordError):
        return RuntimeError(f"{class_name(error)}: {error}")
    return RecordError(
        error.reason,
        native_key=error.native_key,
        position=error.position,
        row=error.row,
        advice=error.advice,
        bad=error.bad,
    )
