"""Columns of plain values as columns of JSON text, without a Python object per row where it can be."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from headrace.connect.java_floats import java_floats
from headrace.converters.base64_text import base64_texts
from headrace.converters.columns import as_binary
from headrace.converters.json_escaping import escaped

# No pa.scalar: making one imports pandas, which takes a second and which an idle worker never needs.
_QUOTE = b'"'
_NOTHING = b""


def json_strings(values: pa.Array) -> pa.BinaryArray:
    """Each of *values*, a column of text, as a JSON string with its quotes; nulls stay null."""
    return pc.binary_join_element_wise(_QUOTE, escaped(values), _QUOTE, _NOTHING)


def json_numbers(values: pa.Array) -> pa.BinaryArray:
    """Integers or booleans as JSON; nulls stay null."""
    return as_binary(values.cast(pa.utf8()))


def json_floats(values: pa.Array) -> pa.BinaryArray:
    """Floating-point numbers as Java writes them; what is no number becomes a JSON string."""
    told = as_binary(java_floats(values))
    odd = pc.invert(pc.is_finite(values)).fill_null(False)  # noqa: FBT003 (the value filled in)
    quoted = pc.binary_join_element_wise(_QUOTE, told, _QUOTE, _NOTHING)
    return pc.if_else(odd, quoted, told) if pc.any(odd).as_py() else told


def json_bytes(values: pa.Array) -> pa.BinaryArray:
    """Bytes as JSON strings of base64; nulls stay null."""
    told = base64_texts(as_binary(values))
    return pc.binary_join_element_wise(_QUOTE, told, _QUOTE, _NOTHING)
