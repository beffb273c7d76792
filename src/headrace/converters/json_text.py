"""Columns of plain values as columns of JSON text, without a Python object per row where it can be."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc

from headrace.connect.java_text import java_double, java_float
from headrace.converters.base64_text import base64_texts
from headrace.converters.columns import as_binary
from headrace.converters.json_escaping import escaped

# No pa.scalar: making one imports pandas, which takes a second and which an idle worker never needs.
_QUOTE = b'"'
_NOTHING = b""
_POINT_ZERO = b".0"


def json_strings(values: pa.Array) -> pa.BinaryArray:
    """Each of *values*, a column of text, as a JSON string with its quotes; nulls stay null."""
    return pc.binary_join_element_wise(_QUOTE, escaped(values), _QUOTE, _NOTHING)


def json_numbers(values: pa.Array) -> pa.BinaryArray:
    """Integers or booleans as JSON; nulls stay null."""
    return as_binary(values.cast(pa.utf8()))


def json_floats(values: pa.Array) -> pa.BinaryArray:
    """Floating-point numbers as Java writes them; what is no number becomes a JSON string."""
    told = java_floats(values)
    odd = pc.invert(pc.is_finite(values)).fill_null(False)  # noqa: FBT003 (the value filled in)
    quoted = pc.binary_join_element_wise(_QUOTE, told, _QUOTE, _NOTHING)
    return pc.if_else(odd, quoted, told) if pc.any(odd).as_py() else told


def json_bytes(values: pa.Array) -> pa.BinaryArray:
    """Bytes as JSON strings of base64; nulls stay null."""
    told = base64_texts(as_binary(values))
    return pc.binary_join_element_wise(_QUOTE, told, _QUOTE, _NOTHING)


def java_floats(values: pa.Array) -> pa.BinaryArray:
    """Floating-point numbers in their Java text form; nulls stay null."""
    text = as_binary(values.cast(pa.utf8()))
    whole = pc.equal(values, pc.trunc(values))
    if pc.any(whole).as_py():
        # Arrow writes 1 where Java writes 1.0.
        fraction = pc.if_else(whole, _POINT_ZERO, _NOTHING)
        text = pc.binary_join_element_wise(text, fraction, _NOTHING)
    size = pc.abs(values)
    usual = pc.or_(pc.and_(pc.greater_equal(size, 1e-3), pc.less(size, 1e7)), pc.equal(size, 0.0))
    rare = pc.invert(usual).fill_null(False)  # noqa: FBT003 (the value filled in)
    if not pc.any(rare).as_py():
        return text
    write: Callable[[float], str] = java_float if values.type == pa.float32() else java_double
    rows = pa.array([write(row).encode() for row in values.filter(rare).to_pylist()], pa.binary())
    return pc.replace_with_mask(text, rare, rows)
