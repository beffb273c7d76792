"""Errors and plain records in a form that another process can have, whatever an author has put into them."""

from __future__ import annotations

import pickle
from dataclasses import dataclass, replace

from headrace.connect.bad_record import BadRecord
from headrace.connect.errors import RecordError
from headrace.connect.partition import SourceOffset
from headrace.connect.record import SourceRecord
from headrace.slot.dead_letters import class_name


@dataclass(frozen=True, slots=True)
class NotCarried:
    """Stands for a part of a record that only the process that reads has; *class_name* is what it is."""

    class_name: str


def carried_error(error: Exception) -> Exception:
    """*error*, or one that says the same where it cannot be carried."""
    if _is_carried(error):
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


def carried_record(record: SourceRecord) -> SourceRecord:
    """*record*, with :class:`NotCarried` for its value, key and values of headers where they cannot be carried."""
    if _is_carried(record):
        return record
    return replace(
        record,
        value=_part(record.value),
        key=_part(record.key),
        headers=tuple(replace(each, value=_part(each.value)) for each in record.headers),
        source_offset=_plain_offset(record.source_offset),
    )


def _part(value: object) -> object:
    return value if _is_carried(value) else NotCarried(class_name(value))


def _plain(bad: BadRecord) -> BadRecord:
    offset = _plain_offset(bad.source_offset)
    return replace(bad, source_offset=offset, reference=dict(bad.reference))


def _plain_offset(offset: SourceOffset | None) -> SourceOffset | None:
    return None if offset is None else dict(offset)


def _is_carried(thing: object) -> bool:
    try:
        pickle.loads(pickle.dumps(thing))  # noqa: S301 (just written)
    except Exception:  # noqa: BLE001 (an author's class may do anything)
        return False
    return True
