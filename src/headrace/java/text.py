"""Numbers and JSON strings as Java and its JSON library write them, to the byte; single values and columns."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

SHORT_ESCAPES: Final = {
    '"': '\\"',
    "\\": "\\\\",
    "\b": "\\b",
    "\t": "\\t",
    "\n": "\\n",
    "\f": "\\f",
    "\r": "\\r",
}
"""Characters that a JSON string holds as a backslash and one letter."""

# Jackson writes UTF-8 from UTF-16 units: a character that needs two of them becomes two escapes.
_ESCAPED = re.compile(r'["\\\x00-\x1f\U00010000-\U0010ffff]')
FIRST_SCIENTIFIC: Final = 1e7
"""From here on Java writes numbers with a power of ten."""
LAST_SCIENTIFIC: Final = 1e-3
"""Below this, too."""


def java_double(value: float) -> str:
    """*value* as ``Double.toString`` writes it: ``1.0``, ``1.0E10``, ``NaN``."""
    # Java prefers the nearest number with two digits over one with a single digit: the smallest double is 4.9E-324.
    two_digits = f"{value:.1e}"
    return _java_form(value, two_digits if float(two_digits) == value else repr(value))


def java_float(value: float) -> str:
    """*value*, rounded to 32 bits, as ``Float.toString`` writes it."""
    single = _single(value)
    two_digits = f"{single:.1e}"
    if _single(float(two_digits)) == single:
        return _java_form(single, two_digits)
    return _java_form(single, pa.scalar(single, pa.float32()).cast(pa.utf8()).as_py())


def json_quoted(text: str) -> str:
    """*text* as a JSON string with Jackson's escapes: few, upper-case, and surrogate pairs."""
    if text.isascii() and text.isprintable() and '"' not in text and "\\" not in text:
        return f'"{text}"'
    return f'"{_ESCAPED.sub(_escape, text)}"'


def _single(value: float) -> float:
    return pa.scalar(value, pa.float32()).as_py()


def _java_form(value: float, shortest: str) -> str:
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    coefficient, _, power = shortest.lower().partition("e")
    sign = "-" if coefficient.startswith("-") else ""
    whole, _, fraction = coefficient.lstrip("-").partition(".")
    digits = whole + fraction
    point = len(whole) + int(power or 0)
    if value == 0 or LAST_SCIENTIFIC <= abs(value) < FIRST_SCIENTIFIC:
        return sign + _plain(digits, point)
    leading = len(digits) - len(digits.lstrip("0"))
    digits = digits[leading:].rstrip("0")
    return f"{sign}{digits[0]}.{digits[1:] or '0'}E{point - leading - 1}"


def _plain(digits: str, point: int) -> str:
    if point <= 0:
        digits, point = "0" * (1 - point) + digits, 1
    digits = digits.ljust(point, "0")
    whole = digits[:point].lstrip("0") or "0"
    return f"{whole}.{digits[point:].rstrip('0') or '0'}"


def _escape(match: re.Match[str]) -> str:
    character = match.group()
    if character in SHORT_ESCAPES:
        return SHORT_ESCAPES[character]
    units = character.encode("utf-16-be").hex().upper()
    return "".join(f"\\u{units[start : start + 4]}" for start in range(0, len(units), 4))


# Arrow's form of a number: plain up to so many digits, otherwise with a power of ten.
_PARTS: Final = (
    r"^(?P<sign>-?)(?P<whole>[0-9]+)\.?(?P<fraction>[0-9]*)(?:e\+?(?P<power>-?[0-9]+))?$"
)
_NOTHING: Final = ""


def java_floats(values: pa.Array) -> pa.StringArray:
    """Each of *values*, of 32 or 64 bits, as ``Float.toString`` or ``Double.toString`` writes it; nulls stay null.

    Arrow finds the same digits as Java since version 19, the fewest that lead back to the number; only where a
    single digit would do does Java look for the nearest two, which are others where numbers are far apart.
    """
    text = values.cast(pa.utf8())
    whole = pc.equal(values, pc.trunc(values))
    if pc.any(whole).as_py():
        # Arrow writes 1 where Java writes 1.0.
        text = pc.binary_join_element_wise(text, pc.if_else(whole, ".0", _NOTHING), _NOTHING)
    size = pc.abs(values)
    plain = pc.and_(
        pc.greater_equal(size, LAST_SCIENTIFIC),
        pc.less(size, FIRST_SCIENTIFIC),
    )
    rare = _invert(pc.or_(plain, pc.equal(size, 0.0)))
    if not pc.any(rare).as_py():
        return text
    return pc.replace_with_mask(text, rare, _rare(values.filter(rare)))


def _rare(values: pa.Array) -> pa.StringArray:
    """Numbers that Java writes with a power of ten, NaN and infinities; none is null."""
    size = pc.abs(values)
    is_single = values.type == pa.float32()
    smallest = float(np.finfo(np.float32 if is_single else np.float64).tiny)
    normal = pc.and_(pc.is_finite(values), pc.greater_equal(size, smallest))
    if pc.all(normal).as_py():
        return _scientific(values)
    write: Callable[[float], str] = java_float if is_single else java_double
    odd = _invert(normal)
    alone = pa.array([write(row) for row in values.filter(odd).to_pylist()], pa.utf8())
    texts = pc.replace_with_mask(pa.nulls(len(values), pa.utf8()), odd, alone)
    return pc.replace_with_mask(texts, normal, _scientific(values.filter(normal)))


def _scientific(values: pa.Array) -> pa.StringArray:
    """Numbers with one digit before the point, and the power of ten that belongs to it."""
    parts = pc.extract_regex(values.cast(pa.utf8()), pattern=_PARTS)
    sign, whole, fraction, power = parts.flatten()
    digits = pc.binary_join_element_wise(whole, fraction, _NOTHING)
    leading = pc.ascii_ltrim(digits, "0")
    written = pc.if_else(pc.equal(power, _NOTHING), "0", power).cast(pa.int32())
    zeros = pc.subtract(pc.binary_length(digits), pc.binary_length(leading))
    point = pc.subtract(pc.subtract(pc.binary_length(whole), 1), zeros)
    digits = pc.ascii_rtrim(leading, "0")
    rest = pc.utf8_slice_codeunits(digits, 1)
    return pc.binary_join_element_wise(
        sign,
        pc.utf8_slice_codeunits(digits, 0, 1),
        ".",
        pc.if_else(pc.equal(rest, _NOTHING), "0", rest),
        "E",
        pc.add(point, written).cast(pa.utf8()),
        _NOTHING,
    )


def _invert(chosen: pa.BooleanArray) -> pa.BooleanArray:
    """The rows where *chosen* is false, without its nulls."""
    return pc.invert(chosen).fill_null(False)  # noqa: FBT003 (the value filled in)
