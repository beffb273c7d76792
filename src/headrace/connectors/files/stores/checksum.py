"""Checksums that a store gives with an object."""

from __future__ import annotations

import hashlib
import zlib


class Checksum:
    """Compares the bytes of a whole object, given in order, with what the store has computed."""

    def __init__(self, kind: str, expected: bytes) -> None:
        self.kind = kind
        self._expected = expected
        self._crc = 0
        self._hash = None if kind == "crc32" else hashlib.new(kind, usedforsecurity=False)

    def update(self, data: bytes) -> None:
        """Take in the next bytes."""
        if self._hash is None:
            self._crc = zlib.crc32(data, self._crc)
        else:
            self._hash.update(data)

    def matches(self) -> bool:
        """Whether the bytes so far are the object."""
        found = self._crc.to_bytes(4, "big") if self._hash is None else self._hash.digest()
        return found == self._expected
