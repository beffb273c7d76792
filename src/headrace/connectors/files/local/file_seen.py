"""One file on disk, looked at: what it is now, or that it is gone."""

from __future__ import annotations

import errno
import os
from dataclasses import dataclass

from headrace.connect.errors import TaskFailedError
from headrace.connectors.files.file_opener import HEAD_BYTES
from headrace.connectors.files.local.identity import same_object, version_of

GONE = (FileNotFoundError, NotADirectoryError)
"""How the system says that a path leads nowhere, any more or yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileSeen:
    """A regular file as a listing found it. *head* is its first bytes, at most ``HEAD_BYTES``.

    *touched_ns* is when it was touched in any way, *modified_ns* when its content is said to have changed.
    """

    path: str
    size: int
    inode: int
    modified_ns: int
    touched_ns: int
    head: bytes

    @property
    def modified_ms(self) -> int:
        """See :class:`~headrace.connectors.files.seen.ObjectSeen`."""
        return self.modified_ns // 1_000_000

    @property
    def version(self) -> str:
        """See :class:`~headrace.connectors.files.seen.ObjectSeen`."""
        return version_of(self.inode, self.head)

    def is_still(self, version: str) -> bool:
        """See :class:`~headrace.connectors.files.seen.ObjectSeen`."""
        return same_object(self.inode, self.head, version)

    def age_ms(self, now: float) -> float:
        """How long it has been untouched at *now*, in seconds since 1970; a future change is no age."""
        return now * 1000 - self.touched_ns / 1e6


def look_at(path: str) -> FileSeen | None:
    """The file at *path*, or ``None`` when it is gone.

    Raises :class:`~headrace.connect.errors.TaskFailedError` when it may not be read.
    """
    try:
        with open(path, "rb", buffering=0) as file:  # noqa: PTH123 (hot: once per file and plan)
            return seen(path, os.fstat(file.fileno()), file.read(HEAD_BYTES))
    except GONE:
        return None
    except OSError as error:
        raise unreadable("file", path, error) from error


def status_of(path: str) -> os.stat_result | None:
    """What the system knows of the file at *path*, or ``None`` when it is gone, or a link that leads to itself.

    Raises :class:`~headrace.connect.errors.TaskFailedError` when that may not be asked.
    """
    try:
        return os.stat(path)  # noqa: PTH116 (hot: once per file and plan)
    except GONE:
        return None
    except OSError as error:
        if is_loop(error):
            return None
        raise unreadable("file", path, error) from error


def is_loop(error: OSError) -> bool:
    """Whether *error* says that a link leads to itself."""
    return error.errno == errno.ELOOP


def seen(path: str, status: os.stat_result, head: bytes) -> FileSeen:
    """What *status* and *head* say about the file at *path*."""
    return FileSeen(
        path=path,
        size=status.st_size,
        inode=status.st_ino,
        modified_ns=status.st_mtime_ns,
        touched_ns=touched_ns(status),
        head=head,
    )


def touched_ns(status: os.stat_result) -> int:
    """When the file was written, renamed or given another time, in nanoseconds since 1970.

    A time of modification may be set back while the file is still written, as copies that keep it do; the
    time of change is the system's own.
    """
    return max(status.st_mtime_ns, status.st_ctime_ns)


def unreadable(noun: str, path: str, error: OSError) -> TaskFailedError:
    """The error for a *noun* at *path* that the system does not let us read."""
    return TaskFailedError(
        f"{path}: This {noun} cannot be read: {error.strerror}. "
        "Check files.path and the permissions of the user that runs headrace."
    )
