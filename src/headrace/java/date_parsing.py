"""Texts as times, as ``SimpleDateFormat`` parses them: leniently, in English, UTC where the text names no zone."""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import Enum, auto
from typing import Final

from headrace.java.date_format import ERAS, HALVES, MONTHS, SHORT, WEEKDAYS, ZONES, Token
from headrace.java.gregorian_calendar import (
    DAY_MILLIS,
    SUNDAY,
    date_of,
    day_number,
    first_week,
    weekday_until,
)


class DateField(Enum):
    """The fields of a time that a text can name."""

    ERA = auto()
    YEAR = auto()
    WEEK_YEAR = auto()
    MONTH = auto()
    WEEK_OF_YEAR = auto()
    WEEK_OF_MONTH = auto()
    DAY_OF_MONTH = auto()
    DAY_OF_YEAR = auto()
    DAY_OF_WEEK = auto()
    WEEK_IN_MONTH = auto()
    HALF = auto()
    HOUR = auto()
    HOUR_OF_DAY = auto()
    MINUTE = auto()
    SECOND = auto()
    MILLI = auto()
    OFFSET = auto()


_UNSET: Final = 0
_SATURDAY = 6
_HALF_DAY_HOURS = 12
_EPOCH_YEAR = 1970
_MINUTE_MILLIS = 60_000
_LONG = 2**63


class DateFields:
    """Fields in the order in which they were named: where they contradict, the later one counts.

    Months count from 0, weekdays from 0 on Sunday, ``OFFSET`` is in minutes.
    """

    def __init__(self) -> None:
        self._named = dict[DateField, tuple[int, int]]()
        self._last = _UNSET

    def name(self, field: DateField, value: int) -> None:
        """Take *value* for *field*, instead of what it had."""
        self._last += 1
        self._named[field] = (self._last, value)

    def correct(self, field: DateField, value: int) -> None:
        """Take *value* for *field* without naming it again."""
        self._named[field] = (self._stamp(field), value)

    def millis(self) -> int:
        """The time in milliseconds since 1970, cut to 64 bits. Pure."""
        offset = self._value(DateField.OFFSET, 0) * _MINUTE_MILLIS
        millis = self._day() * DAY_MILLIS + self._time() - offset
        return (millis + _LONG) % (2 * _LONG) - _LONG

    def _value(self, field: DateField, default: int) -> int:
        return self._named[field][1] if field in self._named else default

    def _stamp(self, field: DateField) -> int:
        """When *field* was named; 0 for one that was not."""
        return self._named[field][0] if field in self._named else _UNSET

    def _with_weekday(self, field: DateField) -> int:
        """When *field* and the weekday were both there."""
        stamps = self._stamp(field), self._stamp(DateField.DAY_OF_WEEK)
        return max(stamps) if all(stamps) else _UNSET

    def _day(self) -> int:
        if self._stamp(DateField.WEEK_YEAR) > self._stamp(DateField.YEAR):
            return self._day_of_week_year()
        year = self._value(DateField.YEAR, _EPOCH_YEAR)
        if self._value(DateField.ERA, 1) == 0:
            year = 1 - year
        kind = self._deciding()
        if kind is DateField.DAY_OF_YEAR:
            return day_number(year, 0, 1) + self._value(kind, 1) - 1
        if kind is DateField.WEEK_OF_YEAR:
            start = self._in_week(first_week(day_number(year, 0, 1)))
            return start + 7 * (self._value(kind, 1) - 1)
        return self._day_of_month(year, kind)

    def _day_of_week_year(self) -> int:
        weeks = self._value(DateField.WEEK_OF_YEAR, 1) - 1
        wanted = self._value(DateField.DAY_OF_WEEK, SUNDAY)
        if not 0 <= wanted <= _SATURDAY:
            # Java treats such a number as a day in weeks from Monday.
            further, wanted = wanted // 7, (wanted + 1) % 7 if wanted < 0 else wanted % 7 + 1
            weeks, wanted = weeks + further, wanted % 7
        start = first_week(day_number(self._value(DateField.WEEK_YEAR, _EPOCH_YEAR), 0, 1))
        return start + 7 * weeks + wanted

    def _day_of_month(self, year: int, kind: DateField) -> int:
        month = self._value(DateField.MONTH, 0)
        first = day_number(year, month, 1)
        if kind is DateField.DAY_OF_MONTH:
            return day_number(year, month, self._value(kind, 1))
        if kind is DateField.WEEK_OF_MONTH:
            return self._in_week(first_week(first)) + 7 * (self._value(kind, 1) - 1)
        wanted = self._value(DateField.DAY_OF_WEEK, SUNDAY)
        weeks = self._value(DateField.WEEK_IN_MONTH, 1)
        if weeks >= 0:
            return weekday_until(first + 7 * weeks - 1, wanted)
        following = day_number(year, month + 1, 1)
        return weekday_until(following + 7 * (weeks + 1) - 1, wanted)

    def _in_week(self, sunday: int) -> int:
        return sunday + self._value(DateField.DAY_OF_WEEK, SUNDAY) % 7

    def _deciding(self) -> DateField:
        """The field by which the day is found: the one of the combination that was complete last."""
        combined = (
            (DateField.DAY_OF_MONTH, self._stamp(DateField.DAY_OF_MONTH)),
            (DateField.WEEK_OF_MONTH, self._with_weekday(DateField.WEEK_OF_MONTH)),
            (DateField.WEEK_IN_MONTH, self._with_weekday(DateField.WEEK_IN_MONTH)),
            (DateField.DAY_OF_YEAR, self._stamp(DateField.DAY_OF_YEAR)),
            (DateField.WEEK_OF_YEAR, self._with_weekday(DateField.WEEK_OF_YEAR)),
        )
        found = max(combined, key=lambda each: (each[1], self._stamp(each[0])))
        if found[1] == _UNSET:
            found = max(self._incomplete(), key=lambda each: each[1])
        return found[0] if found[1] else DateField.DAY_OF_MONTH

    def _incomplete(self) -> tuple[tuple[DateField, int], ...]:
        """Fields that count where no combination is complete; a weekday alone is that of the first week."""
        in_month = self._stamp(DateField.WEEK_IN_MONTH), self._stamp(DateField.DAY_OF_WEEK)
        return (
            (DateField.WEEK_OF_MONTH, self._stamp(DateField.WEEK_OF_MONTH)),
            (DateField.WEEK_IN_MONTH, max(in_month)),
            (DateField.WEEK_OF_YEAR, self._stamp(DateField.WEEK_OF_YEAR)),
        )

    def _time(self) -> int:
        minutes = self._hour() * 60 + self._value(DateField.MINUTE, 0)
        seconds = minutes * 60 + self._value(DateField.SECOND, 0)
        return seconds * 1000 + self._value(DateField.MILLI, 0)

    def _hour(self) -> int:
        half, hour = self._stamp(DateField.HALF), self._stamp(DateField.HOUR)
        of_day = self._stamp(DateField.HOUR_OF_DAY)
        in_half = max(half, hour) if half and hour else _UNSET
        latest = max(in_half, of_day) or max(half, hour)
        if latest == of_day:
            return self._value(DateField.HOUR_OF_DAY, 0)
        return self._value(DateField.HOUR, 0) + _HALF_DAY_HOURS * self._value(DateField.HALF, 0)


