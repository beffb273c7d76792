"""Where rows end for Java's readers: at a line feed, at a carriage return, or at both together."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from headrace.formats.line_framing import CARRIAGE_RETURN, LINE_FEED, rows_ending_at
from headrace.formats.rows import Bytes, RowBlock


class ReturnFraming:
    """Rows end at a line feed, a carriage return, or both; without one a last row is not complete."""

    resyncs: ClassVar[bool] = True

    @property
    def preamble(self) -> int:
        """See :class:`~headrace.formats.line_framing.Framing`."""
        return 0

    def cut(self, buffer: Bytes, *, base: int, final: bool) -> RowBlock:
        """See :class:`~headrace.formats.line_framing.Framing`; *final* changes nothing."""
        feed, carriage = buffer == LINE_FEED, buffer == CARRIAGE_RETURN
        if not carriage.any():
            return rows_ending_at(np.flatnonzero(feed), buffer, base=base, final=False)
        # A return at the buffer's end waits for the next byte, which may be its line feed.
        alone = carriage[:-1] & ~feed[1:]
        ending = feed.copy()
        ending[:-1] |= alone
        marks = np.flatnonzero(ending)
        ends = marks - (feed[marks] & (marks > 0) & carriage[np.maximum(marks - 1, 0)])
        starts = np.empty_like(marks)
        starts[:1] = 0
        starts[1:] = marks[:-1] + 1
        return RowBlock(buffer=buffer, base=base, starts=starts, ends=ends, nexts=marks + 1)
