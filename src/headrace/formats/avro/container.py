"""Avro object container files: the header, and blocks with their positions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from headrace.connect.errors import RecordError
from headrace.formats.avro.codecs import too_large
from headrace.formats.chunk import READ_ANEW
from headrace.formats.exact_bytes import ExactBytes
from headrace.formats.unpacking import BROKEN

MAGIC: Final = b"Obj\x01"
SYNC_BYTES: Final = 16
_HEADER_BYTES = 16 * 1024 * 1024
_VARINT_BYTES = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """What a file says about itself. *size* is the byte at which its first block begins."""

    schema: bytes
    codec: str
    sync: bytes
    size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockHead:
    """A block that has not been read: where it begins, and how many records and packed bytes it has."""

    position: int
    count: int
    size: int


def read_header(source: ExactBytes) -> Header:
    """The header of the file that *source* is at the beginning of.

    Raises :class:`~headrace.connect.errors.RecordError`, with a position, when there is none.
    """
    head = source.up_to(len(MAGIC))
    if head != MAGIC:
        what = "It is empty" if not head else "It does not begin as one"
        raise RecordError(
            f"This is not an Avro object container file. {what}.",
            position="byte 0",
            advice="Replace the file, or say with files.format what it is.",
        )
    metadata = _metadata(source)
    sync = _exactly(source, SYNC_BYTES, "its header")
    return Header(
        schema=metadata.get("avro.schema", b""),
        codec=metadata.get("avro.codec", b"null").decode(errors="replace") or "null",
        sync=sync,
        size=source.position,
    )


class BlockSource:
    """The blocks of the file that *source* is in, from its position on. Used by one thread.

    Raises :class:`~headrace.connect.errors.RecordError`, with a position, where the file is damaged;
    nothing can be read from there on.
    """

    def __init__(
        self, source: ExactBytes, sync: bytes, *, most_bytes: int, unpacked: bool = False
    ) -> None:
        self._source = source
        self._sync = sync
        self.most_bytes = most_bytes
        """How large a block may be, packed and unpacked."""
        self.unpacked = unpacked
        """Whether the file was packed as a whole, so that positions are not those of the object."""

    @property
    def position(self) -> int:
        """The byte behind what has been read."""
        return self._source.position

    def start_at(self, position: int) -> None:
        """Go forward to the block at *position*, which must have the file's sync marker before it."""
        before = position - SYNC_BYTES - self._source.position
        if before >= 0:
            self._source.skip(before)
            self._read_sync("no block begins here")
        elif before != -SYNC_BYTES:
            raise RecordError(
                "No block begins here.",
                position=f"byte {position}",
                advice=READ_ANEW,
            )

    def next_head(self) -> BlockHead | None:
        """The next block; ``None`` when the file ends here, as it should."""
        position = self._source.position
        first = self._source.up_to(1)
        if not first:
            return None
        count = _long(self._source, "a block", first)
        size = _long(self._source, "a block")
        if count < 0 or size < 0:
            raise _broken(f"A block says that it has {count} records in {size} bytes.", position)
        if size > self.most_bytes:
            raise too_large(size, self.most_bytes).located("", f"byte {position}")
        return BlockHead(position=position, count=count, size=size)

    def payload(self, head: BlockHead) -> bytes:
        """The bytes of the block whose *head* was just read, with the marker behind it checked."""
        found = _exactly(self._source, head.size, "a block")
        self._read_sync("a block does not end here, as it says")
        return found

    def pass_over(self, head: BlockHead) -> None:
        """Go behind the block whose *head* was just read."""
        self._source.skip(head.size)
        self._read_sync("a block does not end here, as it says")

    def close(self) -> None:
        """Close the file."""
        self._source.close()

    def _read_sync(self, what: str) -> None:
        position = self._source.position
        if _exactly(self._source, SYNC_BYTES, "a block") != self._sync:
            raise _broken(f"These bytes are not the file's sync marker: {what}.", position)


def _metadata(source: ExactBytes) -> Mapping[str, bytes]:
    """The header's map of bytes."""
    found = dict[str, bytes]()
    while count := _long(source, "its header"):
        if count < 0:
            count = -count
            _long(source, "its header")
        for _ in range(count):
            key = _bytes(source).decode(errors="replace")
            found[key] = _bytes(source)
    return found


def _bytes(source: ExactBytes) -> bytes:
    size = _long(source, "its header")
    if size < 0 or source.position + size > _HEADER_BYTES:
        raise _broken(f"The header has an entry of {size} bytes.", source.position)
    return _exactly(source, size, "its header")


def _long(source: ExactBytes, where: str, first: bytes = b"") -> int:
    """A number in Avro's variable length; *first* is its first byte, if that has been read."""
    position = source.position - len(first)
    value = 0
    for shift in range(0, 7 * _VARINT_BYTES, 7):
        byte = (first if first and not shift else _exactly(source, 1, where))[0]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:  # noqa: PLR2004 (the bit that says that more follow)
            return (value >> 1) ^ -(value & 1)
    raise _broken("A number is longer than 64 bits.", position)


def _exactly(source: ExactBytes, size: int, where: str) -> bytes:
    found = source.up_to(size)
    if len(found) < size:
        raise cut_off(where, source.position)
    return found


def cut_off(where: str, position: int) -> RecordError:
    """The error for a file that ends at *position*, inside *where*."""
    return _broken(f"The file ends inside {where}: it is cut off.", position)


def _broken(reason: str, position: int) -> RecordError:
    return RecordError(reason, position=f"byte {position}", advice=BROKEN)
