"""Where CSV rows end: at line feeds that are not inside quotes."""

from __future__ import annotations

import re
from typing import ClassVar

import numpy as np

from headrace.sources.extractors.csv_dialect import CsvDialect
from headrace.sources.extractors.line_framing import (
    CARRIAGE_RETURN,
    LINE_FEED,
    Framing,
    LineFraming,
    rows_ending_at,
)
from headrace.sources.extractors.rows import Bytes, Places, RowBlock


def csv_framing(dialect: CsvDialect) -> Framing:
    """The framing of files of *dialect*."""
    if dialect.quote or dialect.escape:
        return QuotedFraming(dialect)
    return LineFraming()


class QuotedFraming:
    """Rows end at a line feed outside quotes. A quote has a meaning only where a field begins or is open.

    While every quote stands where it should, the parity of quotes before a line feed tells whether it is
    inside; otherwise, and with an escape character, the bytes are walked.
    """

    resyncs: ClassVar[bool] = False

    def __init__(self, dialect: CsvDialect) -> None:
        self._dialect = dialect
        self._quote = ord(dialect.quote) if dialect.quote else -1
        self._neighbours = np.zeros(256, np.bool_)
        self._neighbours[[ord(dialect.delimiter), LINE_FEED]] = True
        self._token = _token(dialect)

    def cut(self, buffer: Bytes, *, base: int, final: bool) -> RowBlock:
        """See :class:`~headrace.sources.extractors.line_framing.Framing`."""
        quotes = np.flatnonzero(buffer == self._quote) if self._quote >= 0 else _NOWHERE
        if self._dialect.escape or not self._regular(quotes, buffer):
            feeds, closed = self._walk(buffer.tobytes())
        else:
            feeds = np.flatnonzero(buffer == LINE_FEED)
            if len(quotes):
                feeds = feeds[np.searchsorted(quotes, feeds) % 2 == 0]
            closed = len(quotes) % 2 == 0
        return rows_ending_at(feeds, buffer, base=base, final=final and closed)

    def regular(self, rows: RowBlock) -> bool:
        """Whether every quote in *rows* stands where it should."""
        buffer = rows.buffer[rows.starts[0] : rows.nexts[-1]]
        return self._regular(np.flatnonzero(buffer == self._quote), buffer)

    def _regular(self, quotes: Places, buffer: Bytes) -> bool:
        """Whether quotes open only where a field begins, and close only where one ends."""
        if not len(quotes):
            return True
        opening, closing = quotes[0::2], quotes[1::2]
        behind = np.concatenate(([-1], closing))[: len(opening)]
        begins = (opening == 0) | self._neighbours[buffer[opening - 1]] | (opening - 1 == behind)
        after = closing + 1
        inner = after[after < len(buffer)]
        following = buffer[inner]
        ends = (
            self._neighbours[following]
            | (following == CARRIAGE_RETURN)
            | (following == self._quote)
        )
        return bool(begins.all() and ends.all())

    def _walk(self, text: bytes) -> tuple[Places, bool]:
        """The line feeds that end rows, and whether the text ends outside quotes."""
        feeds = list[int]()
        quote, delimiter = self._dialect.quote.encode(), self._dialect.delimiter.encode()
        quoted, field_start, behind = False, 0, 0
        for token in self._token.finditer(text):
            found, start, end = token[0], token.start(), token.end()
            if start < behind:
                continue
            if found == quote and quoted:
                doubled = text[end : end + 1] == quote
                quoted, behind = doubled, end + doubled
            elif found == quote:
                quoted = start == field_start
            elif not quoted and found in (b"\n", delimiter):
                field_start = end
                feeds += [start] if found == b"\n" else []
        return np.array(feeds, np.int64), not quoted


_NOWHERE = np.array([], np.int64)


def _token(dialect: CsvDialect) -> re.Pattern[bytes]:
    """Matches what can change a walk's state."""
    choices = [re.escape(dialect.delimiter.encode()), b"\n"]
    if dialect.quote:
        choices.append(re.escape(dialect.quote.encode()))
    if dialect.escape:
        choices.insert(0, re.escape(dialect.escape.encode()) + b".")
    return re.compile(b"|".join(choices), re.DOTALL)
