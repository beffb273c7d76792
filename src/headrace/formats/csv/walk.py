"""Where CSV rows end, byte by byte: for what does not stand where it should, and for escape characters."""

from __future__ import annotations

import re

import numpy as np

from headrace.formats.csv.dialect import CsvDialect
from headrace.formats.rows import Int64Array


class RowWalk:
    """Finds the line feeds that end rows of *dialect*, from a row's first byte on."""

    def __init__(self, dialect: CsvDialect) -> None:
        self._quote = dialect.quote.encode()
        self._delimiter = dialect.delimiter.encode()
        self._comment = dialect.comment.encode()
        self._token = _token(dialect)
        self._blanks = re.compile(
            f"[{re.escape(dialect.blanks)}]*".encode() if dialect.blanks else b""
        )

    def feeds(self, text: bytes) -> tuple[Int64Array, bool]:
        """The line feeds that end rows, comments among them, and whether *text* ends outside quotes."""
        found = list[int]()
        start, closed = self._behind_comments(text, 0, found), True
        while start < len(text):
            start, closed = self._rows(text, start, found)
            start = self._behind_comments(text, start, found)
        return np.array(found, np.int64), closed

    def _behind_comments(self, text: bytes, start: int, feeds: list[int]) -> int:
        """The first byte at *start* or later that does not begin a comment."""
        while self._comment and text.startswith(self._comment, start):
            feed = text.find(b"\n", start)
            if feed < 0:
                return len(text)
            feeds.append(feed)
            start = feed + 1
        return start

    def _rows(self, text: bytes, start: int, feeds: list[int]) -> tuple[int, bool]:
        """Walk to the next comment or the end; returns that place, and whether it is outside quotes.

        *start* is where a field begins, and -1 behind its first quote: another one does not open it.
        """
        quoted, behind = False, 0
        for token in self._token.finditer(text, start):
            found, at, end = token[0], token.start(), token.end()
            if at < behind:
                continue
            if found == self._quote and quoted:
                quoted = text.startswith(self._quote, end)
                behind = end + quoted
            elif found == self._quote:
                quoted = start >= 0 and self._is_blank(text, start, at)
                start = -1
            elif not quoted and found in (b"\n", self._delimiter):
                start = end
                if found == b"\n":
                    feeds.append(at)
                    if self._comment and text.startswith(self._comment, end):
                        return end, True
        return len(text), not quoted

    def _is_blank(self, text: bytes, start: int, end: int) -> bool:
        found = self._blanks.match(text, start, end)
        return found is not None and found.end() == end


def _token(dialect: CsvDialect) -> re.Pattern[bytes]:
    """Matches what can change a walk's state."""
    choices = [re.escape(dialect.delimiter.encode()), b"\n"]
    if dialect.quote:
        choices.append(re.escape(dialect.quote.encode()))
    if dialect.escape:
        choices.insert(0, re.escape(dialect.escape.encode()) + b".")
    return re.compile(b"|".join(choices), re.DOTALL)
