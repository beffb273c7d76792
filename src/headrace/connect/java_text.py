"""Numbers and JSON strings as Java and its JSON library write them, to the byte."""

from __future__ import annotations

import math
import re
from typing import Final

import pyarrow as pa

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

# Jackson writes UTF-8 from UTF-16 units: what needs two of them leaves as two escapes.
_ESCAPED = re.compile(r'["\\\x00-\x1f\U00010000-\U0010ffff]')
FIRST_SCIENTIFIC: Final = 1e7
"""From here on numbers have a power of ten in Java."""
LAST_SCIENTIFIC: Final = 1e-3
"""Below this they have one, too."""


def java_double(value: float) -> str:
    """*value* as ``Double.toString`` writes it: ``1.0``, ``1.0E10``, ``NaN``."""
    # Java takes the nearest of two digits over a single one: the smallest double is 4.9E-324.
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
