"""Columns of decimals as the bytes that Connect stores them as."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

_SIGN = 0x80


def unscaled_bytes(values: pa.Array) -> pa.BinaryArray:
    """The unscaled number of each decimal, as Java's ``BigInteger.toByteArray``; nulls stay null.

    That is two's complement, the highest byte first, in as few bytes as keep the sign.
    """
    width = values.type.byte_width
    stored = np.frombuffer(values.buffers()[1] or b"", np.uint8)
    start = values.offset * width
    octets = stored[start : start + len(values) * width].reshape(-1, width)[:, ::-1]
    fill = np.where(octets[:, 0] >= _SIGN, 0xFF, 0).astype(np.uint8)
    needed = octets != fill[:, None]
    needed[:, -1] = True
    leading = needed.argmax(axis=1)
    # The highest bit of the first byte is the sign: one more byte where the number has set it otherwise.
    leading -= (octets[np.arange(len(octets)), leading] ^ fill) >= _SIGN
    content = octets[np.arange(width) >= leading[:, None]]
    borders = np.concatenate(([0], np.cumsum(width - leading))).astype(np.int32)
    column = pa.Array.from_buffers(
        pa.binary(), len(values), [None, pa.py_buffer(borders), pa.py_buffer(content)]
    )
    return pc.if_else(values.is_valid(), column, None) if values.null_count else column


def widened(values: pa.Array, unscaled: pa.BinaryArray, size: int) -> pa.BinaryArray:
    """*unscaled*, the bytes of *values*, in *size* bytes each; what needs more is left as it is."""
    is_negative = pc.less(values, pa.scalar(0, values.type))
    fill = pc.if_else(is_negative, pa.scalar(b"\xff" * size), pa.scalar(b"\x00" * size))
    padded = pc.binary_slice(pc.binary_join_element_wise(fill, unscaled, pa.scalar(b"")), -size)
    return pc.if_else(pc.less_equal(pc.binary_length(unscaled), size), padded, unscaled)
