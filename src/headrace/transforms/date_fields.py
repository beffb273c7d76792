"""Which time the fields mean that a text names: as Java's lenient calendar finds it, also where they contradict."""

from __future__ import annotations

from enum import Enum, auto
from typing import Final

from headrace.transforms.java_calendar import (
    DAY_MILLIS,
    SUNDAY,
    day_number,
    first_week,
    weekday_until,
)


class DateField(Enum):
    """What a text can name of a time."""

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
            # Of such a number, Java thinks as of a day in weeks from Monday.
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
