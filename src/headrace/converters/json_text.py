"""Columns of plain values as columns of JSON text, without a Python object per row where it can be."""

from __future__ import annotations

import re

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from headrace.connect.java_floats import java_floats
from headrace.connect.java_text import json_quoted
from headrace.converters.base64_text import base64_texts
from headrace.converters.columns import as_binary, is_text

# No pa.scalar: making one imports pandas, which takes a second and which an idle worker never needs.
_QUOTE = b'"'
_NOTHING = b""
_FIRST_CONTROL_FREE = 0x20
_FIRST_OF_FOUR_BYTES = 0xF0
_FOUR_BYTES = re.compile(rb"[\xf0-\xf4][\x80-\xbf]{3}")
# Two escapes of six bytes stand for the four bytes of a character outside the basic plane.
_PAIR_GROWTH = 12 - 4
_MOST_BYTES = 2**31 - 1


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


def escaped(values: pa.Array) -> pa.BinaryArray:
    """A column of text with JSON's escapes, without quotes. Text that needs none is not copied.

    Works on the bytes of the whole column: an escape has a fixed length, so the number of escaped
    characters before a row's beginning says how far that row moves.
    """
    if not is_text(values.type):
        raise TypeError(f"Only text is escaped, not {values.type}.")
    binary = as_binary(values)
    starts, content = _starts_and_content(binary)
    moved, grown = _grown(starts, content)
    if grown is content:
        return binary
    validity = pc.is_valid(binary) if binary.null_count else None
    column = _column(moved, grown)
    return column if validity is None else pc.if_else(validity, column, None)


def _column(starts: npt.NDArray[np.int64], content: bytes) -> pa.BinaryArray:
    """The column whose rows begin at *starts*; Arrow, and not a wrapped number, says when 2 GB are exceeded."""
    fits = len(content) <= _MOST_BYTES
    kind = pa.binary() if fits else pa.large_binary()
    offsets = starts.astype(np.int32) if fits else starts
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(content)]
    # Also where it fits the cast costs nothing, but a copy where the type is another.
    return pa.Array.from_buffers(kind, len(starts) - 1, buffers).cast(pa.binary())


def _starts_and_content(binary: pa.BinaryArray) -> tuple[npt.NDArray[np.int64], bytes]:
    _, offsets, content = binary.buffers()
    if not len(binary) or offsets is None or content is None:
        return np.zeros(len(binary) + 1, np.int64), b""
    first, count = binary.offset, len(binary) + 1
    starts = np.frombuffer(offsets, np.int32)[first : first + count].astype(np.int64)
    return starts - starts[0], memoryview(content)[starts[0] : starts[-1]].tobytes()


def _grown(starts: npt.NDArray[np.int64], content: bytes) -> tuple[npt.NDArray[np.int64], bytes]:
    """Where each row starts after escaping, and the escaped bytes; *content* itself if nothing changed."""
    octets = np.frombuffer(content, np.uint8)
    moved, grown = starts, content
    for code in _codes_to_escape(octets, content):
        escape = json_quoted(chr(code))[1:-1].encode()
        moved = moved + _count_before(octets == code, starts) * (len(escape) - 1)
        grown = grown.replace(bytes([code]), escape)
    if octets.size and octets.max() >= _FIRST_OF_FOUR_BYTES:
        moved = moved + _count_before(octets >= _FIRST_OF_FOUR_BYTES, starts) * _PAIR_GROWTH
        grown = _FOUR_BYTES.sub(_surrogates, grown)
    return moved, grown


def _codes_to_escape(octets: npt.NDArray[np.uint8], content: bytes) -> list[int]:
    """The characters of one byte that are there and need an escape; the backslash, which escapes, first."""
    present = [code for code in (ord("\\"), ord('"')) if bytes([code]) in content]
    if octets.size and octets.min() < _FIRST_CONTROL_FREE:
        present += [code for code in range(_FIRST_CONTROL_FREE) if bytes([code]) in content]
    return present


def _count_before(
    marked: npt.NDArray[np.bool_], starts: npt.NDArray[np.int64]
) -> npt.NDArray[np.int64]:
    return np.searchsorted(np.flatnonzero(marked), starts)


def _surrogates(match: re.Match[bytes]) -> bytes:
    return json_quoted(match.group().decode())[1:-1].encode()
