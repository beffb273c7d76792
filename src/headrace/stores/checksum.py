"""Checksums that a store gives with an object."""

from __future__ import annotations

import base64
import hashlib
import zlib
from collections.abc import Callable, Mapping
from functools import partial
from typing import Final, Protocol, Self, TypeAlias

from headrace.kafka.batches.checksums import crc32c

Data: TypeAlias = bytes | memoryview


class Digest(Protocol):
    """What :mod:`hashlib` makes, as far as it is needed here."""

    def update(self, data: Data, /) -> None:
        """Take in the next bytes."""
        ...

    def digest(self) -> bytes:
        """The checksum of the bytes so far."""
        ...

    def copy(self) -> Self:
        """One that goes on by itself."""
        ...


class Crc:
    """A checksum of *size* bytes, which *function* computes of data and of the checksum of what is before it."""

    def __init__(self, function: Callable[[Data, int], int], size: int, *, begun: int = 0) -> None:
        self._function = function
        self._size = size
        self._crc = begun

    def update(self, data: Data) -> None:
        """See :class:`Digest`."""
        self._crc = self._function(data, self._crc)

    def digest(self) -> bytes:
        """See :class:`Digest`."""
        return self._crc.to_bytes(self._size, "big")

    def copy(self) -> Crc:
        """See :class:`Digest`."""
        return Crc(self._function, self._size, begun=self._crc)


def _crc64nvme(data: Data, before: int) -> int:
    # Of the extra for S3, which alone gives this checksum.
    from awscrt.checksums import crc64nvme  # noqa: PLC0415

    return crc64nvme(data, before)  # pyright: ignore[reportArgumentType] (it takes any buffer)


_HASHES = ("md5", "sha1", "sha256", "sha512")
_DIGESTS: Final[Mapping[str, Callable[[], Digest]]] = {
    "crc32": partial(Crc, zlib.crc32, 4),
    "crc32c": partial(Crc, crc32c, 4),
    "crc64nvme": partial(Crc, _crc64nvme, 8),
    **{kind: partial(hashlib.new, kind, usedforsecurity=False) for kind in _HASHES},
}


class Checksum:
    """Compares the bytes of a whole object, given in order, with what the store has computed.

    *kind* is a name of ``_DIGESTS``.
    """

    def __init__(self, kind: str, expected: bytes) -> None:
        self.kind = kind
        self._expected = expected
        self._digest = _DIGESTS[kind]()

    @property
    def expected(self) -> str:
        """The store's, in base64, as stores write it."""
        return base64.b64encode(self._expected).decode()

    @property
    def found(self) -> str:
        """Of the bytes so far, in base64."""
        return base64.b64encode(self._digest.digest()).decode()

    @property
    def matches(self) -> bool:
        """Whether the bytes so far are the object."""
        return self._digest.digest() == self._expected

    def update(self, data: Data) -> None:
        """Take in the next bytes."""
        self._digest.update(data)

    def copy(self) -> Checksum:
        """One that goes on by itself behind the same bytes."""
        copied = Checksum(self.kind, self._expected)
        copied._digest = self._digest.copy()
        return copied

    def again(self) -> Checksum:
        """One that begins before the first byte."""
        return Checksum(self.kind, self._expected)
