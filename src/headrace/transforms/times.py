"""Dates, times of day and instants as milliseconds, and as the text that Kafka Connect makes of them; pure."""

from __future__ import annotations

import datetime as dt
from typing import Final

DAY_MS: Final = 86_400_000
_EPOCH = dt.date(1970, 1, 1)
_START = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_MILLISECOND = dt.timedelta(milliseconds=1)


def milliseconds(value: dt.date | dt.time) -> int:
    """Milliseconds since 1970 of an instant or of a day's start, or since midnight of a time of day."""
    if isinstance(value, dt.datetime):
        return (value - _START) // _MILLISECOND
    if isinstance(value, dt.time):
        since = dt.datetime.combine(_EPOCH, value, tzinfo=dt.UTC) - _START
        return since // _MILLISECOND
    return day_number(value) * DAY_MS


def day_number(value: dt.date) -> int:
    """Days since 1970."""
    return value.toordinal() - _EPOCH.toordinal()


def time_text(millis: int) -> str:
    """*millis* since 1970 as Kafka Connect writes it: what it looks like says which of its parts are told."""
    days, rest = divmod(millis, DAY_MS)
    if millis < DAY_MS:
        # All that comes before 1970, too.
        return f"{_clock(rest)}Z"
    day = (_EPOCH + dt.timedelta(days=days)).isoformat()
    return f"{day}T{_clock(rest)}Z" if rest else day


def _clock(millis: int) -> str:
    return (_START + millis * _MILLISECOND).time().isoformat("milliseconds")
