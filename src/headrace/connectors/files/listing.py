"""What lies on disk: the files that a configuration selects, as they are now."""

from __future__ import annotations

import fnmatch
import os
import stat
from collections.abc import Callable, Container, Iterator, Sequence
from dataclasses import dataclass

from headrace.connect.errors import TaskFailedError

HEAD_BYTES = 1024
_CHUNK = 64 * 1024
_MAGIC = frozenset("*?[")


@dataclass(frozen=True, slots=True, kw_only=True)
class FileSeen:
    """A regular file as a listing found it. *head* is its first bytes, at most ``HEAD_BYTES``."""

    path: str
    size: int
    inode: int
    modified_ns: int
    head: bytes

    def age_ms(self, now: float) -> float:
        """How long it has been unchanged at *now*, in seconds since 1970; a future change is no age."""
        return now * 1000 - self.modified_ns / 1e6


def list_files(paths: Sequence[str], *, recursive: bool, known: Container[str] = ()) -> list[str]:
    """The absolute paths of the regular files that *paths* (folders, files, globs) select, sorted.

    Raises :class:`~headrace.connect.errors.TaskFailedError` for a folder that is missing or may not be
    read, and for a missing file that is not *known* from earlier; a glob without matches in a readable
    folder selects nothing.
    """
    absolute = [os.path.abspath(path) for path in paths]  # noqa: PTH100 (keeps symbolic links)
    found = {
        each
        for path in absolute
        if path not in known or os.path.lexists(path)
        for each in _selected(path, recursive=recursive)
    }
    for path in found:
        _check_name(path)
    return sorted(found)


def look_at(path: str) -> FileSeen | None:
    """The file at *path*, or ``None`` when it is gone.

    Raises :class:`~headrace.connect.errors.TaskFailedError` when it may not be read.
    """
    try:
        with open(path, "rb", buffering=0) as file:  # noqa: PTH123 (hot: once per file and plan)
            return seen(path, os.fstat(file.fileno()), file.read(HEAD_BYTES))
    except FileNotFoundError:
        return None
    except OSError as error:
        raise _unreadable("file", path, error) from error


def last_line_end(path: str, *, start: int, size: int, at_most: int) -> int:
    """The byte behind the last line feed in ``start … size`` of the file at *path*, or *start*.

    Where a line is longer than *at_most* bytes it is *size*: there is nothing to wait for.
    """
    with open(path, "rb", buffering=0) as file:  # noqa: PTH123
        end = size
        while end > start and size - end <= at_most:
            begin = max(start, end - _CHUNK)
            file.seek(begin)
            feed = file.read(end - begin).rfind(b"\n")
            if feed >= 0:
                return begin + feed + 1
            end = begin
    return start if end <= start else size


def seen(path: str, status: os.stat_result, head: bytes) -> FileSeen:
    """What *status* and *head* say about the file at *path*."""
    return FileSeen(
        path=path,
        size=status.st_size,
        inode=status.st_ino,
        modified_ns=status.st_mtime_ns,
        head=head,
    )


def _selected(path: str, *, recursive: bool) -> Iterator[str]:
    parts = path.split("/")
    magic = next((i for i, part in enumerate(parts) if _MAGIC & set(part)), None)
    if magic is not None:
        yield from _matching("/".join(parts[:magic]) or "/", parts[magic:])
        return
    try:
        mode = os.stat(path).st_mode  # noqa: PTH116
    except FileNotFoundError:
        raise TaskFailedError(f"{path}: {_MISSING}") from None
    except OSError as error:
        raise _unreadable("path", path, error) from error
    if stat.S_ISDIR(mode):
        yield from _files_in(path, recursive=recursive)
    elif stat.S_ISREG(mode):
        yield path
    else:
        raise TaskFailedError(f"{path}: This is neither a folder nor a regular file.")


_MISSING = (
    "This folder or file does not exist. Create it, or correct files.path "
    "(files that come and go are selected by their folder or a glob)."
)


def _files_in(folder: str, *, recursive: bool) -> Iterator[str]:
    for entry in _entries(folder):
        if entry.is_file():
            yield entry.path
        elif recursive and entry.is_dir(follow_symlinks=False):
            yield from _files_in(entry.path, recursive=True)


def _matching(folder: str, patterns: Sequence[str]) -> Iterator[str]:
    """The files below *folder* whose path matches *patterns*, one for each folder level."""
    pattern, rest = patterns[0], patterns[1:]
    if pattern == "**":
        yield from _matching(folder, rest or ["*"])
        for entry in _entries(folder):
            if entry.is_dir(follow_symlinks=False):
                yield from _matching(entry.path, patterns)
        return
    kind: Callable[[os.DirEntry[str]], bool] = os.DirEntry.is_dir if rest else os.DirEntry.is_file
    for entry in _entries(folder):
        if fnmatch.fnmatchcase(entry.name, pattern) and kind(entry):
            yield from _matching(entry.path, rest) if rest else (entry.path,)


def _entries(folder: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return [entry for entry in entries if not entry.name.startswith(".")]
    except OSError as error:
        raise _unreadable("folder", folder, error) from error


def _unreadable(noun: str, path: str, error: OSError) -> TaskFailedError:
    return TaskFailedError(
        f"{path}: This {noun} cannot be read: {error.strerror}. "
        "Check files.path and the permissions of the user that runs headrace."
    )


def _check_name(path: str) -> None:
    try:
        path.encode()
    except UnicodeEncodeError:
        raise TaskFailedError(
            f"{path!r}: The file's name is not UTF-8, so no offset can be stored for it. Rename it."
        ) from None
