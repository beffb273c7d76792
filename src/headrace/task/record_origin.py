"""The source position of a record as text for messages; pure."""

from __future__ import annotations

from collections.abc import Mapping

from headrace.connect.batch import SourceBatch
from headrace.connect.errors import RecordError
from headrace.connect.partition import RECORD_COUNT, SourceOffset


def located(error: RecordError, batch: SourceBatch) -> RecordError:
    """*error* with the source position of the row that it names."""
    name = source_name(batch.source_partition)
    if error.row is None:
        return error.located(name, "position unknown")
    return error.located(name, position_text(batch.offset_at(error.row)))


def source_name(partition: Mapping[str, object]) -> str:
    """A source partition as text."""
    return _pairs(partition)


def position_text(offset: SourceOffset | None, *, where: str = "at") -> str:
    """The position of a record with the source offset *offset*; its number if the offset counts an object's records.

    *where* says how exact the offset is: "at", or "at or after".
    """
    if not offset:
        return f"{where} no source offset"
    count = offset.get(RECORD_COUNT)
    if isinstance(count, int) and where == "at":
        return f"record {count}"
    return f"{where} source offset {_pairs(offset)}"


def _pairs(values: Mapping[str, object]) -> str:
    return ", ".join(f"{key} {_text(value)}" for key, value in values.items())


def _text(value: object) -> str:
    return value.hex() if isinstance(value, bytes) else str(value)
