"""Snappy: the framing format, and the one of xerial's Java library that Kafka and others write."""

from __future__ import annotations

from typing import Final

import cramjam

from headrace.connect.errors import RecordError
from headrace.formats.readable import Readable
from headrace.formats.unpacking import BROKEN, INPUT_BYTES, cut_off, damaged

NOUN: Final = "snappy"
_IDENTIFIER = b"\xff\x06\0\0sNaPpY"
_XERIAL = b"\x82SNAPPY\0"
_XERIAL_VERSIONS = 8
_COMPRESSED, _UNCOMPRESSED, _FIRST_SKIPPABLE = 0x00, 0x01, 0x80
# A chunk holds at most 64 KiB of data, which packing can make a sixth larger.
_CHUNK_BYTES = 80 * 1024
# Xerial's blocks are of 32 KiB unless a writer chose otherwise; nothing in the format bounds them.
_BLOCK_BYTES = 16 * 1024 * 1024


class SnappyUnpacker:
    """An ``Unpacker`` of *raw*, which tells by its first bytes in which of the two formats it is."""

    def __init__(self, raw: Readable) -> None:
        self._raw = raw
        self._xerial: bool | None = None
        self.checked = 0
        """See :class:`~headrace.formats.streams.Unpacker`: chunks have checksums, xerial's blocks have none."""

    def unpack(self) -> bytes:
        """See :class:`~headrace.formats.streams.Unpacker`."""
        if self._xerial is None:
            self._xerial = self._begins_as_xerial()
        out = self._next_block() if self._xerial else self._next_chunk()
        self.checked += len(out)
        return out

    def _begins_as_xerial(self) -> bool:
        head = self._exactly(len(_XERIAL))
        if head == _XERIAL:
            self._exactly(_XERIAL_VERSIONS)
            return True
        if head + self._exactly(len(_IDENTIFIER) - len(head)) != _IDENTIFIER:
            raise RecordError(
                "This is neither Snappy's framing format nor that of xerial's Java library.",
                advice="Pack the file again, for example with gzip; Hadoop's Snappy files are not read.",
            )
        return False

    def _next_chunk(self) -> bytes:
        while head := self._up_to(4):
            head += self._exactly(4 - len(head))
            kind, size = head[0], int.from_bytes(head[1:], "little")
            if kind in (_COMPRESSED, _UNCOMPRESSED):
                out = _unpacked(head, self._exactly(self._checked(size, _CHUNK_BYTES)))
                if out:
                    return out
            elif kind < _FIRST_SKIPPABLE:
                raise damaged(NOUN, f"a chunk of the reserved type {kind}")
            else:
                self._pass_over(size)
        return b""

    def _next_block(self) -> bytes:
        while head := self._up_to(4):
            head += self._exactly(4 - len(head))
            if head == _XERIAL[:4]:
                # Files that were appended to have a header for each part.
                self._exactly(len(_XERIAL) - 4 + _XERIAL_VERSIONS)
                continue
            size = self._checked(int.from_bytes(head, "big"), _BLOCK_BYTES)
            out = raw_unpacked(self._exactly(size), _BLOCK_BYTES)
            if out:
                return out
        return b""

    def _checked(self, size: int, most: int) -> int:
        if size > most:
            raise damaged(NOUN, f"a part of {size} bytes")
        return size

    def _pass_over(self, size: int) -> None:
        while size:
            size -= len(self._exactly(min(size, INPUT_BYTES)))

    def _exactly(self, size: int) -> bytes:
        found = self._up_to(size)
        if len(found) < size:
            raise cut_off(NOUN)
        return found

    def _up_to(self, size: int) -> bytes:
        found = bytearray()
        while len(found) < size:
            more = self._raw.read(size - len(found))
            if not more:
                break
            found += more
        return bytes(found)


def _unpacked(head: bytes, body: bytes) -> bytes:
    try:
        return bytes(cramjam.snappy.decompress(_IDENTIFIER + head + body))
    except (cramjam.DecompressionError, OSError, ValueError) as error:
        raise damaged(NOUN, error) from error


def raw_unpacked(packed: bytes, most: int) -> bytes:
    """What a bare Snappy block holds; raises ``RecordError`` when it is damaged, or more than *most* bytes."""
    try:
        size = cramjam.snappy.decompress_raw_len(packed)
        if size > most:
            raise RecordError(
                f"A Snappy block unpacks to {size} bytes, and {most} are the most.", advice=BROKEN
            )
        return bytes(cramjam.snappy.decompress_raw(packed))
    except (cramjam.DecompressionError, OSError, ValueError) as error:
        raise damaged(NOUN, error) from error
