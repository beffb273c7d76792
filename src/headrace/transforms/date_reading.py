"""Texts as times, as ``SimpleDateFormat`` reads them: leniently, in English, UTC where the text names no zone."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from headrace.transforms.date_fields import DateField, DateFields
from headrace.transforms.date_names import ERAS, HALVES, MONTHS, SHORT, WEEKDAYS
from headrace.transforms.date_pattern import Token
from headrace.transforms.date_zones import read_iso_zone, read_zone
from headrace.transforms.java_calendar import DAY_MILLIS, date_of, day_number

_NUMBER = re.compile(r"(-?\d+)(?:E(-?\d+))?")
_NUMBERED: Final = {
    "y": DateField.YEAR,
    "Y": DateField.WEEK_YEAR,
    "M": DateField.MONTH,
    "L": DateField.MONTH,
    "w": DateField.WEEK_OF_YEAR,
    "W": DateField.WEEK_OF_MONTH,
    "D": DateField.DAY_OF_YEAR,
    "d": DateField.DAY_OF_MONTH,
    "F": DateField.WEEK_IN_MONTH,
    "u": DateField.DAY_OF_WEEK,
    "H": DateField.HOUR_OF_DAY,
    "k": DateField.HOUR_OF_DAY,
    "K": DateField.HOUR,
    "h": DateField.HOUR,
    "m": DateField.MINUTE,
    "s": DateField.SECOND,
    "S": DateField.MILLI,
}
_SHORT_NAMES = tuple(tuple(name[:SHORT] for name in names) for names in (MONTHS, WEEKDAYS))
_NAMED: Final = {
    "M": (DateField.MONTH, (MONTHS, _SHORT_NAMES[0])),
    "L": (DateField.MONTH, (MONTHS, _SHORT_NAMES[0])),
    "E": (DateField.DAY_OF_WEEK, (WEEKDAYS, _SHORT_NAMES[1])),
    "a": (DateField.HALF, (HALVES,)),
    "G": (DateField.ERA, (ERAS,)),
}
_CLOCKS: Final = {"k": 24, "h": 12}
_PAST_YEARS = 80
_SHORT_YEAR = 2
_MOST_EXPONENT = 30
_BEYOND_LONG = 10**40


class DateReader:
    """Reads texts of one pattern.

    A year of two digits lies within the century that begins eighty years before *now*, in milliseconds
    since 1970.
    """

    def __init__(self, pattern: Sequence[Token], *, now: int) -> None:
        digits_follow = [is_number(token) for token in pattern[1:]]
        self._tokens = tuple(zip(pattern, [*digits_follow, False], strict=False))
        year, month, day = date_of(now // DAY_MILLIS)
        self._year = year - _PAST_YEARS
        self._start = day_number(self._year, month, day) * DAY_MILLIS + now % DAY_MILLIS

    def millis(self, text: str) -> int | None:
        """*text* in milliseconds since 1970; ``None`` when it does not begin as the pattern says. Pure."""
        reading = _Reading(text, self._year)
        for token, exact in self._tokens:
            if not reading.passes(token, exact=exact):
                return None
        return reading.millis(self._start) if self._tokens else None


def is_number(token: Token) -> bool:
    """Whether *token* stands for digits. Pure."""
    return token.letter in _NUMBERED and not (token.letter in "ML" and token.count >= SHORT)


class _Reading:
    """One text, read up to a place."""

    def __init__(self, text: str, century_start: int) -> None:
        self._text = text
        self._place = 0
        self._century_start = century_start
        self._fields = DateFields()
        self._ambiguous: tuple[DateField, int] | None = None

    def passes(self, token: Token, *, exact: bool) -> bool:
        """Read what *token* stands for; *exact*: digits follow, so that it has as many as letters."""
        if not token.letter:
            return self._literal(token.text)
        start = self._place
        while self._text[self._place : self._place + 1] in {" ", "\t"}:
            self._place += 1
        if self._place >= len(self._text):
            return False
        if is_number(token):
            return self._number(token, start + token.count if exact else len(self._text))
        if token.letter in _NAMED:
            return self._name(token, start)
        return self._zone(token)

    def millis(self, century: int) -> int:
        """The time that was read."""
        millis = self._fields.millis()
        if self._ambiguous is None or millis >= century:
            return millis
        field, year = self._ambiguous
        self._fields.correct(field, year + 100)
        return self._fields.millis()

    def _literal(self, text: str) -> bool:
        if not self._text.startswith(text, self._place):
            return False
        self._place += len(text)
        return True

    def _number(self, token: Token, end: int) -> bool:
        if end > len(self._text):
            return False
        found = _NUMBER.match(self._text, self._place, end)
        if found is None:
            return False
        self._place = found.end()
        field, value = _NUMBERED[token.letter], _int32(found)
        if token.letter in "yY" and token.count <= _SHORT_YEAR:
            value = self._full_year(field, found.group(), value)
        elif token.letter == "u":
            # Java counts weekdays from 1 on Sunday and leaves what is none of the week as it is.
            value = value % 7 if 1 <= value <= len(WEEKDAYS) else value - 1
        elif field is DateField.MONTH:
            value -= 1
        elif value == _CLOCKS.get(token.letter):
            value = 0
        self._fields.name(field, value)
        return True

    def _full_year(self, field: DateField, digits: str, value: int) -> int:
        """The year of the century for two digits."""
        if len(digits) != _SHORT_YEAR or not digits.isdigit():
            return value
        century, first = divmod(self._century_start, 100)
        full = century * 100 + value + (100 if value < first else 0)
        if value == first:
            self._ambiguous = field, full
        return full

    def _name(self, token: Token, start: int) -> bool:
        field, choices = _NAMED[token.letter]
        for names in choices:
            for index, name in enumerate(names):
                if self._text[start : start + len(name)].lower() == name.lower():
                    self._place = start + len(name)
                    self._fields.name(field, index)
                    return True
        return False

    def _zone(self, token: Token) -> bool:
        if token.letter == "X":
            found = read_iso_zone(self._text, self._place, token.count)
        else:
            found = read_zone(self._text, self._place)
        if found is None:
            return False
        offset, self._place = found
        self._fields.name(DateField.OFFSET, offset)
        return True


def _int32(number: re.Match[str]) -> int:
    """*number* as Java's ``intValue`` has it: what 64 bits hold is cut to 32, what is larger is the largest."""
    digits, power = number.groups()
    value = _bounded(digits, _BEYOND_LONG)
    exponent = _bounded(power or "0", _MOST_EXPONENT)
    if exponent >= 0:
        value *= 10**exponent
    else:
        value = (abs(value) // 10**-exponent) * (-1 if value < 0 else 1)
    if not -(2**63) <= value < 2**63:
        return 2**31 - 1 if value > 0 else -(2**31)
    return (value + 2**31) % 2**32 - 2**31


def _bounded(digits: str, limit: int) -> int:
    """The number that *digits* are, within *limit* on either side; Python reads no number of thousands of digits."""
    sign = -1 if digits.startswith("-") else 1
    held = digits.lstrip("-0")
    return sign * (limit if len(held) > len(str(limit)) else min(int(held or "0"), limit))
