"""Bytes of one object from a position on, whether it is compressed or not."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from headrace.connect.errors import RecordError
from headrace.formats.arrow_unpacker import ArrowUnpacker
from headrace.formats.compression import HEAD_BYTES, Compression, begins_like
from headrace.formats.members import MemberUnpacker
from headrace.formats.readable import Readable
from headrace.formats.snappy_unpacker import SnappyUnpacker
from headrace.formats.unpacking import (
    OUTPUT_BYTES,
    Bzip2Member,
    DamagedPackingError,
    GzipMember,
    XzMember,
)

__all__ = [
    "ByteStream",
    "Compression",
    "PackingDamage",
    "PlainStream",
    "SkippingStream",
    "UnpackedStream",
    "Unpacker",
    "open_stream",
    "packing_damage",
]


class ByteStream(Protocol):
    """The (unpacked) bytes of one object, once, in order."""

    def read_into(self, target: memoryview) -> int:
        """Fill *target*'s beginning and return how many bytes; 0 means the end, and only the end.

        Raises :class:`~headrace.connect.errors.RecordError` where packed bytes are damaged or cut off.
        """
        ...

    def close(self) -> None:
        """Close the object."""
        ...


class SkippingStream(ByteStream, Protocol):
    """One that can leave bytes out."""

    def skip(self, count: int) -> None:
        """Go on behind the next *count* bytes. Raises as :meth:`read_into`, also when there are fewer.

        Where bytes are not unpacked, that there are fewer shows only at the next reading.
        """
        ...


class Unpacker(Protocol):
    """Unpacks one object, in pieces of bounded size."""

    checked: int
    """How many of the bytes that came out are as they were packed; a checksum that comes later speaks of the others."""

    def unpack(self) -> bytes:
        """The next bytes, at least one; none at the end of a whole object.

        Raises :class:`~headrace.connect.errors.RecordError` for damaged data and for data that is cut
        off, and ``OSError`` when the store fails.
        """
        ...


_UNPACKERS: dict[Compression, Callable[[Readable], Unpacker]] = {
    Compression.GZIP: lambda raw: MemberUnpacker(raw, GzipMember),
    Compression.ZSTD: lambda raw: ArrowUnpacker(raw, "zstd"),
    Compression.BZIP2: lambda raw: MemberUnpacker(raw, Bzip2Member),
    Compression.XZ: lambda raw: MemberUnpacker(raw, XzMember),
    Compression.SNAPPY: SnappyUnpacker,
    Compression.LZ4: lambda raw: ArrowUnpacker(raw, "lz4"),
}


def open_stream(raw: Readable, compression: Compression, position: int) -> SkippingStream:
    """The bytes of *raw* from *position* of the unpacked object on. Owns *raw* from now on."""
    if compression is Compression.NONE:
        plain = PlainStream(raw)
        plain.go_to(position)
        return plain
    stream = UnpackedStream(raw, compression)
    stream.skip(position)
    return stream


@dataclass(frozen=True, slots=True, kw_only=True)
class PackingDamage:
    """What is wrong with the packing of an object: *error* may have spoilt all that is not among the first *sound* bytes."""

    error: DamagedPackingError
    sound: int


def packing_damage(
    raw: Readable, compression: Compression, *, at_most: int, check: Callable[[], None]
) -> PackingDamage | None:
    """What is wrong with the packing of *raw*, which is at its first byte; ``None``: nothing in what was unpacked.

    That is all of it, or the pieces until there are *at_most* bytes; *check* is called between them, and may raise.
    That it is cut off is nothing: it spoils no byte before that. Raises ``OSError``.
    """
    if compression is Compression.NONE:
        return None
    unpacker, unpacked = _UNPACKERS[compression](raw), 0
    try:
        while unpacked < at_most and (piece := unpacker.unpack()):
            unpacked += len(piece)
            check()
    except DamagedPackingError as error:
        return PackingDamage(error=error, sound=unpacker.checked)
    except RecordError:
        return None
    return None


def skipped(stream: ByteStream, count: int) -> int:
    """Read and drop *count* bytes of *stream*; returns how many there were, fewer only at its end."""
    scratch = memoryview(bytearray(min(count, OUTPUT_BYTES)))
    left = count
    while left:
        taken = stream.read_into(scratch[: min(left, len(scratch))])
        if not taken:
            break
        left -= taken
    return count - left


class PlainStream:
    """Bytes as they are. What cannot seek is read and dropped, a little at a time."""

    def __init__(self, raw: Readable) -> None:
        self._raw = raw

    def read_into(self, target: memoryview) -> int:
        """See :class:`ByteStream`."""
        return self._raw.readinto(target) or 0

    def go_to(self, position: int) -> None:
        """Go to byte *position*; a stream that cannot seek has to be at its first byte."""
        if self._raw.seekable():
            self._raw.seek(position)
        else:
            skipped(self, position)

    def skip(self, count: int) -> None:
        """See :class:`ByteStream`."""
        if self._raw.seekable():
            self._raw.seek(count, os.SEEK_CUR)
        else:
            skipped(self, count)

    def close(self) -> None:
        """See :class:`ByteStream`."""
        self._raw.close()


class UnpackedStream:
    """The bytes that *raw* unpacks to."""

    def __init__(self, raw: Readable, compression: Compression) -> None:
        self._raw = raw
        self._compression = compression
        self._unpacker = _UNPACKERS[compression](raw)
        self._out = memoryview(b"")
        self._begun = False

    def read_into(self, target: memoryview) -> int:
        """See :class:`ByteStream`."""
        if not self._out:
            try:
                self._out = memoryview(self._unpacker.unpack())
            except RecordError as error:
                raise self._explained(error) from error
            self._begun = True
        count = min(len(target), len(self._out))
        target[:count] = self._out[:count]
        self._out = self._out[count:]
        return count

    def skip(self, count: int) -> None:
        """See :class:`ByteStream`."""
        found = skipped(self, count)
        if found < count:
            raise RecordError(
                f"It unpacks to {found} bytes, but {count} of them are to be left out."
            )

    def _explained(self, error: RecordError) -> RecordError:
        """*error*, with other advice when the object is not packed so at all."""
        if self._begun or not self._raw.seekable():
            return error
        self._raw.seek(0)
        if begins_like(self._raw.read(HEAD_BYTES) or b"", self._compression):
            return error
        noun = self._compression.value
        return DamagedPackingError(
            error.reason,
            advice=f"It does not begin like {noun}; if it is not packed so, correct files.compression.",
        )

    def close(self) -> None:
        """See :class:`ByteStream`."""
        self._raw.close()
