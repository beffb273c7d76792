"""Nested values, dates and decimals as Java's ``toString`` tells them."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa

from headrace.connect.errors import RecordError
from headrace.connect.java_text import java_double, java_float
from headrace.converters.columns import is_bytes

_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_FIRST_GREGORIAN = dt.date(1582, 10, 15)
_TO_MARCH_4801_BC = 1_753_507
_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


def java_texts(values: pa.Array) -> pa.StringArray:
    """The text of each of *values*, whose Arrow type says what Java would have; nulls stay null.

    Raises :class:`~headrace.connect.errors.RecordError` with the row for bytes inside a value, and for
    a year that Python has no dates for.
    """
    return pa.array(_rows(values), pa.utf8(), size=len(values))


def _rows(values: pa.Array) -> Iterator[str | None]:
    for row, value in enumerate(values):
        try:
            yield _text(value.as_py(), values.type) if value.is_valid else None
        except RecordError as error:
            raise RecordError(error.reason, row=row, advice=error.advice) from error
        except (ValueError, OverflowError) as error:
            raise RecordError(
                f"StringConverter writes dates of the years 1 to 9999 only: {error}", row=row
            ) from error


def _text(value: Any, kind: pa.DataType) -> str:  # noqa: ANN401
    if value is None:
        return "null"
    if pa.types.is_nested(kind):
        return _nested(value, kind)
    if is_bytes(kind):
        raise RecordError(
            "StringConverter cannot write bytes that are inside of a value: they have no text in Java.",
            row=0,
            advice="Use the converter json, which writes them in base64.",
        )
    if pa.types.is_temporal(kind):
        return _date(value)
    if pa.types.is_floating(kind):
        return java_float(value) if pa.types.is_float32(kind) else java_double(value)
    return str(value).lower() if pa.types.is_boolean(kind) else str(value)


def _nested(value: Any, kind: pa.DataType) -> str:  # noqa: ANN401
    if pa.types.is_struct(kind):
        members = ((each.name, value[each.name], each.type) for each in kind)
        told = (f"{name}={_text(each, of)}" for name, each, of in members if each is not None)
        return f"Struct{{{','.join(told)}}}"
    if pa.types.is_map(kind):
        return f"{{{', '.join(_entries(value, kind))}}}"
    return f"[{', '.join(_text(each, kind.value_type) for each in value)}]"


def _entries(pairs: Iterable[tuple[Any, Any]], kind: pa.MapType) -> Iterator[str]:
    """Of several entries of one key the last, in the place of the first, as in a Java map."""
    # Known by what Python prints of it, since a key may be a list; two may have the same text in Java.
    last = {repr(key): (key, value) for key, value in pairs}
    for key, value in last.values():
        yield f"{_text(key, kind.key_type)}={_text(value, kind.item_type)}"


def _date(value: dt.datetime | dt.date | dt.time) -> str:
    """As ``java.util.Date`` prints itself in UTC: ``Thu Jan 01 00:00:00 UTC 1970``."""
    moment = _moment(value)
    year, month, day = _calendar(moment.date())
    clock = f"{moment.hour:02}:{moment.minute:02}:{moment.second:02}"
    return f"{_DAYS[moment.weekday()]} {_MONTHS[month - 1]} {day:02} {clock} UTC {year}"


def _calendar(day: dt.date) -> tuple[int, int, int]:
    """Year, month and day; those of the Julian calendar where Java takes it."""
    if day >= _FIRST_GREGORIAN:
        return day.year, day.month, day.day
    # Days since a first of March that follows a leap day, and years of 365.25 days, months of 30.6.
    since = day.toordinal() + _TO_MARCH_4801_BC
    years = (4 * since + 3) // 1461
    rest = since - 1461 * years // 4
    months = (5 * rest + 2) // 153
    is_next_year = months // 10
    return (
        years - 4800 + is_next_year,
        months + 3 - 12 * is_next_year,
        rest - (153 * months + 2) // 5 + 1,
    )


def _moment(value: dt.datetime | dt.date | dt.time) -> dt.datetime:
    if isinstance(value, dt.datetime):
        return value
    if isinstance(value, dt.time):
        return dt.datetime.combine(_EPOCH, value)
    return dt.datetime.combine(value, dt.time())
