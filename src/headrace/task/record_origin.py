"""Where a record comes from, in words for a message; pure."""

from __future__ import annotations

from collections.abc import Mapping

from headrace.connect.batch import SourceBatch
from headrace.connect.errors import RecordError
from headrace.connect.partition import RECORD_COUNT, SourceOffset


def located(error: RecordError, batch: SourceBatch) -> RecordError:
    """*error* with the place in the source of the row it names."""
    name = source_name(batch.source_partition)
    if error.row is None:
        return error.located(name, "position unknown")
    return error.located(name, position_told(batch.offset_at(error.row)))


def source_name(partition: Mapping[str, object]) -> str:
    """A source partition in words."""
    return _pairs(partition)


def position_told(offset: SourceOffset | None, *, where: str = "at") -> str:
    """The position of a record whose source offset is *offset*: its number, where that counts an object's records.

    *where* is how sure that is of a record that is told by its offset.
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
