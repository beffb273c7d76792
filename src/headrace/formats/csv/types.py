"""The types that fields of CSV files may have. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headrace.connect.schema import (
    BOOLEAN,
    DATE,
    FLOAT64,
    INT64,
    STRING,
    TIME,
    TIMESTAMP,
    Schema,
    arrow_type,
    decimal,
)
from headrace.formats.exact_numbers import double_of, int64_of

# What Python makes a number of, JSON may not: no leading zeros, plus signs, spaces or infinities.
_WHOLE = "-?(0|[1-9][0-9]*)"
_EXPONENT = "([eE][+-]?[0-9]+)?"
_DAY_OF_ANY_YEAR = "[0-9]{4}-((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])|(0[469]|11)-(0[1-9]|[12][0-9]|30)|02-(0[1-9]|1[0-9]|2[0-8]))"
_LEAP_DAY = "([0-9]{2}(0[48]|[2468][048]|[13579][26])|([02468][048]|[13579][26])00)-02-29"
_DAY = f"({_DAY_OF_ANY_YEAR}|{_LEAP_DAY})"
_CLOCK = r"([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9](\.[0-9]{1,3})?)?"
_ZONE = "(Z|[+-]([01][0-9]|2[0-3])(:?[0-5][0-9])?)"
_DECIMAL = re.compile(r"decimal\(([0-9]|[12][0-9]|3[0-7])\)")
_DECIMAL_DIGITS = 38
_SURE_INT64_CHARACTERS = 18
_SURE_DOUBLE_CHARACTERS = 15
# In ms since 1970: the first of the year 1 and the last of 9999, all that Python's datetime can be.
_FIRST_MOMENT, _LAST_MOMENT = -62_135_596_800_000, 253_402_300_799_999

KNOWN_TYPES: Final = (
    "string, integer, number, boolean, date, time, timestamp, decimal(0) to decimal(37)"
)


@dataclass(frozen=True, slots=True)
class FieldType:
    """A type by its *name*: how its texts look, its schema, and which texts its values hold without loss.

    *pattern* is ``None`` where any text will do; *holds* is asked only where :attr:`schema` is made use of,
    and *refusal* says of a text what is wrong when its values do not hold it.
    """

    name: str
    pattern: str | None
    schema: Schema
    holds: Callable[[pa.StringArray], pa.BooleanArray | None] = lambda _: None
    refusal: str = ""

    @property
    def quoted(self) -> bool:
        """Whether its texts are strings in JSON."""
        return self.pattern is None or self.schema.name in (DATE.name, TIME.name, TIMESTAMP.name)

    def values(self, texts: pa.StringArray) -> pa.Array:
        """*texts*, of which each fits or is null, as values of the schema."""
        if self.schema.type is BOOLEAN.type:
            return pc.equal(pc.utf8_lower(texts), "true")
        if self.schema.name == TIME.name:
            # Arrow reads no times without a day.
            texts = pc.binary_join_element_wise("1970-01-01T", texts, "")
            return texts.cast(pa.timestamp("ms")).cast(arrow_type(self.schema))
        if self.schema.name == TIMESTAMP.name:
            texts = _with_zone(texts)
        return texts.cast(arrow_type(self.schema))


def field_type(name: str) -> FieldType | None:
    """The type called *name*; ``None`` where there is none."""
    found = _TYPES.get(name)
    scale = _DECIMAL.fullmatch(name)
    return found or (_decimal(name, int(scale[1])) if scale else None)


def inferred_type(texts: pa.StringArray) -> FieldType:
    """The narrowest type that holds all of *texts*; strings where there is none, or no text that is not null.

    Never one that would lose digits.
    """
    texts = texts.drop_null()
    for name in ("boolean", "integer", "number") if len(texts) else ():
        kind = _TYPES[name]
        if not _all(pc.match_substring_regex(texts, kind.pattern)):
            continue
        holds = kind.holds(texts)
        if holds is None or _all(holds):
            return kind
    return _TYPES["string"]


def _decimal(name: str, scale: int) -> FieldType:
    digits = _DECIMAL_DIGITS - scale
    fraction = rf"(\.[0-9]{{1,{scale}}})?" if scale else ""
    return FieldType(
        name, rf"^-?(0|[1-9][0-9]{{0,{digits - 1}}}){fraction}$", decimal(scale).as_optional()
    )


def _with_zone(texts: pa.StringArray) -> pa.StringArray:
    """*texts* of timestamps, those without zone as UTC."""
    zone = pc.if_else(pc.match_substring_regex(texts, f"{_ZONE}$"), "", "Z")
    return pc.binary_join_element_wise(texts, zone, "")


def _days_of_python(texts: pa.StringArray) -> pa.BooleanArray | None:
    return pc.invert(pc.starts_with(texts, "0000"))


def _moments_of_python(texts: pa.StringArray) -> pa.BooleanArray | None:
    """Which of *texts* are, as UTC, of a year that Python knows; ``None`` for all."""
    # A zone moves a moment by less than two days.
    outermost = pc.match_substring_regex(texts, "^(0000|0001-01-0|9999-12-3)").fill_null(False)  # noqa: FBT003
    if not pc.any(outermost).as_py():
        return None
    moments = _with_zone(texts).cast(arrow_type(TIMESTAMP)).cast(pa.int64())
    return pc.and_(pc.greater_equal(moments, _FIRST_MOMENT), pc.less_equal(moments, _LAST_MOMENT))


def _int64s(texts: pa.StringArray) -> pa.BooleanArray | None:
    return _each(texts, _SURE_INT64_CHARACTERS, lambda text: int64_of(text) is not None)


def _doubles(texts: pa.StringArray) -> pa.BooleanArray | None:
    return _each(texts, _SURE_DOUBLE_CHARACTERS, lambda text: double_of(text) is not None)


def _each(texts: pa.StringArray, sure: int, holds: Callable[[str], bool]) -> pa.BooleanArray | None:
    """Which of *texts* are held, ``None`` for all; those of at most *sure* characters are, without exponents."""
    doubtful = pc.or_(
        pc.greater(pc.binary_length(texts), sure), pc.match_substring_regex(texts, "[eE]")
    ).fill_null(False)  # noqa: FBT003
    rows = np.flatnonzero(doubtful.to_numpy(zero_copy_only=False))
    if not len(rows):
        return None
    held = np.ones(len(texts), np.bool_)
    held[rows] = [holds(text) for text in texts.take(pa.array(rows)).to_pylist()]
    return pa.array(held)


def _lossy(name: str) -> str:
    return f"no {name} of 64 bits holds without losing digits"


def _all(right: pa.BooleanArray) -> bool:
    return pc.all(right).as_py() is True


_NO_YEAR: Final = "is not of the years 1 to 9999"
_TYPES: Final[Mapping[str, FieldType]] = {
    kind.name: kind
    for kind in (
        FieldType("string", None, STRING.as_optional()),
        FieldType("integer", f"^{_WHOLE}$", INT64.as_optional(), _int64s, _lossy("integer")),
        FieldType(
            "number",
            rf"^{_WHOLE}(\.[0-9]+)?{_EXPONENT}$",
            FLOAT64.as_optional(),
            _doubles,
            _lossy("number"),
        ),
        FieldType("boolean", "^(?i:true|false)$", BOOLEAN.as_optional()),
        FieldType("date", f"^{_DAY}$", DATE.as_optional(), _days_of_python, _NO_YEAR),
        FieldType("time", f"^{_CLOCK}$", TIME.as_optional()),
        FieldType(
            "timestamp",
            f"^{_DAY}[T ]{_CLOCK}{_ZONE}?$",
            TIMESTAMP.as_optional(),
            _moments_of_python,
            _NO_YEAR,
        ),
    )
}
