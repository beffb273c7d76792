"""Tables of text for people. Pure."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence


def table_lines(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """*rows*, at least one, with columns as wide as their longest cells."""
    *widths, _ = (max(map(_width, column)) for column in zip(*rows, strict=True))
    for *cells, last in rows:
        padded = (
            cell + " " * (width - _width(cell)) for cell, width in zip(cells, widths, strict=True)
        )
        yield "  ".join([*padded, last])


def table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """*rows* below the names of their *columns*; cells may hold any text."""
    return table_lines([[one_line(cell) for cell in row] for row in (columns, *rows)])


def one_line(text: str) -> str:
    """*text* on one line; names may hold anything."""
    return "".join(each if each.isprintable() else ascii(each)[1:-1] for each in text)


def _width(text: str) -> int:
    """How many columns *text* takes on a terminal."""
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(each) else 1 + (unicodedata.east_asian_width(each) in "WF")
        for each in text
    )
