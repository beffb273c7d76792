"""Where the blocks of a range of an Avro file begin, when the range does so anywhere."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Final

from headrace.connect.partition import OffsetValue
from headrace.formats.avro.container import (
    SYNC_BYTES,
    BlockSource,
    Header,
    cut_off,
)
from headrace.formats.exact_bytes import ExactBytes
from headrace.formats.readable import Readable
from headrace.formats.streams import Compression, open_stream

FIRST_BLOCK: Final = "firstBlock"
"""What an offset calls the byte of the block that its range was found to begin with. One before it that begins in
the range, too, but has lost its marker to damage, is missed by that."""


class BlockSearch:
    """Finds blocks in *raw*, a file with *header*, whose place it moves. Used by one thread, once for a range.

    No block has more than *most_bytes*.
    """

    def __init__(self, raw: Readable, header: Header, *, most_bytes: int) -> None:
        self._raw = raw
        self._header = header
        self._most_bytes = most_bytes

    def first(self, start: int, stop: int | None, *, reads: Callable[[BlockSource], bool]) -> int:
        """The byte of the first block that begins at *start* or behind it, or *stop* when that is before it.

        *stop* is the file's end when it is ``None``. A sync marker leads to the block, but bytes inside one may
        look like it, and the block behind it may be damaged. So where *reads* says that no sound block is there,
        the blocks before are counted off from the header. Raises :class:`~headrace.connect.errors.RecordError`,
        with a position, when these are damaged, too: to go on at the next marker could leave a block out. Only a
        whole block inside a block, between two of the file's own markers, is taken for one of the file's.
        """
        if start <= self._header.size:
            return self._header.size
        end = self._size() if stop is None else stop
        source = self._source_at(start - SYNC_BYTES)
        if not source.go_behind(self._header.sync, before=end):
            return end
        found = source.position
        return found if reads(self.blocks_at(found)) else self._counted_off(start)

    def told(self, first: int) -> dict[str, OffsetValue]:
        """What offsets say of *first*, the first block of a range."""
        return {FIRST_BLOCK: first} if first > self._header.size else {}

    def blocks_at(self, position: int) -> BlockSource:
        """The blocks from *position* on."""
        source = self._source_at(position)
        return BlockSource(source, self._header.sync, most_bytes=self._most_bytes)

    def _source_at(self, position: int) -> ExactBytes:
        stream = open_stream(self._raw, Compression.NONE, position)
        return ExactBytes(stream, position=position)

    def _counted_off(self, start: int) -> int:
        size, blocks = self._size(), self.blocks_at(self._header.size)
        while (position := blocks.position) < start:
            head = blocks.next_head()
            # Nothing may be asked for behind the end.
            if head is None or blocks.position + head.size + SYNC_BYTES > size:
                raise cut_off("a block", position)
            blocks.pass_over(head)
        return blocks.position

    def _size(self) -> int:
        place = self._raw.tell()
        size = self._raw.seek(0, os.SEEK_END)
        self._raw.seek(place)
        return size
