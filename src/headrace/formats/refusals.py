"""What is wrong with the bytes at an object's end that are no row."""

from __future__ import annotations

from headrace.connect.errors import RecordError


def too_few_lines(wanted: int) -> RecordError:
    """The object has less than the *wanted* lines that come before its first row."""
    return RecordError(
        f"The file ends before the {wanted} lines that csv.skip.lines leaves out.",
        advice="Correct the file, or csv.skip.lines.",
    )


def never_closed() -> RecordError:
    """Its last row ends inside quotes."""
    return RecordError(
        "A quoted field of this record is never closed.",
        advice="Close the quote, or set csv.quote to the character that the file uses.",
    )
