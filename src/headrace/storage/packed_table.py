"""Bytes by bytes, of which a million take little more memory than their own length. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

# None of these is in UTF-8.
_KEY, _VALUE, _END = b"\xff", b"\xfe", b"\xfd"
_ENTRY: Final = re.compile(rb"\xff([^\xfe]*)\xfe([^\xfd]*)\xfd")
# More would take longer to look through; fewer would waste memory, since all buckets grow all the time: half
# as many take a tenth more.
_ENTRIES_IN_BUCKET: Final = 8


class PackedTable:
    """A hash table whose buckets are one ``bytes`` each, entry behind entry.

    A Python object for each key and value, and a dictionary's place for them, would take twice the room of
    an offset. Buckets never change, only which of them a table has: so copies share them and cost little.
    Keys and values are UTF-8; a value may also hold the byte ``fe``.
    """

    def __init__(self) -> None:
        self._buckets = [b""]
        self._count = 0

    def __len__(self) -> int:
        return self._count

    @property
    def buckets(self) -> Sequence[bytes]:
        """What the entries lie in; the same bytes are the same entries."""
        return self._buckets

    def get(self, key: bytes) -> bytes | None:
        """The value of *key*."""
        bucket = self._buckets[hash(key) % len(self._buckets)]
        at = bucket.find(_KEY + key + _VALUE)
        if at < 0:
            return None
        start = at + len(key) + 2
        return bucket[start : bucket.index(_END, start)]

    def setdefault(self, key: bytes, value: bytes) -> bytes | None:
        """The value of *key*; where there is none it gets *value*, and this is ``None``."""
        found = self.get(key)
        if found is None:
            number = hash(key) % len(self._buckets)
            self._buckets[number] += b"".join((_KEY, key, _VALUE, value, _END))
            self._count += 1
            if self._count > _ENTRIES_IN_BUCKET * len(self._buckets):
                self._grow()
        return found

    def put(self, key: bytes, value: bytes) -> None:
        """Set the value of *key*."""
        self.remove(key)
        self.setdefault(key, value)

    def remove(self, key: bytes) -> None:
        """Forget *key*, if it is there."""
        number = hash(key) % len(self._buckets)
        bucket = self._buckets[number]
        at = bucket.find(_KEY + key + _VALUE)
        if at >= 0:
            self._buckets[number] = bucket[:at] + bucket[bucket.index(_END, at) + 1 :]
            self._count -= 1

    def items(self) -> Iterator[tuple[bytes, bytes]]:
        """All keys with their values, in no order."""
        for bucket in self._buckets:
            yield from _ENTRY.findall(bucket)

    def items_unlike(self, other: PackedTable | None) -> Iterator[tuple[bytes, bytes]]:
        """Those of ``items`` that *other* may not have, or not so; those that are left out it has."""
        if other is None or len(self._buckets) != len(other.buckets):
            yield from self.items()
            return
        for mine, theirs in zip(self._buckets, other.buckets, strict=True):
            if mine != theirs:
                yield from _ENTRY.findall(mine)

    def copy(self) -> PackedTable:
        """A table of its own with the same entries."""
        made = PackedTable()
        made._buckets, made._count = self._buckets.copy(), self._count
        return made

    def _grow(self) -> None:
        """Twice as many buckets: of each, some entries stay, and the others go to one of the new ones."""
        half = len(self._buckets)
        self._buckets += [b""] * half
        for number in range(half):
            kept, moved = list[bytes](), list[bytes]()
            for entry in _ENTRY.finditer(self._buckets[number]):
                stays = hash(entry[1]) % len(self._buckets) == number
                (kept if stays else moved).append(entry[0])
            self._buckets[number], self._buckets[number + half] = b"".join(kept), b"".join(moved)
