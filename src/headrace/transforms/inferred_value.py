"""The value and schema inferred from a text, as Kafka Connect reads headers."""

from __future__ import annotations

import datetime as dt
import math
import re
from collections.abc import Sequence
from decimal import Decimal
from typing import Any, Final

import numpy as np

from headrace.connect.schema import (
    BOOLEAN,
    DATE,
    FLOAT64,
    INT32,
    INT64,
    STRING,
    TIME,
    TIMESTAMP,
    Schema,
    SchemaType,
    decimal,
)
from headrace.java.date_format import tokens
from headrace.java.date_parsing import DateReader
from headrace.java.gregorian_calendar import DAY_MILLIS

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
    """*text* as a Date, Time or Timestamp, depending on its length; ``None`` if it is none of them. Pure.

    Raises ``ValueError`` for one that Connect's types cannot hold.
    """
    if len(text) not in _FORMS:
        return None
    millis = _READERS[len(text)].millis(text)
    return None if millis is None else (_FORMS[len(text)][0], _of_time(text, millis))


def inferred_number(text: str) -> Typed | None:
    """*text* as the narrowest number that holds it; ``None`` if it is not a number. Pure."""
    if not _NUMBER.fullmatch(text):
        return None
    number = Decimal(text)
    exponent = number.as_tuple().exponent
    # Java's decimals have an exponent of 32 bits.
    if not isinstance(exponent, int) or not -_SCALES < exponent < _SCALES:
        return None
    return _whole(number) or _fraction(number, exponent)


def as_float32(value: float) -> float:
    """*value* with the precision of 32 bits; infinite where it is too large for these. Pure."""
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


_TOKEN = re.compile(r'[:,{}\[\]"]|(?:\\.|[^:,{}\[\]"\\])+\\?|\\', re.DOTALL)
_WORDS: Final[dict[str, Typed | None]] = {
    "null": None,
    "true": (BOOLEAN, True),
    "false": (BOOLEAN, False),
}
# A time of day is one word and four more tokens, because colons are tokens of their own.
_MORE_TOKENS = 4
_WIDTHS: Final = (
    SchemaType.INT8,
    SchemaType.INT16,
    SchemaType.INT32,
    SchemaType.INT64,
    SchemaType.FLOAT32,
    SchemaType.FLOAT64,
)


class _NotNestedError(Exception):
    """The text in brackets is not a list or map, so the whole text is a string."""


def inferred(text: str) -> Typed:
    """The value of *text*, with its schema; ``(None, None)`` for ``null``. Pure.

    A list or map whose elements have nothing in common has no schema, and stays a list or map. Raises
    ``ValueError`` where Kafka Connect makes of it what no schema describes.
    """
    found = _Reading(text).value(nested=False) if text else (STRING, text)
    return (None, None) if found is None else found


class _Reading:
    """The words of a text, read up to a place."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = _TOKEN.findall(text)
        self._place = 0

    def value(self, *, nested: bool) -> Typed | None:
        """The next value; ``None`` for ``null``."""
        if nested and self._consumes('"'):
            return self._quoted()
        for word, meant in _WORDS.items():
            if self._is_word(word, nested=nested):
                return meant
        start = self._place
        try:
            if self._consumes("["):
                return self._list()
            if self._consumes("{"):
                return self._map()
        except _NotNestedError:
            self._place = start
        found = self._scalar()
        if found is None and nested:
            raise _NotNestedError
        return found or (STRING, self._text)

    def _next(self) -> str:
        if self._place >= len(self._tokens):
            raise _NotNestedError
        self._place += 1
        return self._tokens[self._place - 1]

    def _peeks(self, token: str) -> int:
        """The number of tokens up to and including *token*, with white space before it; 0 if another one is next."""
        ahead = [each.strip() for each in self._tokens[self._place : self._place + 2]]
        if ahead[:1] == [token]:
            return 1
        return 2 if ahead == ["", token] else 0

    def _consumes(self, token: str) -> bool:
        passed = self._peeks(token)
        self._place += passed
        return passed > 0

    def _is_word(self, word: str, *, nested: bool) -> bool:
        if self._place >= len(self._tokens) or self._tokens[self._place].strip() != word:
            return False
        if not nested and self._place + 1 < len(self._tokens):
            return False
        self._place += 1
        return True

    def _quoted(self) -> Typed:
        content = ""
        while (token := self._next()) != '"':
            content += token
        return inferred_time(content) or (STRING, content)

    def _scalar(self) -> Typed | None:
        word = self._next().strip()
        if not word or not (word[0].isdecimal() or word[0] in "+-"):
            return None
        further = self._tokens[self._place : self._place + _MORE_TOKENS]
        if word[0].isdecimal() and len(further) == _MORE_TOKENS:
            found = inferred_time("".join((word, *further)).strip())
            if found is not None:
                self._place += _MORE_TOKENS
                return found
        return (inferred_time(word) if word[0].isdecimal() else None) or inferred_number(word)

    def _list(self) -> Typed:
        elements = list[Typed | None]()
        while not self._consumes("]"):
            elements.append(self.value(nested=True))
            if not self._peeks("]") and not self._consumes(","):
                raise _NotNestedError
        shared, values = _aligned(elements)
        schema = None if shared is None else Schema(type=SchemaType.ARRAY, value_schema=shared)
        return schema, values

    def _map(self) -> Typed:
        keys, elements = list[Typed | None](), list[Typed | None]()
        while not self._consumes("}"):
            key = self.value(nested=True)
            if key is None or not self._consumes(":"):
                raise _NotNestedError
            keys.append(key)
            elements.append(self.value(nested=True))
            self._consumes(",")
        key_schema, names = _aligned(keys)
        value_schema, values = _aligned(elements)
        if any(isinstance(name, list | dict) for name in names):
            raise ValueError("a list or map is the key of a map")
        entries = dict(zip(names, values, strict=True))
        if key_schema is None or value_schema is None:
            return None, entries
        return (
            Schema(type=SchemaType.MAP, key_schema=key_schema, value_schema=value_schema),
            entries,
        )


def _aligned(elements: Sequence[Typed | None]) -> tuple[Schema | None, list[Any]]:
    """The common schema of all *elements*, widened if necessary, and their values in it."""
    values: list[Any] = [None if each is None else each[1] for each in elements]
    shared = _shared([each[0] for each in elements if each is not None])
    if shared is None:
        return None, values
    if None in elements:
        raise _NotNestedError
    if shared.type is SchemaType.FLOAT32 or shared.type is SchemaType.FLOAT64:
        values = [as_float32(each) if shared == FLOAT32 else float(each) for each in values]
    return shared, values


def _shared(schemas: Sequence[Schema | None]) -> Schema | None:
    shared = schemas[0] if schemas else None
    for schema in schemas[1:]:
        if shared is None or schema is None:
            return None
        shared = _wider(shared, schema)
    return shared


def _wider(one: Schema, other: Schema) -> Schema | None:
    if one == other:
        return one
    if one.type is other.type and not (one.name or other.name):
        return other
    if one.type not in _WIDTHS or other.type not in _WIDTHS:
        if one.type is other.type:
            raise ValueError("its decimals have different scales")
        return None
    if one.name or other.name:
        raise ValueError("numbers, dates and times are mixed in it")
    return max(one, other, key=lambda each: _WIDTHS.index(each.type))
