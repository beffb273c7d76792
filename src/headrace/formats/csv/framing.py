"""Where CSV rows end: at line feeds that are not inside quotes."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from headrace.formats.csv.blanks import beside
from headrace.formats.csv.dialect import CsvDialect
from headrace.formats.csv.walk import RowWalk
from headrace.formats.line_framing import (
    CARRIAGE_RETURN,
    LINE_FEED,
    Framing,
    LineFraming,
    rows_ending_at,
)
from headrace.formats.rows import Bytes, Int64Array, RowBlock


def csv_framing(dialect: CsvDialect) -> Framing:
    """The framing of files of *dialect*."""
    if dialect.quote or dialect.escape or dialect.skip_lines:
        return QuotedFraming(dialect)
    return LineFraming()


class QuotedFraming:
    """Rows end at a line feed outside quotes. A quote has a meaning only where a field begins or is open.

    While every quote stands where it should, the parity of quotes before a line feed tells whether it is
    inside; otherwise, and with an escape character, the bytes are walked. A comment is a row, too: whoever cuts rows
    into fields knows it by its first character.
    """

    resyncs: ClassVar[bool] = False

    def __init__(self, dialect: CsvDialect) -> None:
        self._dialect = dialect
        self._quote = ord(dialect.quote) if dialect.quote else -1
        self._neighbours = np.zeros(256, np.bool_)
        self._neighbours[[ord(dialect.delimiter), LINE_FEED]] = True
        self._walk = RowWalk(dialect)

    @property
    def preamble(self) -> int:
        """See :class:`~headrace.formats.line_framing.Framing`."""
        return self._dialect.skip_lines

    def cut(self, buffer: Bytes, *, base: int, final: bool) -> RowBlock:
        """See :class:`~headrace.formats.line_framing.Framing`."""
        every = np.flatnonzero(buffer == LINE_FEED)
        comments = self._comments(buffer, every)
        quotes = self._outside(comments, self.quotes(buffer))
        if (
            self._dialect.escape
            or not self.regular(quotes, buffer)
            or (np.searchsorted(quotes, comments[0]) % 2).any()
        ):
            feeds, closed = self._walk.feeds(buffer.tobytes())
        else:
            feeds, closed = every, len(quotes) % 2 == 0
            if len(quotes):
                feeds = feeds[np.searchsorted(quotes, feeds) % 2 == 0]
        return rows_ending_at(feeds, buffer, base=base, final=final and closed)

    def quotes(self, buffer: Bytes) -> Int64Array:
        """Where the quotes are."""
        return np.flatnonzero(buffer == self._quote) if self._quote >= 0 else _NOWHERE

    def _comments(self, buffer: Bytes, feeds: Int64Array) -> tuple[Int64Array, Int64Array]:
        """Where lines that look like comments begin, and where they end."""
        if not self._dialect.comment or not len(buffer):
            return _NOWHERE, _NOWHERE
        starts = np.concatenate(([0], feeds + 1))
        starts = starts[starts < len(buffer)]
        starts = starts[buffer[starts] == ord(self._dialect.comment)]
        ends = np.concatenate((feeds, [len(buffer)]))
        return starts, ends[np.searchsorted(feeds, starts)]

    def _outside(self, comments: tuple[Int64Array, Int64Array], quotes: Int64Array) -> Int64Array:
        """The *quotes* that are not in *comments*.

        As long as an even number of them is before each of these, they are comments: the first one is, so
        that its quotes have no meaning, and so the next one is.
        """
        starts, ends = comments
        if not len(starts) or not len(quotes):
            return quotes
        at = np.searchsorted(starts, quotes) - 1
        return quotes[(at < 0) | (quotes > ends[at])]

    def regular(self, quotes: Int64Array, buffer: Bytes) -> bool:
        """Whether *quotes* open only where a field begins, and close only where one ends."""
        if not len(quotes):
            return True
        opening, closing = quotes[0::2], quotes[1::2]
        behind = np.concatenate(([-1], closing))[: len(opening)]
        before, after = beside(opening, closing, buffer, self._dialect.blanks)
        begins = (before < 0) | self._neighbours[buffer[before]] | (opening - 1 == behind)
        inner = after < len(buffer)
        following = buffer[after[inner]]
        ends = (
            self._neighbours[following]
            | (following == CARRIAGE_RETURN)
            | ((following == self._quote) & (after[inner] - 1 == closing[inner]))
        )
        return bool(begins.all() and ends.all())


_NOWHERE = np.array([], np.int64)
