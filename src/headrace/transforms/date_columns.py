"""Times as text and texts as times, by columns."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from headrace.transforms.date_pattern import Token, text_of, unit_millis
from headrace.transforms.java_calendar import DAY_MILLIS

_Millis = npt.NDArray[np.int64]
_WIDTHS = {"yyyy": 4, "MM": 2, "dd": 2, "HH": 2, "mm": 2, "ss": 2, "SSS": 3}
_ZERO, _NINE = ord("0"), ord("9")
# The old calendar, and years that Python has not, are for the way record by record.
_FIRST_YEAR, _LAST_YEAR = 1583, 9999
_LAST_DAY = 31
_MONTHS = 12


def written(pattern: Sequence[Token], millis: _Millis) -> pa.StringArray:
    """Each of *millis* since 1970 in the form of *pattern*: every text is made once, and taken as often as it occurs."""
    parts = [_texts(token, millis) for token in pattern]
    if not parts:
        return pa.repeat(pa.scalar("", pa.utf8()), len(millis))
    return pc.binary_join_element_wise(*parts, "")


def read(pattern: Sequence[Token], texts: pa.StringArray) -> _Millis | None:
    """*texts* without nulls in milliseconds since 1970.

    ``None`` unless each has exactly the digits that *pattern* says, and names a day of the calendar.
    """
    widths = [_WIDTHS.get(each.text) if each.letter else len(each.text) for each in pattern]
    letters = [each.text for each in pattern if each.letter]
    if None in widths or len(set(letters)) < len(letters) or "yyyy" not in letters:
        return None
    width = sum(each or 0 for each in widths)
    rows = _characters(texts, width)
    if rows is None:
        return None
    fields, place = dict[str, _Millis](), 0
    for token, length in zip(pattern, widths, strict=True):
        part = rows[:, place : place + (length or 0)]
        place += length or 0
        number = _number(part) if token.letter else None
        if token.letter and number is not None:
            fields[token.text] = number
        elif token.letter or not (part == np.frombuffer(token.text.encode(), np.uint8)).all():
            return None
    return _millis(fields)


def _texts(token: Token, millis: _Millis) -> pa.Array:
    """What *token* is at each of *millis*."""
    unit, cycle = unit_millis(token)
    places = millis // unit
    if cycle is not None:
        table = [text_of(token, place * unit) for place in range(cycle)]
        return pa.array(table, pa.utf8()).take(pa.array(places % cycle))
    days, rows = np.unique(places, return_inverse=True)
    table = [text_of(token, day * unit) for day in days.tolist()]
    return pa.array(table, pa.utf8()).take(pa.array(rows.reshape(-1)))


def _characters(texts: pa.StringArray, width: int) -> npt.NDArray[np.uint8] | None:
    """*texts* as a table of bytes; ``None`` where one has not as many as *width*."""
    lengths = pc.binary_length(texts)
    if not width or not pc.all(pc.equal(lengths, width)).as_py():
        return None
    _, borders, stored = texts.buffers()
    first = np.frombuffer(borders, np.int32)[texts.offset]
    octets = np.frombuffer(stored, np.uint8)[first : first + len(texts) * width]
    return octets.reshape(len(texts), width)


def _number(part: npt.NDArray[np.uint8]) -> _Millis | None:
    if ((part < _ZERO) | (part > _NINE)).any():
        return None
    number = np.zeros(len(part), np.int64)
    for column in range(part.shape[1]):
        number = number * 10 + (part[:, column] - _ZERO)
    return number


def _millis(fields: dict[str, _Millis]) -> _Millis | None:
    year = fields["yyyy"]
    one = np.ones_like(year)
    month, day = fields.get("MM", one), fields.get("dd", one)
    if not ((year >= _FIRST_YEAR) & (year <= _LAST_YEAR)).all():
        return None
    if not ((month >= 1) & (month <= _MONTHS) & (day >= 1) & (day <= _LAST_DAY)).all():
        return None
    months = (year * _MONTHS + month - 1) - 1970 * _MONTHS
    days = months.view("datetime64[M]").astype("datetime64[D]").view(np.int64) + day - 1
    # Hours, minutes and days beyond their end go on in the next one, as they do in Java.
    units = {"HH": 3_600_000, "mm": 60_000, "ss": 1000, "SSS": 1}
    return days * DAY_MILLIS + sum(
        (fields[letters] * unit for letters, unit in units.items() if letters in fields),
        start=np.zeros_like(year),
    )
