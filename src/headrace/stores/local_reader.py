"""A file that is read as one version of an object."""

from __future__ import annotations

import os
from io import RawIOBase
from typing import TYPE_CHECKING

from headrace.stores.errors import ObjectChangedError

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer


def version_of(status: os.stat_result) -> str:
    """The version of a file: its length, time of change and inode."""
    return f"{status.st_size}-{status.st_mtime_ns}-{status.st_ino:x}"


class LocalReader(RawIOBase):
    """The file at *path*; *status* is what it was when it was opened.

    At its end the file is looked at once more: when it is no longer what it was, what was read may be of
    several versions, and ``ObjectChangedError`` is raised in place of the end.
    """

    def __init__(self, store: str, key: str, path: str) -> None:
        self._store = store
        self._key = key
        # Not to block at the opening of a pipe, which is no object.
        self._descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        self.status = os.fstat(self._descriptor)

    def readable(self) -> bool:
        """See :class:`io.RawIOBase`."""
        return True

    def seekable(self) -> bool:
        """See :class:`io.RawIOBase`."""
        return True

    def fileno(self) -> int:
        """See :class:`io.RawIOBase`."""
        return self._descriptor

    def seek(self, offset: int, whence: int = os.SEEK_SET, /) -> int:
        """See :class:`io.RawIOBase`."""
        return os.lseek(self._descriptor, offset, whence)

    def readinto(self, buffer: WriteableBuffer, /) -> int:
        """See :class:`io.RawIOBase`. Raises ``ObjectChangedError`` at the end, see the class."""
        view = memoryview(buffer).cast("B")
        count = os.readv(self._descriptor, [view])
        if count < len(view) and version_of(os.fstat(self._descriptor)) != version_of(self.status):
            raise ObjectChangedError(self._store, self._key, "It was changed while it was read.")
        return count

    def close(self) -> None:
        """Close the file."""
        if not self.closed and hasattr(self, "_descriptor"):
            os.close(self._descriptor)
        super().close()
