"""The first bytes of a stream, looked at before it is read."""

from __future__ import annotations

from io import RawIOBase
from typing import TYPE_CHECKING

from headrace.formats.readable import Readable

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

# With fewer, packed bytes may look like text.
_HEAD_BYTES = 1024


def with_head(raw: Readable) -> tuple[Readable, bytes]:
    """A stream of all bytes of *raw*, which is at its first one, and its first bytes; raises ``OSError`` as *raw* does."""
    head = b""
    while len(head) < _HEAD_BYTES and (piece := raw.read(_HEAD_BYTES - len(head))):
        head += piece
    if raw.seekable():
        raw.seek(0)
        return raw, head
    return _Replayed(raw, head), head


class _Replayed(RawIOBase):
    """*head*, which was read of *raw*, and then the rest of it."""

    def __init__(self, raw: Readable, head: bytes) -> None:
        self._raw = raw
        self._head = memoryview(head)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer, /) -> int:
        if not self._head:
            return self._raw.readinto(buffer) or 0
        target = memoryview(buffer).cast("B")
        count = min(len(target), len(self._head))
        target[:count] = self._head[:count]
        self._head = self._head[count:]
        return count

    def close(self) -> None:
        self._raw.close()
        super().close()
