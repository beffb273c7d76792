"""Bytes of one object from a position on, whether it is compressed or not."""

from __future__ import annotations

import zlib
from enum import StrEnum
from io import RawIOBase
from typing import Protocol

import zstandard

from headrace.connect.errors import RecordError

_INPUT_BYTES = 64 * 1024
# zstandard cannot bound what one call returns; one block of 128 KiB may come from 4 bytes of input.
_ZSTD_INPUT_BYTES = 8 * 1024
_OUTPUT_BYTES = 1024 * 1024
_BROKEN = "Nothing behind this place can be read; replace the file with a whole one."


class Compression(StrEnum):
    """How an object's bytes are packed."""

    NONE = "none"
    GZIP = "gzip"
    ZSTD = "zstd"


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


def open_stream(raw: RawIOBase, compression: Compression, position: int) -> ByteStream:
    """The bytes of *raw* from *position* of the unpacked object on. Owns *raw* from now on."""
    if compression is Compression.NONE:
        raw.seek(position)
        return PlainStream(raw)
    member = _GzipMember if compression is Compression.GZIP else _ZstdFrame
    stream = UnpackedStream(raw, member)
    found = skipped(stream, position)
    if found < position:
        raise RecordError(
            f"It unpacks to {found} bytes, but {position} of them are to be left out."
        )
    return stream


def skipped(stream: ByteStream, count: int) -> int:
    """Read and drop *count* bytes of *stream*; returns how many there were, fewer only at its end."""
    scratch = memoryview(bytearray(min(count, _OUTPUT_BYTES)))
    left = count
    while left:
        taken = stream.read_into(scratch[: min(left, len(scratch))])
        if not taken:
            break
        left -= taken
    return count - left


class PlainStream:
    """Bytes as they are."""

    def __init__(self, raw: RawIOBase) -> None:
        self._raw = raw

    def read_into(self, target: memoryview) -> int:
        """See :class:`ByteStream`."""
        return self._raw.readinto(target) or 0

    def close(self) -> None:
        """See :class:`ByteStream`."""
        self._raw.close()


class _Member(Protocol):
    """One self-contained packed part; an object may be several of them in a row."""

    noun: str
    magic: bytes
    input_bytes: int
    padding: bytes

    def feed(self, packed: bytes) -> tuple[bytes, bytes, bool]:
        """Unpack; returns what came out, input that was not used, and whether the part has ended."""
        ...


class _GzipMember:
    noun = "gzip"
    magic = b"\x1f\x8b"
    input_bytes = _INPUT_BYTES
    padding = b"\0"

    def __init__(self) -> None:
        self._unpacker = zlib.decompressobj(wbits=31)

    def feed(self, packed: bytes) -> tuple[bytes, bytes, bool]:
        try:
            out = self._unpacker.decompress(packed, _OUTPUT_BYTES)
        except zlib.error as error:
            raise _damaged(self.noun, error) from error
        ended = self._unpacker.eof
        return out, self._unpacker.unused_data if ended else self._unpacker.unconsumed_tail, ended


class _ZstdFrame:
    noun = "zstd"
    magic = b"\x28\xb5\x2f\xfd"
    input_bytes = _ZSTD_INPUT_BYTES
    padding = b""

    def __init__(self) -> None:
        self._unpacker = zstandard.ZstdDecompressor().decompressobj()

    def feed(self, packed: bytes) -> tuple[bytes, bytes, bool]:
        try:
            out = self._unpacker.decompress(packed)
        except zstandard.ZstdError as error:
            raise _damaged(self.noun, error) from error
        return out, self._unpacker.unused_data, self._unpacker.eof


class UnpackedStream:
    """The bytes that come out of packed members, one after the other."""

    def __init__(self, raw: RawIOBase, member: type[_GzipMember | _ZstdFrame]) -> None:
        self._raw = raw
        self._new_member = member
        self._member: _Member | None = None
        self._finished = False
        self._packed = b""
        self._out = memoryview(b"")

    def read_into(self, target: memoryview) -> int:
        """See :class:`ByteStream`."""
        while not self._out:
            if not self._unpack():
                return 0
        count = min(len(target), len(self._out))
        target[:count] = self._out[:count]
        self._out = self._out[count:]
        return count

    def close(self) -> None:
        """See :class:`ByteStream`."""
        self._raw.close()

    def _unpack(self) -> bool:
        """Unpack a little more; ``False`` at the end of a whole object."""
        packed = self._packed or self._raw.read(self._new_member.input_bytes) or b""
        if not packed:
            return self._drained()
        if self._finished and self._member is None:
            packed = packed.lstrip(self._new_member.padding)
        if packed:
            self._feed(packed)
        else:
            self._packed = b""
        return True

    def _feed(self, packed: bytes) -> None:
        member = self._member or self._new_member()
        try:
            out, self._packed, ended = member.feed(packed)
        except RecordError as error:
            raise self._explained(error, packed) from error
        self._out = memoryview(out)
        self._member = None if ended else member
        self._finished |= ended

    def _explained(self, error: RecordError, packed: bytes) -> RecordError:
        member = self._new_member
        if self._member or self._finished or packed.startswith(member.magic):
            return error
        return RecordError(
            error.reason,
            advice=f"It does not begin like {member.noun}; if it is not packed so, correct files.compression.",
        )

    def _drained(self) -> bool:
        """The packed bytes are used up: whether something still comes out of the open member."""
        if self._member is None and self._finished:
            return False
        if self._member is not None:
            self._feed(b"")
            if self._out:
                return True
        noun = self._new_member.noun
        raise RecordError(
            f"The {noun} file ends before its data does: it is cut off.", advice=_BROKEN
        )


def _damaged(noun: str, error: Exception) -> RecordError:
    return RecordError(f"This is not sound {noun} data ({error}).", advice=_BROKEN)
