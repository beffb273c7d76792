"""Blanks around CSV fields, found and dropped; pure. What blanks are is the dialect's to say."""

from __future__ import annotations

import re

import numpy as np
from numpy.typing import NDArray

from headrace.formats.csv.dialect import CsvDialect
from headrace.formats.line_framing import CARRIAGE_RETURN, LINE_FEED
from headrace.formats.rows import Bytes, Int64Array, RowBlock

_Mask = NDArray[np.bool_]


def is_blank(text: Bytes, blanks: str) -> _Mask:
    """Which bytes of *text* are among *blanks*."""
    found = np.zeros(len(text), np.bool_)
    for blank in blanks:
        found |= text == ord(blank)
    return found


def filled_rows(rows: RowBlock, blanks: str) -> _Mask:
    """Which of *rows* hold something besides *blanks*."""
    filled = rows.ends > rows.starts
    if not blanks or not len(rows) or not is_blank(rows.buffer[rows.starts], blanks).any():
        return filled
    begin = int(rows.starts[0])
    others = begin + np.flatnonzero(~is_blank(rows.buffer[begin : rows.ends[-1]], blanks))
    first = np.searchsorted(others, rows.starts)
    return filled & (first < np.searchsorted(others, rows.ends))


def beside(
    opening: Int64Array, closing: Int64Array, text: Bytes, blanks: str
) -> tuple[Int64Array, Int64Array]:
    """What stands in *text* before *opening* quotes and behind *closing* ones, besides *blanks*.

    -1 and the text's length where nothing does.
    """
    before, after = opening - 1, closing + 1
    if not blanks:
        return before, after
    around = np.concatenate((before[before >= 0], after[after < len(text)]))
    if not is_blank(text[around], blanks).any():
        return before, after
    others = np.flatnonzero(~is_blank(text, blanks))
    bordered = np.concatenate(([-1], others, [len(text)]))
    before = bordered[np.searchsorted(others, opening)]
    return before, bordered[np.searchsorted(others, closing) + 2]


def without_blanks(text: Bytes, quotes: Int64Array, dialect: CsvDialect) -> Bytes:
    """*text*, whole rows with a quote at each of *quotes* where it should stand, without the blanks around fields."""
    if not dialect.blanks:
        return text
    blank = is_blank(text, dialect.blanks)
    border = np.zeros(256, np.bool_)
    border[[ord(dialect.delimiter), LINE_FEED, CARRIAGE_RETURN]] = True
    borders = np.concatenate(([True], border[text], [True]))
    if not (blank & (borders[:-2] | borders[2:])).any():
        return text
    edges = np.concatenate(([False], blank, [False])).view(np.int8)
    starts, ends = np.flatnonzero(edges[1:] > edges[:-1]), np.flatnonzero(edges[1:] < edges[:-1])
    dropped = (borders[starts] | borders[ends + 1]) & (np.searchsorted(quotes, starts) % 2 == 0)
    kept = np.ones(len(text), np.bool_)
    kept[_inside(starts[dropped], ends[dropped])] = False
    return text[kept]


def _inside(starts: Int64Array, ends: Int64Array) -> Int64Array:
    """The places from each of *starts* to before its end."""
    lengths = ends - starts
    behind = np.cumsum(lengths)
    return np.repeat(ends - behind, lengths) + np.arange(int(behind[-1]) if len(behind) else 0)


class RowTrimmer:
    """Drops the blanks around the fields of one row at a time, and those around their quotes."""

    def __init__(self, dialect: CsvDialect) -> None:
        self._dialect = dialect
        self._field = _field(dialect)

    def trimmed(self, row: str) -> str:
        """*row* without the blanks."""
        fields = (found.groups() for found in self._field.finditer(row))
        return self._dialect.delimiter.join(
            self._stripped(bare) if quoted is None else quoted for quoted, bare in fields
        )

    def _stripped(self, field: str) -> str:
        kept = field.rstrip(self._dialect.blanks)
        escape = self._dialect.escape
        escapes = len(kept) - len(kept.rstrip(escape)) if escape else 0
        # Of escape characters in a row, an odd last one is that of a blank, which is then part of the field.
        return field[: len(kept) + escapes % 2]


def _field(dialect: CsvDialect) -> re.Pattern[str]:
    """Matches each field of a row with its delimiter; of its two groups one is it without quotes, or with them."""
    delimiter, quote, escape = map(re.escape, (dialect.delimiter, dialect.quote, dialect.escape))
    blanks = f"[{re.escape(dialect.blanks)}]*+"
    escaped = f"{escape}(?:.|\\Z)|" if escape else ""
    quoted = f"({quote}(?:{escaped}{quote}{quote}|[^{quote}{escape}])*+{quote}){blanks}(?={delimiter}|\\Z)"
    bare = f"((?:{escaped}[^{delimiter}{escape}])*+)"
    field = f"(?:{quoted}|{bare})" if quote else f"(?:((?!))|{bare})"
    return re.compile(f"(?:(?<={delimiter})|\\A){blanks}{field}(?:{delimiter}|\\Z)", re.DOTALL)
