"""What a single word of a text is taken for: a number, a date, a time, or an instant."""

from __future__ import annotations

import datetime as dt
import math
import re
from decimal import Decimal
from typing import Any, Final

import numpy as np

from headrace.connect.schema import (
    DATE,
    FLOAT64,
    INT32,
    INT64,
    TIME,
    TIMESTAMP,
    Schema,
    SchemaType,
    decimal,
)
from headrace.transforms.date_pattern import tokens
from headrace.transforms.date_reading import DateReader
from headrace.transforms.java_calendar import DAY_MILLIS

FLOAT32: Final = Schema(type=SchemaType.FLOAT32)
_INTEGERS: Final = (
    (Schema(type=SchemaType.INT8), 7),
    (Schema(type=SchemaType.INT16), 15),
    (INT32, 31),
    (INT64, 63),
)
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?")
_LONG_DIGITS = 19
_SCALES = 2**31
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_FORMS: Final = {
    10: (DATE, "yyyy-MM-dd"),
    13: (TIME, "HH:mm:ss.SSS'Z'"),
    24: (TIMESTAMP, "yyyy-MM-dd'T'HH:mm:ss.SSS'Z'"),
}
_READERS = {length: DateReader(tokens(form), now=0) for length, (_, form) in _FORMS.items()}

Typed = tuple[Schema | None, Any]
"""A schema, if there is one, and a value of it."""


def inferred_time(text: str) -> Typed | None:
    """*text* as a Date, Time or Timestamp, told by its length; ``None`` for what is none. Pure.

    Raises ``ValueError`` for one that Connect's types cannot hold.
    """
    if len(text) not in _FORMS:
        return None
    millis = _READERS[len(text)].millis(text)
    return None if millis is None else (_FORMS[len(text)][0], _of_time(text, millis))


def inferred_number(text: str) -> Typed | None:
    """*text* as the narrowest number that holds it; ``None`` for what is none. Pure."""
    if not _NUMBER.fullmatch(text):
        return None
    number = Decimal(text)
    exponent = number.as_tuple().exponent
    # Java's decimals have an exponent of 32 bits.
    if not isinstance(exponent, int) or not -_SCALES < exponent < _SCALES:
        return None
    return _whole(number) or _fraction(number, exponent)


def as_float32(value: float) -> float:
    """*value* with the precision of 32 bits; infinite where these do not suffice. Pure."""
    with np.errstate(over="ignore"):
        return float(np.float32(value))


def _of_time(text: str, millis: int) -> object:
    schema = _FORMS[len(text)][0]
    try:
        moment = _EPOCH + dt.timedelta(milliseconds=millis)
    except OverflowError:
        raise ValueError(f"{text} is after the year 9999") from None
    if schema is TIMESTAMP:
        return moment
    if schema is DATE:
        return moment.date()
    if not 0 <= millis < DAY_MILLIS:
        raise ValueError(f"{text} is no time of a day")
    return moment.time()


def _whole(number: Decimal) -> Typed | None:
    """*number* as an integer, if it is one of at most 64 bits."""
    if number.is_zero():
        return _INTEGERS[0][0], 0
    if number.adjusted() >= _LONG_DIGITS or number != number.to_integral_value():
        return None
    value = int(number)
    for schema, bits in _INTEGERS:
        if -(2**bits) <= value < 2**bits:
            return schema, value
    return None


def _fraction(number: Decimal, exponent: int) -> Typed:
    double = float(number)
    single = as_float32(double)
    if exponent and math.isfinite(single):
        return FLOAT32, single
    if exponent and math.isfinite(double):
        return FLOAT64, double
    return decimal(-exponent), number
