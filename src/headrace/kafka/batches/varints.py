"""Integers in variable length, zigzag coded, as the records of a batch have them: one, or a column of them at once.

Seven bits in each byte, the lowest first; the highest bit of a byte says that another follows.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

Int64Array = NDArray[np.int64]
UInt64Array = NDArray[np.uint64]

_MORE: Final = 0x80
_LONGEST_BYTES: Final = 10
_STOPS: Final = np.uint64(0x8080808080808080)
_TWO_MORE: Final = np.uint16(0x8080)


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
    """Bytes out of which numbers and pieces are taken at many places at once."""

    def __init__(self, buffer: memoryview) -> None:
        """*buffer* has at least eight bytes."""
        self.buffer = buffer
        # Overlapping numbers, one beginning at each byte: taking one takes all bytes of an integer together.
        self._words = _overlapping(buffer, "<u8")
        self._pairs = _overlapping(buffer, "<u2")

    def words(self, at: Int64Array) -> UInt64Array:
        """The eight bytes from each of *at* on, the first the lowest; zeros behind the end."""
        return _taken(self._words, at)

    def integers(self, at: Int64Array) -> tuple[Int64Array, Int64Array]:
        """The integers at *at*, and the places behind them.

        A number that does not end within ten bytes ends nowhere: the place behind it is after all bytes.
        """
        pairs = _taken(self._pairs, at)
        if ((pairs & _TWO_MORE) == _TWO_MORE).any():
            return self._long_integers(at)
        second = (pairs >> 7) & 1
        number = (pairs & 0x7F) | (((pairs >> 1) & 0x3F80) * second)
        return (number >> 1).astype(np.int64) ^ -(number & 1).astype(np.int64), at + 1 + second

    def _long_integers(self, at: Int64Array) -> tuple[Int64Array, Int64Array]:
        words = self.words(at)
        stops = ~words & _STOPS
        below = (stops & -stops) - np.uint64(1)
        number = words & below & ~_STOPS
        # Groups of seven bits move together: each of two, then each of two of these, then both.
        number = (number & 0x007F007F007F007F) | ((number & 0x7F007F007F007F00) >> 1)
        number = (number & 0x00003FFF00003FFF) | ((number & 0x3FFF00003FFF0000) >> 2)
        number = (number & 0x000000000FFFFFFF) | ((number & 0x0FFFFFFF00000000) >> 4)
        integers = (number >> 1).astype(np.int64) ^ -(number & 1).astype(np.int64)
        behind = at + ((np.bitwise_count(below) + 1) >> 3)
        for row in np.flatnonzero(stops == 0):
            try:
                integers[row], behind[row] = scalar(self.buffer, int(at[row]))
            except ValueError:
                integers[row], behind[row] = 0, len(self.buffer) + 1
        return integers, behind


def _overlapping(buffer: memoryview, kind: str) -> NDArray[np.unsignedinteger]:
    size = np.dtype(kind).itemsize
    return np.ndarray((len(buffer) - size + 1,), kind, buffer, strides=(1,))


def _taken(numbers: NDArray[np.unsignedinteger], at: Int64Array) -> NDArray[np.unsignedinteger]:
    last = len(numbers) - 1
    near = np.minimum(at, last)
    found = numbers[near]
    beyond = np.minimum(at - near, found.itemsize)
    return found >> (beyond << 3).astype(found.dtype) if beyond.any() else found
