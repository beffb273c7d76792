"""Numbers as Java converts, reads and writes them; single values and columns."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from decimal import Decimal
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

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
# From here on Java writes numbers with a power of ten, and below the other as well.
_FIRST_SCIENTIFIC: Final = 1e7
_LAST_SCIENTIFIC: Final = 1e-3


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
    if value == 0 or _LAST_SCIENTIFIC <= abs(value) < _FIRST_SCIENTIFIC:
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
        pc.greater_equal(size, _LAST_SCIENTIFIC),
        pc.less(size, _FIRST_SCIENTIFIC),
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
