"""Integers in variable length, zigzag coded, as the records of a batch have them: one, or a column of them at once.

Seven bits in each byte, the lowest first; the highest bit of a byte says that another follows.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

Bytes = NDArray[np.uint8]
Int64Array = NDArray[np.int64]
UInt64Array = NDArray[np.uint64]

_MORE: Final = 0x80
_LONGEST_BYTES: Final = 10
_WORD_BYTES: Final = 8


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
