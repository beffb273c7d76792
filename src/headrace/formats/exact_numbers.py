"""Numbers that are written as text: what holds them without losing digits."""

from __future__ import annotations

import math
from decimal import Decimal, InvalidOperation
from typing import Final

LEAST_INT64: Final = -(2**63)
MOST_INT64: Final = 2**63 - 1

# Every number of 18 digits fits, and int() of a longer text takes time that grows with its square.
_SURE_INTEGER = 18
_MOST_INTEGER = 20


def int64_of(text: str) -> int | None:
    """The whole number that *text* is, a JSON number; ``None`` when 64 bits do not hold it."""
    if len(text) <= _SURE_INTEGER:
        return int(text)
    if len(text) > _MOST_INTEGER:
        return None
    value = int(text)
    return value if LEAST_INT64 <= value <= MOST_INT64 else None


def double_of(text: str) -> float | None:
    """The double that *text* is, a JSON number; ``None`` when it has more digits than that keeps.

    A double keeps a number when its shortest decimal form is the same number: 0.1, though no double is a tenth.
    """
    value = float(text)
    try:
        keeps = math.isfinite(value) and Decimal(repr(value)) == Decimal(text)
    except InvalidOperation:
        # An exponent that not even a Decimal has.
        return None
    return value if keeps else None
