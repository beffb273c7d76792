"""A column of text with JSON's escapes, made from the bytes of the whole column and not row by row."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import reduce
from typing import Final

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from headrace.connect.json_document import json_quoted
from headrace.converters.columns import as_binary, is_text

Starts = npt.NDArray[np.int64]
"""Where each row begins in the bytes of a column, and where the last one ends."""

_QUOTE, _BACKSLASH = ord('"'), ord("\\")
_FIRST_CONTROL_FREE = 0x20
_FIRST_OF_FOUR_BYTES = 0xF0
_FOUR_BYTES = re.compile(rb"[\xf0-\xf4][\x80-\xbf]{3}")
# Two escapes of six bytes stand for the four bytes of a character outside the basic plane.
_PAIR_GROWTH = 12 - 4
_MOST_BYTES = 2**31 - 1

_ESCAPES: Final = {
    code: json_quoted(chr(code))[1:-1].encode()
    for code in (_BACKSLASH, _QUOTE, *range(_FIRST_CONTROL_FREE))
}
_ENCODER: Final = msgspec.json.Encoder()
_WRITTEN_ALIKE: Final = frozenset(
    code for code, escape in _ESCAPES.items() if _ENCODER.encode(chr(code)) == b'"' + escape + b'"'
)
"""Characters that Python's json escapes as Java does: all but control characters with a letter in their number."""


def escaped(values: pa.Array) -> pa.BinaryArray:
    """A column of text with JSON's escapes, without quotes. Text that needs none is not copied.

    An escape has a fixed length, so the number of escaped characters before a row's beginning says how far
    that row moves.
    """
    if not is_text(values.type):
        raise TypeError(f"Only text is escaped, not {values.type}.")
    binary = as_binary(values)
    validity = pc.is_valid(binary) if binary.null_count else None
    starts, content = _starts_and_content(binary)
    if validity is not None and _has_four_bytes(content):
        # The bytes under a null need not be text, and need not end where its row does.
        starts, content = _starts_and_content(pc.fill_null(binary, b""))
    moved, grown = _grown(starts, content)
    if grown is content:
        return binary
    column = _column(moved, grown)
    return column if validity is None else pc.if_else(validity, column, None)


def _column(starts: Starts, content: bytes | memoryview) -> pa.BinaryArray:
    """The column whose rows begin at *starts*; raises Arrow's error when 2 GB are exceeded."""
    fits = len(content) <= _MOST_BYTES
    kind = pa.binary() if fits else pa.large_binary()
    offsets = starts.astype(np.int32) if fits else starts
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(content)]
    # Casting to the same type costs nothing; to another one, a copy.
    return pa.Array.from_buffers(kind, len(starts) - 1, buffers).cast(pa.binary())


def _starts_and_content(binary: pa.BinaryArray) -> tuple[Starts, memoryview]:
    _, offsets, content = binary.buffers()
    if not len(binary) or offsets is None or content is None:
        return np.zeros(len(binary) + 1, np.int64), memoryview(b"")
    first, count = binary.offset, len(binary) + 1
    starts = np.frombuffer(offsets, np.int32)[first : first + count].astype(np.int64)
    return starts - starts[0], memoryview(content)[starts[0] : starts[-1]]


def _grown(starts: Starts, content: memoryview) -> tuple[Starts, bytes | memoryview]:
    """Where each row starts after escaping, and the escaped bytes; *content* itself if nothing changed."""
    octets = np.frombuffer(content, np.uint8)
    moved, grown = starts, content
    codes = _codes_to_escape(octets)
    for length in sorted({len(_ESCAPES[code]) for code in codes}):
        marked = [octets == code for code in codes if len(_ESCAPES[code]) == length]
        moved = moved + _count_before(reduce(np.logical_or, marked), starts) * (length - 1)
    if codes:
        grown = _with_escapes(content, codes)
    if _has_four_bytes(content):
        moved = moved + _count_before(octets >= _FIRST_OF_FOUR_BYTES, starts) * _PAIR_GROWTH
        grown = _FOUR_BYTES.sub(_surrogates, grown)
    return moved, grown


def _has_four_bytes(content: memoryview) -> bool:
    """Whether there may be a character outside the basic plane."""
    octets = np.frombuffer(content, np.uint8)
    return octets.size > 0 and bool(octets.max() >= _FIRST_OF_FOUR_BYTES)


def _codes_to_escape(octets: npt.NDArray[np.uint8]) -> list[int]:
    """The one-byte characters in the content that need an escape; the backslash comes first, since escapes contain it."""
    codes = [code for code in (_BACKSLASH, _QUOTE) if (octets == code).any()]
    if octets.size and octets.min() < _FIRST_CONTROL_FREE:
        codes += np.unique(octets[octets < _FIRST_CONTROL_FREE]).tolist()
    return codes


def _with_escapes(content: memoryview, codes: Sequence[int]) -> bytes | memoryview:
    """*content* with escapes in place of *codes*, which are all that need one."""
    if _WRITTEN_ALIKE.issuperset(codes):
        try:
            return memoryview(_ENCODER.encode(str(content, "utf-8")))[1:-1]
        except UnicodeDecodeError:
            # The bytes under a null need not be text.
            pass
    grown = bytes(content)
    for code in codes:
        grown = grown.replace(bytes([code]), _ESCAPES[code])
    return grown


def _count_before(marked: npt.NDArray[np.bool_], starts: Starts) -> Starts:
    """How many of *marked* precede each of *starts*, of which the first is 0 and the last the end."""
    counts = np.zeros(len(starts), np.int64)
    lengths = np.diff(starts)
    filled = np.flatnonzero(lengths)
    narrowest = np.min_scalar_type(lengths.max())
    # Sums from each of the given places to the next; it knows no empty rows.
    counts[filled + 1] = np.add.reduceat(marked.view(np.uint8), starts[filled], dtype=narrowest)
    return np.cumsum(counts)


def _surrogates(match: re.Match[bytes]) -> bytes:
    return json_quoted(match.group().decode())[1:-1].encode()
