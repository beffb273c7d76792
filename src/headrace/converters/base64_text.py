"""Columns of bytes as base64, all rows in one call."""

from __future__ import annotations

import binascii

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

_GROUP = 3
_CHARACTERS = 4
_PADDING = ord("=")


def base64_texts(values: pa.BinaryArray) -> pa.BinaryArray:
    """Each of *values* in base64 with the standard alphabet, padded; nulls stay null.

    Rows are laid out with zeros up to a multiple of three bytes, so that the base64 of all of them is that
    of each, one behind the other; then only their last characters have to become padding.
    """
    offsets, content = values.buffers()[1:]
    if not len(values) or offsets is None:
        return values
    first = values.offset
    starts = np.frombuffer(offsets, np.int32)[first : first + len(values) + 1].astype(np.int64)
    lengths = np.diff(starts)
    groups = -(-lengths // _GROUP)
    borders = np.concatenate(([0], np.cumsum(groups)))
    padded = np.zeros(int(borders[-1]) * _GROUP, np.uint8)
    octets = np.frombuffer(content or b"", np.uint8)[starts[0] : starts[-1]]
    moved = np.repeat(borders[:-1] * _GROUP - (starts[:-1] - starts[0]), lengths)
    padded[np.arange(len(octets)) + moved] = octets
    text = np.frombuffer(bytearray(binascii.b2a_base64(padded.data, newline=False)), np.uint8)
    ends = borders[1:] * _CHARACTERS
    text[ends[lengths % _GROUP != 0] - 1] = _PADDING
    text[ends[lengths % _GROUP == 1] - 2] = _PADDING
    # 64-bit offsets, so that Arrow and not a wrapped number says when 2 GB are exceeded.
    column = pa.Array.from_buffers(
        pa.large_binary(),
        len(values),
        [None, pa.py_buffer(borders * _CHARACTERS), pa.py_buffer(text)],
    ).cast(pa.binary())
    return pc.if_else(values.is_valid(), column, None) if values.null_count else column
