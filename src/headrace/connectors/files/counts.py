"""Numbers in offsets that people or other programs wrote. Pure."""

from __future__ import annotations

from typing import Final

from headrace.connect.errors import TaskFailedError
from headrace.connect.partition import OffsetValue, SourceOffset
from headrace.connectors.files.progress import Progress, number

_COUNTS: Final = ("recordCount", "anchor", "skip", "size")
_ADVICE: Final = "Set the offset again, or remove it to have the file read from its beginning."


def check_counts(path: str, progress: Progress) -> None:
    """Raise ``TaskFailedError`` for an offset of the file at *path* that has something else where a count should be.

    It would be taken for nothing, and all of the file be read again.
    """
    entry = () if progress.entry is None else (progress.entry,)
    for offset in (*entry, *progress.ranges.values()):
        for key in _COUNTS:
            if key in offset and not _is_count(offset[key]):
                raise TaskFailedError(
                    f"{path}: Its offset {dict(offset)} has {offset[key]!r} under {key!r}; it must be a whole "
                    f"number that is not negative. {_ADVICE}"
                )


def check_counted(path: str, offset: SourceOffset | None, found: int) -> None:
    """Raise ``TaskFailedError`` where *offset* counts more than the *found* records that the file at *path* has."""
    count = number(offset, "recordCount")
    if count > found:
        raise TaskFailedError(
            f"{path}: Its offset {dict(offset or {})} counts {count} records, and there are only {found}. {_ADVICE}"
        )


def _is_count(value: OffsetValue) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return value >= 0 and (isinstance(value, int) or value.is_integer())
