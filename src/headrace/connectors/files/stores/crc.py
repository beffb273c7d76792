"""CRC-32C and CRC-64/NVME, which stores give with objects: in numpy, about as fast as MD5 is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any, Final

import numpy as np
import numpy.typing as npt

_Remainders = npt.NDArray[Any]

# Remainders are linear, so that many stretches of a block, its lanes, are divided at once and joined
# afterwards. Short lanes take few steps, and many of them fill the processor.
_LANE_BYTES = 128
_BLOCK_BYTES = 1024 * 1024
_STEP_BITS = 16


@dataclass(frozen=True)
class Polynomial:
    """A polynomial of *bits*, as *coefficients* whose lowest bit is the highest power."""

    bits: int
    coefficients: int

    @property
    def size(self) -> int:
        """The bytes of a remainder."""
        return self.bits // 8

    @cached_property
    def dtype(self) -> np.dtype[Any]:
        """Holds a remainder."""
        return np.dtype(f"u{self.size}")

    @cached_property
    def steps(self) -> _Remainders:
        """What the lowest 16 bits of a remainder turn into."""
        found = np.arange(1 << _STEP_BITS, dtype=self.dtype)
        for _ in range(_STEP_BITS):
            found = np.where(
                found & 1, (found >> 1) ^ self.dtype.type(self.coefficients), found >> 1
            )
        return found


CRC32C: Final = Polynomial(32, 0x82F63B78)
CRC64NVME: Final = Polynomial(64, 0x9A6C9329AC4BC9B5)


class Crc:
    """The checksum of the bytes that were given so far, to be used as objects of :mod:`hashlib` are.

    Keeps a mebibyte: numpy is fast for many bytes at once.
    """

    def __init__(self, polynomial: Polynomial) -> None:
        self._polynomial = polynomial
        self._ones = (1 << polynomial.bits) - 1
        self._remainder = self._ones
        self._waiting = bytearray()

    def update(self, data: bytes | memoryview) -> None:
        """Take in the next bytes."""
        view = memoryview(data).cast("B")
        while view:
            room = _BLOCK_BYTES - len(self._waiting)
            self._waiting += view[:room]
            view = view[room:]
            if len(self._waiting) == _BLOCK_BYTES:
                self._divide()

    def digest(self) -> bytes:
        """The checksum, in the order of bytes that stores give it in."""
        self._divide()
        return (self._remainder ^ self._ones).to_bytes(self._polynomial.size, "big")

    def copy(self) -> Crc:
        """One that goes on by itself."""
        copied = Crc(self._polynomial)
        copied._remainder = self._remainder
        copied._waiting = self._waiting.copy()
        return copied

    def _divide(self) -> None:
        data, self._waiting = self._waiting, bytearray()
        divide = _of_many if len(data) >= self._polynomial.size else _of_few
        self._remainder = divide(self._polynomial, self._remainder, data)


def _of_few(polynomial: Polynomial, remainder: int, data: bytearray) -> int:
    for byte in data:
        remainder ^= byte
        for _ in range(8):
            remainder = (remainder >> 1) ^ (polynomial.coefficients if remainder & 1 else 0)
    return remainder


def _of_many(polynomial: Polynomial, remainder: int, data: bytearray) -> int:
    """Of a block at most, and of as many bytes as a remainder has at least."""
    lanes = 1 << ((len(data) - 1) // _LANE_BYTES).bit_length()
    # Zeros before all else leave nothing behind.
    padded = np.zeros(lanes * _LANE_BYTES, np.uint8)
    block = padded[-len(data) :]
    block[:] = np.frombuffer(data, np.uint8)
    # A remainder is carried on by adding it to the bytes that follow.
    carried = remainder.to_bytes(polynomial.size, "little")
    block[: polynomial.size] ^= np.frombuffer(carried, np.uint8)
    steps = np.ascontiguousarray(padded.view("<u2").reshape(lanes, -1).T)
    remainders = _divided(polynomial, steps)
    for tables in _joins(polynomial):
        if len(remainders) == 1:
            break
        remainders = _behind(remainders[0::2], tables) ^ remainders[1::2]
    return int(remainders[0])


def _divided(polynomial: Polynomial, steps: npt.NDArray[np.uint16]) -> _Remainders:
    """The remainder of each lane; *steps* are the 16 bits of all lanes that come first, second ..."""
    remainders = np.zeros(steps.shape[1], polynomial.dtype)
    places = np.empty(len(remainders), np.intp)
    found = np.empty_like(remainders)
    for column in steps:
        places[:] = remainders.astype(np.uint16) ^ column
        np.take(polynomial.steps, places, out=found, mode="wrap")
        remainders >>= _STEP_BITS
        remainders ^= found
    return remainders


def _behind(remainders: _Remainders, tables: _Remainders) -> _Remainders:
    """What *remainders* are behind as many zeros as *tables* were made for."""
    found = np.zeros_like(remainders)
    for number, table in enumerate(tables):
        found ^= table[(remainders >> (8 * number)) & 0xFF]
    return found


@cache
def _joins(polynomial: Polynomial) -> Sequence[_Remainders]:
    """The tables of :func:`_behind` for a lane, for two, for four, up to half a block."""
    # What becomes of each bit alone says what becomes of all.
    bits = np.left_shift(
        polynomial.dtype.type(1), np.arange(polynomial.bits, dtype=polynomial.dtype)
    )
    for _ in range(_LANE_BYTES * 8 // _STEP_BITS):
        bits = polynomial.steps[bits & 0xFFFF] ^ (bits >> _STEP_BITS)
    found = list[_Remainders]()
    for _ in range((_BLOCK_BYTES // _LANE_BYTES).bit_length() - 1):
        found.append(_tables(bits))
        bits = _behind(bits, found[-1])
    return found


def _tables(bits: _Remainders) -> _Remainders:
    """For each byte of a remainder, what its 256 values turn into; *bits* are what each bit turns into."""
    found = np.zeros((len(bits) // 8, 256), bits.dtype)
    for number, bit in enumerate(bits):
        table, value = found[number // 8], 1 << number % 8
        table[value : 2 * value] = table[:value] ^ bit
    return found
