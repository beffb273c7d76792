"""The forms that TimestampConverter knows of a time, and single values from one form into another."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from headrace.connect.errors import RecordError
from headrace.connect.schema import DATE, INT64, STRING, TIME, TIMESTAMP, Schema, SchemaType
from headrace.transforms.date_pattern import Token, formatted
from headrace.transforms.date_reading import DateReader
from headrace.transforms.java_calendar import DAY_MILLIS
from headrace.transforms.requiring import java_class


class TimeForm(StrEnum):
    """Kafka Connect's names of them."""

    STRING = "string"
    UNIX = "unix"
    DATE = "Date"
    TIME = "Time"
    TIMESTAMP = "Timestamp"


SCHEMAS: Final[Mapping[TimeForm, Schema]] = {
    TimeForm.STRING: STRING,
    TimeForm.UNIX: INT64,
    TimeForm.DATE: DATE,
    TimeForm.TIME: TIME,
    TimeForm.TIMESTAMP: TIMESTAMP,
}
"""What each of them is in a schema."""

NANOS: Final[Mapping[str, int]] = {
    "nanoseconds": 1,
    "microseconds": 1000,
    "milliseconds": 1_000_000,
    "seconds": 1_000_000_000,
}
"""How long a unit of ``unix.precision`` is."""

_MILLI_NANOS = NANOS["milliseconds"]
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_EPOCH_DAY = _EPOCH.date()
_MILLI = dt.timedelta(milliseconds=1)
_LONG = 2**63


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeSettings:
    """What forms depend on: the unit of numbers in nanoseconds, and the pattern of texts, if there is one."""

    unit_nanos: int
    format: str
    pattern: tuple[Token, ...] | None
    reader: DateReader | None


def form_of_schema(schema: Schema) -> TimeForm:
    """Which form values of *schema* have. Raises :class:`~headrace.connect.errors.RecordError` for none."""
    for form in (TimeForm.TIMESTAMP, TimeForm.DATE, TimeForm.TIME):
        if schema.name == SCHEMAS[form].name:
            return form
    if schema.type is SchemaType.STRING:
        return TimeForm.STRING
    if schema.type is SchemaType.INT64:
        return TimeForm.UNIX
    kind = f"{schema.name}:{schema.type.name}" if schema.name else schema.type.name
    raise RecordError(
        f"Schema Schema{{{kind}}} does not correspond to a known timestamp type format"
    )


def form_of_value(value: object) -> TimeForm:
    """Which form *value* has, which comes without schema. Raises as :func:`form_of_schema` does."""
    if isinstance(value, dt.datetime):
        return TimeForm.TIMESTAMP
    if isinstance(value, dt.date):
        return TimeForm.DATE
    if isinstance(value, dt.time):
        return TimeForm.TIME
    if isinstance(value, str):
        return TimeForm.STRING
    if isinstance(value, int) and not isinstance(value, bool) and -_LONG <= value < _LONG:
        return TimeForm.UNIX
    raise RecordError(
        f"TimestampConverter does not support class {java_class(value)} objects as timestamps"
    )


def converted(value: Any, source: TimeForm, target: TimeForm, settings: TimeSettings) -> object:  # noqa: ANN401 (of any form)
    """*value* in the form *target*; a null stays null.

    Raises :class:`~headrace.connect.errors.RecordError` for a text that is no time, and for a time that
    Python has no form of.
    """
    if value is None:
        return None
    try:
        return _TO[target](_FROM[source](value, settings), settings)
    except OverflowError as error:
        raise RecordError(f"A timestamp lies outside the years 1 to 9999: {error}") from error


def scaled(number: int, numerator: int, denominator: int) -> int:
    """*number* in another unit: cut towards zero, and at the ends of 64 bits, as Java's ``TimeUnit`` does. Pure."""
    quotient, rest = divmod(number * numerator, denominator)
    return max(-_LONG, min(quotient + (quotient < 0 and rest > 0), _LONG - 1))


def _read_text(value: str, settings: TimeSettings) -> int:
    if settings.reader is None:
        raise RecordError(
            "Could not parse timestamp: no format is set for timestamps that are text"
        )
    millis = settings.reader.millis(value)
    if millis is None:
        told = f"value ({value}) does not match pattern ({settings.format})"
        raise RecordError(f"Could not parse timestamp: {told}")
    return millis


def _written(millis: int, settings: TimeSettings) -> str:
    assert settings.pattern is not None, "checked with the settings"
    return formatted(settings.pattern, millis)


def _moment(millis: int, _: TimeSettings) -> dt.datetime:
    return _EPOCH + dt.timedelta(milliseconds=millis)


def _millis_of_time(value: dt.time, _: TimeSettings) -> int:
    seconds = (value.hour * 60 + value.minute) * 60 + value.second
    return seconds * 1000 + value.microsecond // 1000


_FROM: Final[Mapping[TimeForm, Callable[[Any, TimeSettings], int]]] = {
    TimeForm.STRING: _read_text,
    TimeForm.UNIX: lambda value, settings: scaled(value, settings.unit_nanos, _MILLI_NANOS),
    TimeForm.DATE: lambda value, _: (value - _EPOCH_DAY).days * DAY_MILLIS,
    TimeForm.TIME: _millis_of_time,
    TimeForm.TIMESTAMP: lambda value, _: (value - _EPOCH) // _MILLI,
}
_TO: Final[Mapping[TimeForm, Callable[[int, TimeSettings], object]]] = {
    TimeForm.STRING: _written,
    TimeForm.UNIX: lambda millis, settings: scaled(millis, _MILLI_NANOS, settings.unit_nanos),
    TimeForm.DATE: lambda millis, settings: _moment(millis, settings).date(),
    TimeForm.TIME: lambda millis, settings: _moment(millis % DAY_MILLIS, settings).time(),
    TimeForm.TIMESTAMP: _moment,
}
