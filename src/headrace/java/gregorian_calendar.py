"""The calendar of Java's ``GregorianCalendar``: Julian before 15 October 1582, weeks from Sunday, week 1 with 1 January.

Days are counted from 1970-01-01. Years are astronomical: 0 is 1 BC. Months are counted from 0.
"""

from __future__ import annotations

from typing import Final

DAY_MILLIS: Final = 86_400_000
SUNDAY: Final = 0

_FIRST_GREGORIAN_DAY = -141_427
_FIRST_GREGORIAN_YEAR = 1582
_MONTHS = 12
# 0000-03-01, from which years of 365 days and a leap day at their very end are counted.
_GREGORIAN_ERA = 719_468
_JULIAN_ERA = 719_470
_FOUR_YEARS = 1461
_FOUR_CENTURIES = 146_097


def day_number(year: int, month: int, day: int) -> int:
    """The day of a date; a *month* or *day* beyond its maximum carries over. Pure."""
    year, month = year + month // _MONTHS, month % _MONTHS
    gregorian = _gregorian(year, month, day)
    if year >= _FIRST_GREGORIAN_YEAR and gregorian >= _FIRST_GREGORIAN_DAY:
        return gregorian
    shifted, within = _from_march(year, month)
    return shifted * _FOUR_YEARS // 4 + within + day - 1 - _JULIAN_ERA


def date_of(day: int) -> tuple[int, int, int]:
    """Year, month and day of the month of *day*. Pure."""
    if day < _FIRST_GREGORIAN_DAY:
        cycle, rest = divmod(day + _JULIAN_ERA, _FOUR_YEARS)
        year = min(rest // 365, 3)
        return _date(4 * cycle + year, rest - 365 * year)
    era, rest = divmod(day + _GREGORIAN_ERA, _FOUR_CENTURIES)
    year = (rest - rest // 1460 + rest // 36_524 - rest // 146_096) // 365
    return _date(400 * era + year, rest - (365 * year + year // 4 - year // 100))


def weekday(day: int) -> int:
    """The day of the week of *day*: 0 is Sunday. Pure."""
    return (day + 4) % 7


def weekday_until(day: int, wanted: int) -> int:
    """The last day up to *day* that is of the weekday *wanted*. Pure."""
    return day - (weekday(day) - wanted) % 7


def first_week(start: int) -> int:
    """The Sunday on which the week of *start* begins, the first day of a year or a month. Pure."""
    return weekday_until(start, SUNDAY)


def week_year(day: int) -> int:
    """The year that the week of *day* counts to: the one in which it ends. Pure."""
    return date_of(first_week(day) + 6)[0]


def _gregorian(year: int, month: int, day: int) -> int:
    shifted, within = _from_march(year, month)
    leaps = shifted // 4 - shifted // 100 + shifted // 400
    return shifted * 365 + leaps + within + day - 1 - _GREGORIAN_ERA


def _from_march(year: int, month: int) -> tuple[int, int]:
    """The year, counted from March, and how many of its days are before *month*."""
    shifted = (month + 10) % _MONTHS
    return year - (month < 2), (153 * shifted + 2) // 5  # noqa: PLR2004 (January and February)


def _date(year: int, within: int) -> tuple[int, int, int]:
    shifted = (5 * within + 2) // 153
    month = (shifted + 2) % _MONTHS
    first = (153 * shifted + 2) // 5
    return year + (month < 2), month, within - first + 1  # noqa: PLR2004 (January and February)
