"""Numbers as Java converts them: cut to their bits, cut to whole numbers, read from text."""

from __future__ import annotations

import math
import re
from decimal import Decimal

import numpy as np
import pyarrow as pa

_INT = re.compile(r"[+-]?\d+")
_DIGITS = r"(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"
_FLOAT = re.compile(rf"([+-]?)(?:(NaN|Infinity)|({_DIGITS})[fFdD]?)", re.ASCII)
_HEX = re.compile(
    r"([+-]?0[xX](?:[0-9a-fA-F]+\.?[0-9a-fA-F]*|\.[0-9a-fA-F]+)[pP][+-]?\d+)[fFdD]?", re.ASCII
)
_DECIMAL = re.compile(rf"[+-]?{_DIGITS}")
_BLANK = "".join(map(chr, range(0x21)))
_NARROW_BITS = 32
_LONG_BITS = 64


def narrowed(value: int, bits: int) -> int:
    """The lowest *bits* of *value*, as a number with a sign."""
    half = 1 << (bits - 1)
    return ((value + half) & ((1 << bits) - 1)) - half


def truncated(value: float, bits: int) -> int:
    """*value* without its fraction, limited to 64 or 32 bits; where *bits* are fewer, the lowest of these."""
    if math.isnan(value):
        return 0
    half = 1 << (max(bits, _NARROW_BITS) - 1)
    whole = half if value == math.inf else -half if value == -math.inf else int(value)
    return narrowed(max(-half, min(whole, half - 1)), bits)


def parsed_int(text: str, bits: int) -> int:
    """The integer in *text*; raises ``ValueError`` if it is not one, or does not fit into *bits*."""
    if not _INT.fullmatch(text):
        raise ValueError(text)
    value = int(text)
    if narrowed(value, bits) != value:
        raise ValueError(text)
    return value


def parsed_float(text: str, bits: int) -> float:
    """The nearest number of 32 or 64 *bits* to *text*; raises ``ValueError`` if *text* is not a number."""
    trimmed = text.strip(_BLANK)
    plain = _FLOAT.fullmatch(trimmed)
    if plain:
        sign, special, digits = plain.groups()
        return _nearest(sign + (special or digits), bits)
    hexadecimal = _HEX.fullmatch(trimmed)
    if not hexadecimal:
        raise ValueError(text)
    return (
        as_single(_hex_value(hexadecimal[1]))
        if bits == _NARROW_BITS
        else _hex_value(hexadecimal[1])
    )


def parsed_decimal(text: str) -> Decimal:
    """*text* with all its digits; raises ``ValueError`` if it is not a number."""
    if not _DECIMAL.fullmatch(text):
        raise ValueError(text)
    return Decimal(text)


def as_single(value: float) -> float:
    """*value* rounded to 32 bits; an ``int`` of 64 bits is rounded only once, as in Java."""
    held = np.int64(narrowed(value, _LONG_BITS)) if isinstance(value, int) else np.float64(value)
    with np.errstate(over="ignore"):
        return float(held.astype(np.float32))


def decimal_int(value: Decimal, bits: int) -> int:
    """The lowest *bits*, at most 64, of *value* without its fraction."""
    exponent = value.as_tuple().exponent
    if isinstance(exponent, str) or exponent >= _LONG_BITS or value.adjusted() < 0:
        # The 64 lowest bits of 10^64 are zeros; a large exponent would take all memory.
        return 0
    return narrowed(int(value), bits)


def decimal_float(value: Decimal, bits: int) -> float:
    """The nearest number of 32 or 64 *bits* to *value*."""
    return _nearest(str(value), bits)


def _nearest(text: str, bits: int) -> float:
    value = float(text)
    if bits != _NARROW_BITS or not math.isfinite(value):
        return value
    # Not by way of 64 bits, which would round twice.
    return pa.scalar(text, pa.utf8()).cast(pa.float32()).as_py()


def _hex_value(text: str) -> float:
    try:
        return float.fromhex(text)
    except OverflowError:
        return -math.inf if text.startswith("-") else math.inf
