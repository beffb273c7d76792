"""Which partition Java's default partitioner chooses for a key. Pure."""

from __future__ import annotations

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
