"""Text: strings as they are, anything else as Java prints it."""

from __future__ import annotations

import codecs
import datetime as dt
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import pyarrow as pa

from headrace.connect.config import Config, Problem, setting
from headrace.connect.errors import RecordError
from headrace.connect.schema import Schema
from headrace.converters.columns import as_binary, is_bytes, is_document, is_text, refusal
from headrace.java.numbers import java_double, java_float, java_floats

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
        text = (f"{name}={_text(each, of)}" for name, each, of in members if each is not None)
        return f"Struct{{{','.join(text)}}}"
    if pa.types.is_map(kind):
        return f"{{{', '.join(_entries(value, kind))}}}"
    return f"[{', '.join(_text(each, kind.value_type) for each in value)}]"


def _entries(pairs: Iterable[tuple[Any, Any]], kind: pa.MapType) -> Iterator[str]:
    """The last of several entries with one key, in the place of the first, as in a Java map."""
    # Compared by repr, since a key may be a list; two different keys may have the same text in Java.
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
    """Year, month and day; in the Julian calendar where Java uses that."""
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


_UTF_8 = codecs.lookup("utf-8").name
# Java's UTF-16 has a byte order mark and is big-endian; Python's has the byte order of the machine.
_JAVA_UTF_16 = codecs.lookup("utf-16").name


class StringConverterConfig(Config):
    encoding: str = setting(
        "converter.encoding",
        default="UTF-8",
        importance="high",
        doc="The name of the character set of the text in Kafka.",
        width="MEDIUM",
        display_name="Encoding",
    )

    def check(self) -> Iterator[Problem]:
        """Report an encoding that Python does not know."""
        try:
            codecs.lookup(self.encoding)
        except LookupError:
            yield "converter.encoding", f"Unsupported encoding {self.encoding}"


class StringConverter:
    """Writes values as Java prints them; strings in UTF-8, bytes and JSON documents stay as they are."""

    config_class = StringConverterConfig

    def __init__(self) -> None:
        self._encoding = _UTF_8

    def configure(self, config: Mapping[str, str], *, is_key: bool) -> None:
        """Take ``converter.encoding``."""
        self._encoding = codecs.lookup(StringConverterConfig.parse(config).encoding).name

    def encode(self, topic: str, schema: Schema | None, values: pa.Array) -> pa.BinaryArray:
        """The text of each of *values*; what is nested needs a schema."""
        kind = values.type
        if is_bytes(kind) or pa.types.is_null(kind):
            return as_binary(values)
        if is_text(kind) or is_document(kind):
            return self._recoded(values)
        if pa.types.is_float32(kind) or pa.types.is_float64(kind):
            return self._recoded(java_floats(values))
        if pa.types.is_integer(kind) or pa.types.is_boolean(kind):
            return self._recoded(values.cast(pa.utf8()))
        if pa.types.is_decimal(kind):
            # Arrow writes decimals as Java's BigDecimal does, exponents included.
            return self._recoded(values.cast(pa.utf8()))
        if schema is not None or pa.types.is_temporal(kind):
            return self._recoded(java_texts(values))
        raise _unsupported(values)

    def _recoded(self, text: pa.Array) -> pa.BinaryArray:
        if self._encoding == _UTF_8:
            return as_binary(text)
        rows = (None if row is None else self._encoded(row) for row in text.to_pylist())
        return pa.array(rows, pa.binary(), size=len(text))

    def _encoded(self, row: str) -> bytes:
        # As in Java, a character that the encoding lacks becomes a question mark.
        if self._encoding == _JAVA_UTF_16:
            return codecs.BOM_UTF16_BE + row.encode("utf-16-be", errors="replace")
        return row.encode(self._encoding, errors="replace")


def _unsupported(values: pa.Array) -> RecordError:
    return refusal(
        f"StringConverter does not support values of type {values.type} without a schema.", values
    )
