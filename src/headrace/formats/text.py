"""Rows as text: the check of UTF-8, and where it fails."""

from __future__ import annotations

from typing import Final

import pyarrow as pa

from headrace.formats.row_extractor import BadRow
from headrace.formats.rows import RowBlock

FIRST_NOT_ASCII: Final = 0x80
# Not made by pa.array, which imports pandas for its first call.
EMPTY: Final = pa.nulls(0, pa.utf8())
"""A column of no text."""


def text_column(rows: RowBlock) -> tuple[pa.StringArray, BadRow | None]:
    """The rows before the first one that is not UTF-8 as strings, and that one."""
    column = rows.column()
    if _is_ascii(rows):
        return column.view(pa.utf8()), None
    try:
        return column.cast(pa.utf8()), None
    except pa.ArrowInvalid:
        bad = first_not_utf8(rows)
        return column.slice(0, bad.row).cast(pa.utf8()), bad


def _is_ascii(rows: RowBlock) -> bool:
    """Whether *rows*, and what lies between them, have no byte beyond ASCII: a fifth of the time that UTF-8 takes to check."""
    return (
        not len(rows)
        or rows.buffer[rows.starts[0] : rows.ends[-1]].max(initial=0) < FIRST_NOT_ASCII
    )


def first_not_utf8(rows: RowBlock) -> BadRow:
    """The first of *rows* that is not UTF-8; there must be one."""
    for index in range(len(rows)):
        try:
            rows.row(index).decode()
        except UnicodeDecodeError as error:
            return not_utf8(index, rows.position(index), error)
    raise AssertionError("every row is UTF-8")


def not_utf8(index: int, position: int, error: UnicodeDecodeError) -> BadRow:
    """What is wrong with row *index*, which begins at *position*."""
    wrong = error.object[error.start]
    return BadRow(
        row=index,
        reason=f"Byte {position + error.start} is 0x{wrong:02x}, which is not UTF-8 here.",
        advice="Convert the file to UTF-8, or say its encoding where the connector has a setting for it.",
    )
