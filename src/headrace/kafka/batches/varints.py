"""Integers in variable length, zigzag coded, as the records of a batch have them, and pieces of bytes: many at once.

Seven bits in each byte, the lowest first; the highest bit of a byte says that another follows.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

IntArray = NDArray[np.integer]
Int64Array = NDArray[np.int64]

_LOW: Final = np.uint8(0x7F)
_MORE: Final = 0x80
_ONE: Final = np.uint8(1)
_LONGEST_BYTES: Final = 10
VIEW: Final = np.dtype([("size", "<i4"), ("prefix", "<i4"), ("buffer", "<i4"), ("at", "<i4")])
"""What Arrow has of a piece of bytes in an array of views."""
INLINE_BYTES: Final = 12
"""Pieces of no more bytes lie in their view itself, behind the size."""


def scalar(octets: bytes | memoryview, at: int) -> tuple[int, int]:
    """The integer at *at*, and the place behind it.

    Raises ``ValueError`` when the bytes end within it, or it has more than 64 bits.
    """
    number = 0
    for index, octet in enumerate(octets[at : at + _LONGEST_BYTES]):
        number |= (octet & (_MORE - 1)) << (7 * index)
        if octet < _MORE:
            number &= (1 << 64) - 1
            return (number >> 1) ^ -(number & 1), at + index + 1
    raise ValueError("an integer in variable length does not end")


class Octets:
    """Bytes out of which integers and pieces are taken at many places at once."""

    def __init__(self, buffer: memoryview) -> None:
        self.buffer = buffer
        self._octets = np.frombuffer(buffer, np.uint8)

    def integers(self, at: Int64Array) -> tuple[Int64Array, Int64Array]:
        """The integers at *at*, and the places behind them.

        What would be read behind the end of the bytes is of any value. An integer that does not end within ten bytes ends
        behind all bytes.
        """
        low, high = self._at(at), self._at(at + 1)
        second = low >> 7
        number = (low & _LOW).astype(np.uint16) | (((high & _LOW) * second).astype(np.uint16) << 7)
        signed = (number >> 1).view(np.int16) ^ -(number & 1).view(np.int16)
        found, behind = signed.astype(np.int64), at + (second + _ONE)
        longer = np.flatnonzero(low & high & _MORE)
        if len(longer):
            found[longer], behind[longer] = self._longer(number[longer], behind[longer])
        return found, behind

    def _longer(self, number: IntArray, at: Int64Array) -> tuple[Int64Array, Int64Array]:
        """Integers whose first fourteen bits are *number*, and the others at *at*."""
        found, behind = number.astype(np.uint64), at.copy()
        rows = np.arange(len(at))
        for index in range(2, _LONGEST_BYTES):
            octets = self._at(behind[rows])
            found[rows] |= (octets & _LOW).astype(np.uint64) << np.uint64(7 * index)
            behind[rows] += 1
            rows = rows[octets >= _MORE]
            if not len(rows):
                break
        behind[rows] = len(self._octets) + 1
        return (found >> 1).view(np.int64) ^ -(found & 1).view(np.int64), behind

    def pieces(self, at: Int64Array, sizes: Int64Array) -> pa.BinaryArray:
        """The bytes from each of *at* on, as many as *sizes* says; null where that is negative.

        No piece begins before the end of another that comes earlier.
        """
        present = sizes >= 0
        if not present.any():
            return pa.nulls(len(at), pa.binary())
        found = (
            self._long_pieces(at, sizes)
            if sizes[present].min() > INLINE_BYTES
            else self._any_pieces(at, sizes)
        )
        if present.all():
            return found
        valid = pa.py_buffer(np.packbits(present, bitorder="little"))
        return pa.Array.from_buffers(pa.binary(), len(at), [valid, *found.buffers()[1:]])

    def _any_pieces(self, at: Int64Array, sizes: Int64Array) -> pa.BinaryArray:
        # Arrow copies faster than an index of each byte would: every second of these pieces is a gap.
        borders = np.empty(2 * len(at), np.int32)
        borders[::2] = at
        borders[1::2] = at + np.maximum(sizes, 0)
        buffers = [None, pa.py_buffer(borders), pa.py_buffer(self.buffer)]
        both = pa.Array.from_buffers(pa.binary(), len(borders) - 1, buffers)
        return both.take(pa.array(np.arange(0, len(borders), 2, dtype=np.int32)))

    def _long_pieces(self, at: Int64Array, sizes: Int64Array) -> pa.BinaryArray:
        # Of views Arrow adds the sizes up first, and copies once. The prefix in a view is for comparisons only.
        views = np.zeros(len(at), VIEW)
        views["size"] = np.maximum(sizes, 0)
        views["at"] = at
        buffers = [None, pa.py_buffer(views), pa.py_buffer(self.buffer)]
        return pa.Array.from_buffers(pa.binary_view(), len(at), buffers).cast(pa.binary())

    def _at(self, at: Int64Array) -> NDArray[np.uint8]:
        return self._octets.take(at, mode="clip")
