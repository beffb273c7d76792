"""How the blocks of Avro files are packed."""

from __future__ import annotations

import io
import zlib
from collections.abc import Callable

from headrace.connect.errors import RecordError
from headrace.formats.arrow_unpacker import ArrowUnpacker
from headrace.formats.snappy_unpacker import NOUN as SNAPPY
from headrace.formats.snappy_unpacker import raw_unpacked
from headrace.formats.unpacking import (
    BROKEN,
    Bzip2Member,
    DeflateMember,
    Member,
    XzMember,
    damaged,
)

_CHECKSUM_BYTES = 4
_SIZE_ADVICE = "If blocks are meant to be so large, raise avro.max.block.bytes."

Unpack = Callable[[bytes, int], bytes]
"""Unpacks a block to at most so many bytes; raises ``RecordError``, without a place."""


def codec_named(name: str) -> Unpack:
    """What unpacks blocks of the codec *name*; raises ``RecordError`` when there is none."""
    if name not in _CODECS:
        known = ", ".join(_CODECS)
        raise RecordError(
            f"Its blocks are packed with the codec {name!r}, which is not supported (known are {known}).",
            advice="Write the file again with one of these.",
        )
    return _CODECS[name]


class BlockTooLargeError(RecordError):
    """A block that is larger than the settings allow, and may be sound."""


def too_large(size: int, most: int) -> BlockTooLargeError:
    """The error for a block of *size* packed bytes when *most* are allowed, without its place."""
    return BlockTooLargeError(
        f"A block has {size} bytes, and {most} are the most.",
        advice=_SIZE_ADVICE,
    )


def _unpacks_to_more(most: int) -> BlockTooLargeError:
    return BlockTooLargeError(f"A block unpacks to more than {most} bytes.", advice=_SIZE_ADVICE)


def _of(kind: type[Member], *, tail: int = 0) -> Unpack:
    return lambda packed, most: _unpacked(kind(), packed, most=most, tail=tail)


def _unpacked(member: Member, packed: bytes, *, most: int, tail: int) -> bytes:
    out = bytearray()
    rest = memoryview(packed)
    unused, ended = b"", False
    while not ended:
        piece = unused
        if not piece and member.hungry():
            piece, rest = bytes(rest[: member.input_bytes]), rest[member.input_bytes :]
        found, unused, ended = member.feed(piece)
        out += found
        if len(out) > most:
            raise _unpacks_to_more(most)
        if not (piece or found or ended):
            raise damaged(member.noun, "it ends too early")
    if len(unused) + len(rest) > tail:
        raise damaged(member.noun, "bytes are left behind its end")
    return bytes(out)


def _zstandard(packed: bytes, most: int) -> bytes:
    out = bytearray()
    unpacker = ArrowUnpacker(io.BytesIO(packed), "zstd")
    while found := unpacker.unpack():
        out += found
        if len(out) > most:
            raise _unpacks_to_more(most)
    return bytes(out)


def _snappy(packed: bytes, most: int) -> bytes:
    body, told = packed[:-_CHECKSUM_BYTES], packed[-_CHECKSUM_BYTES:]
    found = raw_unpacked(body, most)
    if zlib.crc32(found) != int.from_bytes(told, "big"):
        raise RecordError("The checksum behind a Snappy block is not the block's.", advice=BROKEN)
    return found


_CODECS: dict[str, Unpack] = {
    "null": lambda packed, _most: packed,
    # Some writers leave a part of zlib's checksum behind the deflated bytes.
    "deflate": _of(DeflateMember, tail=4),
    SNAPPY: _snappy,
    "zstandard": _zstandard,
    "bzip2": _of(Bzip2Member),
    "xz": _of(XzMember),
}
