"""Frames that are not records, as bytes; an error or a record that cannot be pickled is replaced by what can."""

from __future__ import annotations

import pickle
import traceback
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from headrace.connect.errors import RecordError
from headrace.connect.partition import SourceOffset
from headrace.connect.record import BadRecord, SourceRecord
from headrace.task.dead_letters import class_name
from headrace.task.frames import DeadLetter, Failed, Filtered, Frame, Records, Refused


@dataclass(frozen=True, slots=True)
class NotPickled:
    """Stands for a part of a record that cannot be pickled; *class_name* is its class."""

    class_name: str


def picklable_error(error: Exception) -> Exception:
    """*error*, or one with the same message if it cannot be pickled."""
    if _is_picklable(error):
        return error
    if not isinstance(error, RecordError):
        return RuntimeError(f"{class_name(error)}: {error}")
    return RecordError(
        error.reason,
        native_key=error.native_key,
        position=error.position,
        row=error.row,
        advice=error.advice,
        bad=None if error.bad is None else _plain(error.bad),
    )


def picklable_record(record: SourceRecord) -> SourceRecord:
    """*record*, with :class:`NotPickled` in place of its value, key and header values that cannot be pickled."""
    if _is_picklable(record):
        return record
    return replace(
        record,
        value=_part(record.value),
        key=_part(record.key),
        headers=tuple(replace(each, value=_part(each.value)) for each in record.headers),
        source_offset=_plain_offset(record.source_offset),
    )


def _part(value: object) -> object:
    return value if _is_picklable(value) else NotPickled(class_name(value))


def _plain(bad: BadRecord) -> BadRecord:
    offset = _plain_offset(bad.source_offset)
    return replace(bad, source_offset=offset, reference=dict(bad.reference))


def _plain_offset(offset: SourceOffset | None) -> SourceOffset | None:
    return None if offset is None else dict(offset)


def _is_picklable(thing: object) -> bool:
    try:
        pickle.loads(pickle.dumps(thing))  # noqa: S301 (just written)
    except Exception:  # noqa: BLE001 (an author's class may do anything)
        return False
    return True


class ReadingTrace(Exception):  # noqa: N818 (a cause that is printed, never raised)
    """The stack trace of an error, as it was in the process that reads."""

    def __init__(self, trace: str) -> None:
        super().__init__(trace)

    def __str__(self) -> str:
        return f"in the process that reads:\n{self.args[0]}"


def pickled_frame(frame: Frame) -> bytes:
    """*frame*, which must not be :class:`Records`, as bytes."""
    match frame:
        case Failed() | DeadLetter() | Refused():
            trace = "".join(traceback.format_exception(frame.error))
            return pickle.dumps((_picklable(frame), trace))
        case Filtered():
            return pickle.dumps((replace(frame, records=_records(frame.records)), None))
        case _:
            return pickle.dumps((frame, None))


def unpickled_frame(pickled: bytes) -> Frame:
    """The frame that :func:`pickled_frame` encoded."""
    frame, trace = pickle.loads(pickled)  # noqa: S301 (written by our own reading process)
    if isinstance(frame, Failed | DeadLetter | Refused):
        frame.error.__cause__ = ReadingTrace(trace)
    return frame


def _picklable(frame: Any) -> Any:  # noqa: ANN401 (one of three kinds, as given)
    """*frame* with picklable parts, and without the columns that its one row is a slice of."""
    frame = replace(frame, error=picklable_error(frame.error))
    match frame:
        case DeadLetter(original=SourceRecord() as original):
            return replace(frame, original=picklable_record(original))
        case Refused(records=records):
            row = Records(records.batch.take(pa.array([0])), records.originals)
            return replace(frame, records=_records(row))
        case Failed(refused=Refused() as refused):
            return replace(frame, refused=_picklable(refused))
        case _:
            return frame


def _records(records: Records) -> Records:
    if records.originals is None:
        return records
    return replace(records, originals=[picklable_record(each) for each in records.originals])
