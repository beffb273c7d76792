"""What a plan tells the task about a split, besides its source partition and offset."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self, cast


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitDetails:
    """The file as it was planned, and which of its bytes to read.

    *version*, *size*, *format* and *modified_ms* (since 1970) are the file's; *settled* says that it may be
    marked as done. Lines that begin in ``start … stop`` are read (or blocks, or row groups), and no byte
    from *limit* on; compressed files have neither. *tail* says that *limit* is the file's end, so that a
    last line needs no line end there. *seek* says that *start* may lie inside a line, which belongs to
    another split. *open_ended* says that a last row which is not complete is left, even at the file's end.
    *tailed* says that reading goes on where a shorter file ended, maybe without a line end.
    """

    version: str
    size: int
    format: str
    settled: bool
    tail: bool
    start: int = 0
    stop: int | None = None
    limit: int | None = None
    seek: bool = False
    open_ended: bool = False
    modified_ms: int = 0
    tailed: bool = False

    @classmethod
    def of(cls, details: Mapping[str, object]) -> Self:
        """Read what :meth:`as_json` wrote."""
        return cls(**cast("dict[str, Any]", details))

    def as_json(self) -> dict[str, object]:
        """These details as JSON values."""
        # `asdict` copies every value deeply, which is most of a large plan's time.
        return {name: getattr(self, name) for name in _NAMES}


_NAMES = tuple(each.name for each in dataclasses.fields(SplitDetails))
