"""What unpacks one self-contained packed part, a little at a time."""

from __future__ import annotations

import bz2
import lzma
import zlib
from typing import ClassVar, Protocol

from headrace.connect.errors import RecordError

INPUT_BYTES = 64 * 1024
OUTPUT_BYTES = 1024 * 1024
# What the largest preset of xz (-9) needs is 65 MiB; a header can ask for 4 GiB.
_XZ_MEMORY = 256 * 1024 * 1024
BROKEN = "Nothing behind this place can be read; replace the file with a whole one."


class DamagedPackingError(RecordError):
    """Packed bytes are not what was packed. What came out of them before this was found need not be that, either."""


class Member(Protocol):
    """One self-contained packed part; an object may be several of them in a row. Used once, by one thread."""

    noun: ClassVar[str]
    input_bytes: ClassVar[int]
    """How much to feed at a time, so that what comes out is bounded."""
    padding: ClassVar[bytes]
    """What may stand between and behind members."""

    def feed(self, packed: bytes) -> tuple[bytes, bytes, bool]:
        """Unpack; returns what came out, input that was not used, and whether the part has ended.

        Raises :class:`~headrace.connect.errors.RecordError` for damaged data.
        """
        ...

    def hungry(self) -> bool:
        """Whether more comes out only with more input."""
        ...


class _ZlibMember:
    noun: ClassVar[str]
    input_bytes: ClassVar = INPUT_BYTES
    padding: ClassVar = b"\0"
    wbits: ClassVar[int]

    def __init__(self) -> None:
        self._unpacker = zlib.decompressobj(wbits=self.wbits)

    def feed(self, packed: bytes) -> tuple[bytes, bytes, bool]:
        try:
            out = self._unpacker.decompress(packed, OUTPUT_BYTES)
        except zlib.error as error:
            raise damaged(self.noun, error) from error
        ended = self._unpacker.eof
        return out, self._unpacker.unused_data if ended else self._unpacker.unconsumed_tail, ended

    def hungry(self) -> bool:
        return True


class GzipMember(_ZlibMember):
    """A member of a gzip file."""

    noun: ClassVar = "gzip"
    wbits: ClassVar = 31


class DeflateMember(_ZlibMember):
    """Bare deflate, without header and checksum."""

    noun: ClassVar = "deflate"
    wbits: ClassVar = -15


class Bzip2Member:
    """A stream of bzip2."""

    noun: ClassVar = "bzip2"
    input_bytes: ClassVar = INPUT_BYTES
    padding: ClassVar = b""

    def __init__(self) -> None:
        self._unpacker = bz2.BZ2Decompressor()

    def feed(self, packed: bytes) -> tuple[bytes, bytes, bool]:
        """See :class:`Member`."""
        try:
            out = self._unpacker.decompress(packed, OUTPUT_BYTES)
        except OSError as error:
            raise damaged(self.noun, error) from error
        return out, self._unpacker.unused_data, self._unpacker.eof

    def hungry(self) -> bool:
        """See :class:`Member`."""
        return self._unpacker.needs_input


class XzMember:
    """A stream of an xz file."""

    noun: ClassVar = "xz"
    input_bytes: ClassVar = INPUT_BYTES
    padding: ClassVar = b"\0"

    def __init__(self) -> None:
        self._unpacker = lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=_XZ_MEMORY)

    def feed(self, packed: bytes) -> tuple[bytes, bytes, bool]:
        """See :class:`Member`."""
        try:
            out = self._unpacker.decompress(packed, OUTPUT_BYTES)
        except (lzma.LZMAError, EOFError) as error:
            raise damaged(self.noun, error) from error
        return out, self._unpacker.unused_data, self._unpacker.eof

    def hungry(self) -> bool:
        """See :class:`Member`."""
        return self._unpacker.needs_input


def damaged(noun: str, reason: object) -> RecordError:
    """The error for packed data that is not sound, without its place."""
    return DamagedPackingError(f"This is not sound {noun} data ({reason}).", advice=BROKEN)


def cut_off(noun: str) -> RecordError:
    """The error for packed data that ends too early, without its place."""
    return RecordError(f"The {noun} file ends before its data does: it is cut off.", advice=BROKEN)
