"""Files on local disk that get another place: renamed within one file system, else copied. No more may read them."""

from __future__ import annotations

import errno
import filecmp
import os
import shutil
import stat
from collections.abc import Generator
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import Final
from uuid import uuid4

from headrace.connect.errors import TaskFailedError
from headrace.formats.readable import Readable

UNFINISHED: Final = ".headrace-copy-"
"""How the names of copies begin that are not complete yet."""

# Another file system, one that has no hard links, or a kernel that keeps us from linking what is another user's.
_NO_LINKS = (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK)
_OCCUPIED = "Another file lies here, and none is moved over it. Move it away, or choose another files.move.to."


def make_folder(folder: str, *, like: str) -> None:
    """Make *folder*, and those on the way to it, durably; no one else may enter them who may not enter *like*.

    Raises ``TaskFailedError`` where a file is in the way.
    """
    if os.path.isdir(folder):  # noqa: PTH112
        return
    if os.path.lexists(folder):
        raise TaskFailedError(f"{folder}: This is a file, and a folder is needed. Move it away.")
    above = os.path.dirname(folder)  # noqa: PTH120
    make_folder(above, like=like)
    mode = stat.S_IMODE(os.stat(like).st_mode) & 0o777  # noqa: PTH116
    with suppress(FileExistsError):
        # Whoever makes it has to write in it.
        os.mkdir(folder, mode | stat.S_IRWXU)  # noqa: PTH102
        sync(above)


def lies_at(target: str, source: str) -> bool:
    """Whether what the file at *source* holds is at *target*, too, as a process leaves it that dies halfway.

    Raises ``TaskFailedError`` where something else is there.
    """
    if not os.path.lexists(target):
        return False
    is_link = os.path.islink(target)  # noqa: PTH114
    if os.path.isfile(target) and not is_link and filecmp.cmp(source, target, shallow=False):  # noqa: PTH113
        return True
    raise TaskFailedError(f"{target}: {_OCCUPIED}")


def renamed(source: str, target: str, taking: AbstractContextManager[str]) -> bool:
    """Give the file at *source* the path *target*, with all that it has; ``False`` where that needs a copy.

    *taking* gives the name under which no one replaces it any more. Raises as ``os.link`` does.
    """
    # First: no file is to be without its name for as long as a copy takes.
    if os.path.islink(source) or not _are_near(source, target):  # noqa: PTH114
        return False
    try:
        with taking as private:
            placed(private, target)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        return False
    return True


def placed(source: str, target: str) -> None:
    """Give the file at *source* the path *target*, durably; raises ``FileExistsError`` where something is there."""
    folder = os.path.dirname(target)  # noqa: PTH120
    try:
        os.link(source, target, follow_symlinks=False)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        if os.path.lexists(target):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), target) from error
        os.rename(source, target)  # noqa: PTH104
        sync(folder)
        return
    sync(folder)
    os.unlink(source)  # noqa: PTH108


@contextmanager
def copied(source: Readable, status: os.stat_result, folder: str) -> Generator[str]:
    """A durable copy of *source* in *folder*, with the mode and the times of *status*; it is gone in the end.

    Raises ``TaskFailedError`` where the copy has another length.
    """
    unfinished = f"{folder}/{UNFINISHED}{uuid4()}"
    try:
        descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with open(descriptor, "wb") as written:  # noqa: PTH123
            shutil.copyfileobj(source, written, 1024 * 1024)
            written.flush()
            _check_length(written.tell(), status.st_size, unfinished)
            os.fchmod(descriptor, stat.S_IMODE(status.st_mode) & 0o777)
            os.utime(descriptor, ns=(status.st_atime_ns, status.st_mtime_ns))
            os.fsync(descriptor)
        yield unfinished
    finally:
        with suppress(FileNotFoundError):
            os.unlink(unfinished)  # noqa: PTH108


def sync(folder: str) -> None:
    """Let what names *folder* has survive a power cut."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _are_near(source: str, target: str) -> bool:
    # Of the folders: some file systems say other numbers of their files.
    one, other = (os.stat(os.path.dirname(each)).st_dev for each in (source, target))  # noqa: PTH116, PTH120
    return one == other


def _check_length(found: int, expected: int, path: str) -> None:
    if found != expected:
        raise TaskFailedError(f"{path}: The copy has {found} bytes in place of {expected}.")