_HOURS_OF_DAY = 24
_ISO = {
    1: re.compile(r"Z|([+-])(\d\d)", re.ASCII),
    2: re.compile(r"Z|([+-])(\d\d)([0-5]\d)", re.ASCII),
    3: re.compile(r"Z|([+-])(\d\d):([0-5]\d)", re.ASCII),
}
_PLAIN = re.compile(r"([+-])(\d\d)([0-5]\d)", re.ASCII)
_GREENWICH = re.compile(r"GMT(?:([+-])(\d\d?):([0-5]\d)|(?![+-]))", re.ASCII | re.IGNORECASE)
_NAMES = sorted(ZONES, key=len, reverse=True)


def read_iso_zone(text: str, place: int, letters: int) -> tuple[int, int] | None:
    """The minutes from UTC and the place after them, for so many *letters* ``X``; ``None`` where there are none. Pure."""
    return _offset(_ISO[letters].match(text, place))


def read_zone(text: str, place: int) -> tuple[int, int] | None:
    """The same for ``z`` and ``Z``: ``-0800``, ``GMT+1:00``, or a name. Pure."""
    found = _PLAIN.match(text, place) or _GREENWICH.match(text, place)
    return _offset(found) if found else _named(text, place)


def _offset(found: re.Match[str] | None) -> tuple[int, int] | None:
    if found is None:
        return None
    parts: list[str | None] = [*found.groups(), None]
    sign, hours, minutes = (each or "0" for each in parts[:3])
    if int(hours) >= _HOURS_OF_DAY:
        return None
    offset = int(hours) * 60 + int(minutes)
    return (offset if sign == "+" else -offset), found.end()


def _named(text: str, place: int) -> tuple[int, int] | None:
    for name in _NAMES:
        if text[place : place + len(name)].lower() == name.lower():
            return ZONES[name], place + len(name)
    return None


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
            # Java counts weekdays from 1 on Sunday, and leaves numbers outside the week as they are.
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
    """*number* as Java's ``intValue``: numbers of 64 bits are cut to 32, larger ones become the largest."""
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
    """The number in *digits*, clamped to *limit* on either side; Python does not parse thousands of digits."""
    sign = -1 if digits.startswith("-") else 1
    held = digits.lstrip("-0")
    return sign * (limit if len(held) > len(str(limit)) else min(int(held or "0"), limit))
