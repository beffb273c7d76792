"""Values of many Avro records at once, out of the places at which they begin in the records' bytes.

See https://avro.apache.org/docs/1.12.0/specification/#binary-encoding for the forms. Int64Array are those of
whole values: a scan has been over them. What is unusual all the same raises ``ValueError``.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from headrace.formats.rows import Bytes, Int64Array

_LOW = 0x7F
_VARINT_BITS = 70


def integers(octets: Bytes, at: Int64Array) -> tuple[Int64Array, Int64Array]:
    """Integers in variable length, zigzag coded, and the places behind them."""
    octet = octets[at]
    found = (octet & _LOW).astype(np.uint64)
    ends = at + 1
    more = np.flatnonzero(octet > _LOW)
    for shift in range(7, _VARINT_BITS, 7):
        if not len(more):
            break
        octet = octets[ends[more]]
        found[more] |= (octet & _LOW).astype(np.uint64) << np.uint64(shift)
        ends[more] += 1
        more = more[octet > _LOW]
    if len(more):
        raise ValueError("a number is longer than 64 bits")
    return (found >> 1).astype(np.int64) ^ -(found & 1).astype(np.int64), ends


def pieces(octets: Bytes, starts: Int64Array, ends: Int64Array) -> pa.LargeBinaryArray:
    """The bytes from each of *starts* to its end; no piece begins before the end of another."""
    # Arrow copies faster than an index of each byte would: every second of these pieces is a gap.
    borders = np.zeros(2 * len(starts) + 1, np.int64)
    borders[1::2] = starts
    borders[2::2] = ends
    buffers = [None, pa.py_buffer(borders), pa.py_buffer(octets)]
    both = pa.Array.from_buffers(pa.large_binary(), len(borders) - 1, buffers)
    return both.take(pa.array(np.arange(1, len(borders), 2)))


def floats(octets: Bytes, at: Int64Array, kind: np.dtype[np.floating]) -> pa.Array:
    """Floating-point numbers of *kind*."""
    return pa.array(octets[at[:, None] + np.arange(kind.itemsize)].view(kind)[:, 0])


def booleans(octets: Bytes, at: Int64Array) -> pa.BooleanArray:
    """Truths; anything but 0 and 1 is unusual."""
    found = octets[at]
    if (found > 1).any():
        raise ValueError("a boolean is neither 0 nor 1")
    return pa.array(found.view(np.bool_))
