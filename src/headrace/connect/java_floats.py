"""Columns of floating-point numbers as Java writes them, to the byte, without a Python object per row; pure."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headrace.connect.java_text import (
    FIRST_SCIENTIFIC,
    LAST_SCIENTIFIC,
    java_double,
    java_float,
)

# What Arrow writes of a number: plain up to so many digits, otherwise with a power of ten.
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
    """Numbers that Java writes with a power of ten, and what is no number; none is null."""
    size = pc.abs(values)
    is_single = values.type == pa.float32()
    smallest = float(np.finfo(np.float32 if is_single else np.float64).tiny)
    normal = pc.and_(pc.is_finite(values), pc.greater_equal(size, smallest))
    if pc.all(normal).as_py():
        return _scientific(values)
    write: Callable[[float], str] = java_float if is_single else java_double
    odd = _invert(normal)
    alone = pa.array([write(row) for row in values.filter(odd).to_pylist()], pa.utf8())
    told = pc.replace_with_mask(pa.nulls(len(values), pa.utf8()), odd, alone)
    return pc.replace_with_mask(told, normal, _scientific(values.filter(normal)))


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
    behind = pc.utf8_slice_codeunits(digits, 1)
    return pc.binary_join_element_wise(
        sign,
        pc.utf8_slice_codeunits(digits, 0, 1),
        ".",
        pc.if_else(pc.equal(behind, _NOTHING), "0", behind),
        "E",
        pc.add(point, written).cast(pa.utf8()),
        _NOTHING,
    )


def _invert(chosen: pa.BooleanArray) -> pa.BooleanArray:
    """The others; null is none of them."""
    return pc.invert(chosen).fill_null(False)  # noqa: FBT003 (the value filled in)
