"""An object that is opened where its first byte is asked for."""

from __future__ import annotations

import os
from collections.abc import Callable
from io import RawIOBase
from typing import TYPE_CHECKING

from headrace.connect.errors import TaskFailedError
from headrace.formats.chunk import READ_ANEW
from headrace.formats.readable import Readable

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer


class LaterReader(RawIOBase):
    """The stream that *open* gives for a position, once it is known: who reads on from the middle asks once.

    *name* is what errors call the object, *size* its length: nothing is asked of the store at its end.
    Reading raises what *open* and its stream raise, and ``TaskFailedError`` behind the end.
    """

    def __init__(self, open: Callable[[int], Readable], *, name: str, size: int) -> None:  # noqa: A002
        self._open = open
        self._name = name
        self._size = size
        self._position = 0
        self._stream: Readable | None = None

    def readable(self) -> bool:
        """See :class:`io.RawIOBase`."""
        return True

    def seekable(self) -> bool:
        """See :class:`io.RawIOBase`."""
        return True

    def tell(self) -> int:
        """See :class:`io.RawIOBase`."""
        return self._position

    def seek(self, offset: int, whence: int = os.SEEK_SET, /) -> int:
        """See :class:`io.RawIOBase`."""
        base = {os.SEEK_SET: 0, os.SEEK_CUR: self._position, os.SEEK_END: self._size}[whence]
        self._position = base + offset
        return self._position

    def readinto(self, buffer: WriteableBuffer, /) -> int:
        """See :class:`io.RawIOBase`."""
        if self._position > self._size:
            raise TaskFailedError(
                f"{self._name}: Its offset speaks of byte {self._position}, but the object has {self._size}. "
                f"{READ_ANEW}"
            )
        if self._position == self._size:
            return 0
        if self._stream is None:
            self._stream = self._open(self._position)
        elif self._stream.tell() != self._position:
            self._stream.seek(self._position)
        count = self._stream.readinto(buffer) or 0
        self._position += count
        return count

    def close(self) -> None:
        """Close the object, if it was opened."""
        if self._stream is not None:
            self._stream.close()
        super().close()
