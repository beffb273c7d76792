"""Times in the forms that TimestampConverter knows, single values and columns."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from headrace.connect.errors import RecordError
from headrace.connect.schema import DATE, INT64, STRING, TIME, TIMESTAMP, Schema, SchemaType
from headrace.java.date_format import Token, formatted, text_of, unit_millis
from headrace.java.date_parsing import DateReader
from headrace.java.gregorian_calendar import DAY_MILLIS
from headrace.transforms.record_part import java_class


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
"""The schema of each form."""

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
    """Settings of the forms: the unit of numbers in nanoseconds, and the pattern of texts, if there is one."""

    unit_nanos: int
    format: str
    pattern: tuple[Token, ...] | None
    reader: DateReader | None


def form_of_schema(schema: Schema) -> TimeForm:
    """The form of values of *schema*. Raises :class:`~headrace.connect.errors.RecordError` for another schema."""
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
    """The form of *value*, which has no schema. Raises as :func:`form_of_schema` does."""
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
    Python cannot represent.
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
        message = f"value ({value}) does not match pattern ({settings.format})"
        raise RecordError(f"Could not parse timestamp: {message}")
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


_Millis = npt.NDArray[np.int64]
_WIDTHS = {"yyyy": 4, "MM": 2, "dd": 2, "HH": 2, "mm": 2, "ss": 2, "SSS": 3}
_ZERO, _NINE = ord("0"), ord("9")
# Dates of the Julian calendar, and years beyond Python's dates, are converted record by record.
_FIRST_YEAR, _LAST_YEAR = 1583, 9999
_LAST_DAY = 31
_MONTHS = 12


def written(pattern: Sequence[Token], millis: _Millis) -> pa.StringArray:
    """Each of *millis* since 1970 in the form of *pattern*; every distinct text is made only once."""
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
    """The texts of *token* at each of *millis*."""
    unit, cycle = unit_millis(token)
    places = millis // unit
    if cycle is not None:
        table = [text_of(token, place * unit) for place in range(cycle)]
        return pa.array(table, pa.utf8()).take(pa.array(places % cycle))
    days, rows = np.unique(places, return_inverse=True)
    table = [text_of(token, day * unit) for day in days.tolist()]
    return pa.array(table, pa.utf8()).take(pa.array(rows.reshape(-1)))


def _characters(texts: pa.StringArray, width: int) -> npt.NDArray[np.uint8] | None:
    """*texts* as a table of bytes; ``None`` unless each has *width* bytes."""
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
    # Hours, minutes and days beyond their maximum carry over, as in Java.
    units = {"HH": 3_600_000, "mm": 60_000, "ss": 1000, "SSS": 1}
    return days * DAY_MILLIS + sum(
        (fields[letters] * unit for letters, unit in units.items() if letters in fields),
        start=np.zeros_like(year),
    )
