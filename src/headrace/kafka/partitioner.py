"""Which partition Java's default partitioner chooses for a key. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

Int64Array = NDArray[np.int64]
_UInt32s = NDArray[np.uint32]

# A step for all keys costs as much as so many bytes of one alone.
_MUCH_BYTES: Final = 64
_FEW_KEYS: Final = 16
_WORD: Final = 4
_BITS = 0xFFFFFFFF
_SEED = 0x9747B28C
_FACTOR = 0x5BD1E995


def java_partition(key: bytes, partitions: int) -> int:
    """The partition of *key* in a topic with that many *partitions*, as Kafka's Java clients choose it."""
    return (murmur2(key) & 0x7FFFFFFF) % partitions


def murmur2(key: bytes) -> int:
    """The unsigned hash of *key* with Kafka's seed (``Utils.murmur2`` in Java)."""
    whole = len(key) & ~3
    hashed = _SEED ^ len(key)
    for start in range(0, whole, 4):
        word = _times(int.from_bytes(key[start : start + 4], "little"))
        hashed = _times(hashed) ^ _times(word ^ (word >> 24))
    if whole < len(key):
        hashed = _times(hashed ^ int.from_bytes(key[whole:], "little"))
    hashed = _times(hashed ^ (hashed >> 13))
    return hashed ^ (hashed >> 15)


def _times(word: int) -> int:
    return word * _FACTOR & _BITS


def java_partitions(keys: pa.BinaryArray, partitions: int) -> Int64Array:
    """The partition of each of *keys*, none of which is null."""
    return (murmur2s(keys) & np.uint32(0x7FFFFFFF)).astype(np.int64) % partitions


def murmur2s(keys: pa.BinaryArray) -> _UInt32s:
    """The hash of each of *keys*, none of which is null."""
    octets, begins, sizes = _octets(keys)
    alone = _much_longer(sizes)
    sizes[alone] = 0
    hashes = _hashes(octets, begins, sizes)
    for row in alone.tolist():
        hashes[row] = murmur2(keys[row].as_py())
    return hashes


def _much_longer(sizes: Int64Array) -> Int64Array:
    """The few that would be left alone when all words of the others are done."""
    if len(sizes) <= _FEW_KEYS:
        return np.arange(len(sizes))
    others = np.partition(sizes, -_FEW_KEYS)[-_FEW_KEYS]
    return np.flatnonzero(sizes > others + _MUCH_BYTES)


def _hashes(octets: NDArray[np.uint8], begins: Int64Array, sizes: Int64Array) -> _UInt32s:
    """The hashes of all keys, a word of each at a time."""
    hashes = np.uint32(_SEED) ^ sizes.astype(np.uint32)
    factor = np.uint32(_FACTOR)
    for rows, words in _words(octets, begins, sizes // _WORD):
        mixed = words * factor
        mixed ^= mixed >> np.uint32(24)
        hashes[rows] = hashes[rows] * factor ^ mixed * factor
    rests = sizes % _WORD
    ends = begins + sizes - rests
    for index in range(_WORD - 1):
        rows = np.flatnonzero(rests > index)
        hashes[rows] ^= octets[ends[rows] + index].astype(np.uint32) << np.uint32(8 * index)
    rows = np.flatnonzero(rests)
    hashes[rows] *= factor
    hashes ^= hashes >> np.uint32(13)
    hashes *= factor
    return hashes ^ (hashes >> np.uint32(15))


def _octets(keys: pa.BinaryArray) -> tuple[NDArray[np.uint8], Int64Array, Int64Array]:
    """The bytes of *keys*, where each key begins, and its size."""
    _, offsets, content = keys.buffers()
    kind = np.int64 if pa.types.is_large_binary(keys.type) else np.int32
    assert offsets is not None, "there is a key"
    borders = np.frombuffer(offsets, kind)[keys.offset : keys.offset + len(keys) + 1]
    borders = borders.astype(np.int64)
    return np.frombuffer(content or b"", np.uint8), borders[:-1], np.diff(borders)


def _words(
    octets: NDArray[np.uint8], begins: Int64Array, counts: Int64Array
) -> Iterator[tuple[Int64Array | slice, _UInt32s]]:
    """The first word of all keys that have one, then the second, and so on."""
    # Arrow's buffers have no order of words, and a view of them needs none.
    all_words = np.ndarray(
        (max(0, len(octets) - _WORD + 1),), "<u4", octets, strides=(1,) if len(octets) else None
    )
    rows: Int64Array | slice = slice(None)
    at, left = begins, counts
    while left.size and left.max() > 0:
        if left.min() == 0:
            some = np.flatnonzero(left)
            rows = some if isinstance(rows, slice) else rows[some]
            at, left = at[some], left[some]
        yield rows, all_words[at]
        at, left = at + _WORD, left - 1
