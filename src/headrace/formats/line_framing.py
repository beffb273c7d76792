"""Where rows end: at line feeds, whatever else is in them."""

from __future__ import annotations

from typing import ClassVar, Protocol

import numpy as np

from headrace.formats.rows import Bytes, Int64Array, RowBlock

LINE_FEED = 10
CARRIAGE_RETURN = 13


class Framing(Protocol):
    """Finds the rows of a buffer that begins at a row's first byte."""

    resyncs: ClassVar[bool]
    """Whether a line end always ends a row, so that rows can be found from anywhere on."""

    @property
    def preamble(self) -> int:
        """How many lines at the object's beginning come before the first row."""
        ...

    def cut(self, buffer: Bytes, *, base: int, final: bool) -> RowBlock:
        """The complete rows at the beginning of *buffer*; called again and again with what is left.

        *final* says that the object ends where the buffer ends, so that a last row needs no line end.
        The same bytes give the same rows wherever buffers are cut.
        """
        ...


class LineFraming:
    """Rows are lines: they end at a line feed, and a carriage return before it belongs to the end."""

    resyncs: ClassVar[bool] = True

    @property
    def preamble(self) -> int:
        """See :class:`Framing`."""
        return 0

    def cut(self, buffer: Bytes, *, base: int, final: bool) -> RowBlock:
        """See :class:`Framing`."""
        return rows_ending_at(np.flatnonzero(buffer == LINE_FEED), buffer, base=base, final=final)


def first_lines(buffer: Bytes, count: int, *, final: bool) -> tuple[int, int] | None:
    """Where the first *count* lines of *buffer* end, without and with the last one's line end.

    ``None`` where there are fewer. With *final* the last one needs no line end.
    """
    if not count:
        return 0, 0
    feeds = np.flatnonzero(buffer == LINE_FEED)[:count]
    lines = rows_ending_at(feeds, buffer, base=0, final=final and len(feeds) < count)
    return None if len(lines) < count else (int(lines.ends[-1]), int(lines.nexts[-1]))


def rows_ending_at(feeds: Int64Array, buffer: Bytes, *, base: int, final: bool) -> RowBlock:
    """The rows of which each ends at one of the line feeds at *feeds*, and a last one when *final*."""
    nexts = feeds + 1
    ends = feeds
    consumed = int(nexts[-1]) if len(nexts) else 0
    if final and consumed < len(buffer):
        nexts = np.append(nexts, len(buffer))
        ends = np.append(ends, len(buffer))
    starts = np.empty_like(nexts)
    starts[:1] = 0
    starts[1:] = nexts[:-1]
    return RowBlock(
        buffer=buffer, base=base, starts=starts, ends=_trimmed(buffer, starts, ends), nexts=nexts
    )


def _trimmed(buffer: Bytes, starts: Int64Array, ends: Int64Array) -> Int64Array:
    """The ends of rows before their carriage return, if they have one."""
    if not len(ends):
        return ends
    returned = buffer[np.maximum(ends - 1, 0)] == CARRIAGE_RETURN
    return ends - (returned & (ends > starts))
