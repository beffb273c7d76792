"""CRC-32C, the checksum of version 2 batches."""

from __future__ import annotations

from functools import cache
from typing import Final

import google_crc32c
import numpy as np

Bytes = bytes | bytearray | memoryview

_POLYNOMIAL: Final = 0x82F63B78
_BITS: Final = 32
_Table = tuple[int, ...]


def crc32c(data: Bytes, before: int = 0) -> int:
    """The checksum of *data*, behind bytes whose checksum is *before*; nothing is copied."""
    # The library takes no memoryview, but arrays. Both of its functions give the same for bytes that begin.
    return google_crc32c.extend(before, np.frombuffer(data, np.uint8))


def crc32c_of_replaced(crc: int, old: Bytes, new: Bytes, behind: int) -> int:
    """The checksum of bytes that had *crc*, once *new* is at their beginning instead of *old*, which is as long.

    The *behind* bytes after them are not looked at: if *crc* did not fit to them, what is returned does not either.
    """
    # A checksum is linear: what the beginning adds to it is moved on by each byte behind.
    return crc ^ _moved(crc32c(old) ^ crc32c(new), behind)


def _moved(crc: int, count: int) -> int:
    """What becomes of *crc* behind which *count* bytes 0 come."""
    power = 0
    while count:
        if count & 1:
            first, second, third, fourth = _tables(power)
            crc = (
                first[crc & 0xFF]
                ^ second[crc >> 8 & 0xFF]
                ^ third[crc >> 16 & 0xFF]
                ^ fourth[crc >> 24]
            )
        count >>= 1
        power += 1
    return crc


@cache
def _tables(power: int) -> tuple[_Table, _Table, _Table, _Table]:
    """What becomes of each byte of a checksum behind which 2 to the *power* bytes 0 come."""
    columns = _columns(power)
    found: list[_Table] = []
    for begin in range(0, _BITS, 8):
        table = [0]
        for column in columns[begin : begin + 8]:
            table += [each ^ column for each in table]
        found.append(tuple(table))
    return found[0], found[1], found[2], found[3]


@cache
def _columns(power: int) -> _Table:
    """As ``_tables``, for each bit."""
    if power:
        return tuple(
            _moved(_moved(1 << bit, 1 << power - 1), 1 << power - 1) for bit in range(_BITS)
        )
    found: list[int] = []
    for bit in range(_BITS):
        crc = 1 << bit
        for _ in range(8):
            crc = crc >> 1 ^ (_POLYNOMIAL if crc & 1 else 0)
        found.append(crc)
    return tuple(found)
