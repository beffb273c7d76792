"""What lies on disk: the files that a configuration selects, as they are now."""

from __future__ import annotations

import fnmatch
import logging
import os
import stat
from collections.abc import Callable, Container, Iterator, Sequence
from dataclasses import dataclass
from io import FileIO

from headrace.connect.errors import TaskFailedError
from headrace.connectors.files.identity import HEAD_BYTES, same_object, version_of

_LOG = logging.getLogger(__name__)
GONE = (FileNotFoundError, NotADirectoryError)
"""How the system says that a path leads nowhere, any more or yet."""

_HIDDEN = "Its name begins with a dot."
_NOT_BELOW = "It is no file. Files in the folders of a folder are read with files.recursive=true, but not through links."
_NO_GLOB = "No glob of files.path matches it."
_GLOBBED_FOLDER = (
    "It is a folder, and globs select files. Files in folders are read with ** in the glob, or with "
    "files.recursive=true where files.path names the folder."
)
_NO_FILE = "It is no regular file."
_LeftOut = Callable[[str, str], None]
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
        """How long it has been unchanged at *now*, in seconds since 1970; a future change is no age."""
        return now * 1000 - self.modified_ns / 1e6


@dataclass(frozen=True, slots=True, kw_only=True)
class Ready:
    """How far a file may be read: the bytes before *stop*. *open_ended* says that the last row there may be half written."""

    stop: int
    open_ended: bool = False


def list_files(
    paths: Sequence[str],
    *,
    recursive: bool,
    known: Container[str] = (),
    without_match: Callable[[str], None] = lambda _: None,
    left_out: Callable[[str, str], None] = lambda _path, _reason: None,
) -> list[str]:
    """The absolute paths of the regular files that *paths* (folders, files, globs) select, sorted.

    What vanishes while it is listed is left out, and logged. Raises :class:`~headrace.connect.errors.TaskFailedError` for a folder that is missing or may not be
    read, and for a missing file that is not *known* from earlier; a glob without matches in a readable
    folder selects nothing, and *without_match* is called with it. *left_out* is told of what is there and
    is not selected, and why.
    """
    absolute = [os.path.abspath(path) for path in paths]  # noqa: PTH100 (keeps symbolic links)
    found = set[str]()
    for path in absolute:
        selected = set(_selected(path, recursive=recursive, known=path in known, left_out=left_out))
        if not selected and _MAGIC & set(path):
            without_match(path)
        found |= selected
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
    except GONE:
        return None
    except OSError as error:
        raise unreadable("file", path, error) from error


def status_of(path: str) -> os.stat_result | None:
    """What the system knows of the file at *path*, or ``None`` when it is gone.

    Raises :class:`~headrace.connect.errors.TaskFailedError` when that may not be asked.
    """
    try:
        return os.stat(path)  # noqa: PTH116 (hot: once per file and plan)
    except GONE:
        return None
    except OSError as error:
        raise unreadable("file", path, error) from error


def last_line_end(path: str, *, start: int, size: int, at_most: int) -> Ready | None:
    """Up to behind the last line feed in ``start … size`` of the file at *path*, or to *start*.

    Where a line is longer than *at_most* bytes it is to *size*, so that it is told at once. ``None`` when
    the file is gone. Raises :class:`~headrace.connect.errors.TaskFailedError` when it may not be read.
    """
    try:
        with open(path, "rb", buffering=0) as file:  # noqa: PTH123
            return _last_line_end(file, start=start, size=size, at_most=at_most)
    except GONE:
        return None
    except OSError as error:
        raise unreadable("file", path, error) from error


def _last_line_end(file: FileIO, *, start: int, size: int, at_most: int) -> Ready:
    end = size
    while end > start and size - end <= at_most:
        begin = max(start, end - _CHUNK)
        file.seek(begin)
        feed = file.read(end - begin).rfind(b"\n")
        if feed >= 0:
            return Ready(stop=begin + feed + 1)
        end = begin
    return Ready(stop=start) if end <= start else Ready(stop=size, open_ended=True)


def seen(path: str, status: os.stat_result, head: bytes) -> FileSeen:
    """What *status* and *head* say about the file at *path*."""
    return FileSeen(
        path=path,
        size=status.st_size,
        inode=status.st_ino,
        modified_ns=status.st_mtime_ns,
        head=head,
    )


def _selected(path: str, *, recursive: bool, known: bool, left_out: _LeftOut) -> Iterator[str]:
    parts = path.split("/")
    magic = next((i for i, part in enumerate(parts) if _MAGIC & set(part)), None)
    if magic is not None:
        yield from _matching("/".join(parts[:magic]) or "/", parts[magic:], left_out)
        return
    try:
        mode = os.stat(path).st_mode  # noqa: PTH116
    except OSError as error:
        if known and isinstance(error, GONE):
            return
        if isinstance(error, FileNotFoundError):
            raise TaskFailedError(f"{path}: {_MISSING}") from None
        raise unreadable("path", path, error) from error
    if stat.S_ISDIR(mode):
        yield from _files_in(path, left_out, recursive=recursive)
    elif stat.S_ISREG(mode):
        yield path
    else:
        raise TaskFailedError(f"{path}: This is neither a folder nor a regular file.")


_MISSING = (
    "This folder or file does not exist. Create it, or correct files.path "
    "(files that come and go are selected by their folder or a glob)."
)
_NO_FOLDER = "This folder does not exist. Create it, or correct files.path."


def _files_in(
    folder: str, left_out: _LeftOut, *, recursive: bool, found: bool = False
) -> Iterator[str]:
    for entry in _entries(folder, left_out, found=found):
        if _is(os.DirEntry.is_file, entry):
            yield entry.path
        elif recursive and _is_folder_itself(entry):
            yield from _files_in(entry.path, left_out, recursive=True, found=True)
        else:
            left_out(entry.path, _NOT_BELOW)


def _matching(
    folder: str, patterns: Sequence[str], left_out: _LeftOut, *, found: bool = False
) -> Iterator[str]:
    """The files below *folder* whose path matches *patterns*, one for each folder level."""
    pattern, rest = patterns[0], patterns[1:]
    if pattern == "**":
        yield from _matching(folder, rest or ["*"], left_out, found=found)
        for entry in _entries(folder, left_out, found=found):
            if _is_folder_itself(entry):
                yield from _matching(entry.path, patterns, left_out, found=True)
        return
    kind = os.DirEntry[str].is_dir if rest else os.DirEntry[str].is_file
    for entry in _entries(folder, left_out, found=found):
        matches = fnmatch.fnmatchcase(entry.name, pattern)
        if matches and _is(kind, entry):
            yield from _matching(entry.path, rest, left_out, found=True) if rest else (entry.path,)
        else:
            left_out(entry.path, _no_file(entry) if matches and not rest else _NO_GLOB)


def _no_file(entry: os.DirEntry[str]) -> str:
    """Why *entry*, which a glob matches, is not read."""
    return _GLOBBED_FOLDER if _is(os.DirEntry.is_dir, entry) else _NO_FILE


def _entries(folder: str, left_out: _LeftOut, *, found: bool) -> list[os.DirEntry[str]]:
    """What is in *folder*; nothing when it was *found* in another one a moment ago and is gone."""
    try:
        with os.scandir(folder) as entries:
            return [entry for entry in entries if _is_shown(entry, left_out)]
    except OSError as error:
        if found and isinstance(error, GONE):
            _LOG.warning("%s: The folder vanished while it was listed.", folder)
            return []
        if isinstance(error, FileNotFoundError):
            raise TaskFailedError(f"{folder}: {_NO_FOLDER}") from None
        raise unreadable("folder", folder, error) from error


def _is_shown(entry: os.DirEntry[str], left_out: _LeftOut) -> bool:
    if not entry.name.startswith("."):
        return True
    left_out(entry.path, _HIDDEN)
    return False


def _is_folder_itself(entry: os.DirEntry[str]) -> bool:
    """Whether *entry* is a folder and no symbolic link to one."""
    return _is(lambda each: each.is_dir(follow_symlinks=False), entry)


def _is(kind: Callable[[os.DirEntry[str]], bool], entry: os.DirEntry[str]) -> bool:
    """Whether *entry* is of *kind*; what is gone is of none."""
    try:
        return kind(entry)
    except GONE:
        return False
    except OSError as error:
        raise unreadable("path", entry.path, error) from error


def unreadable(noun: str, path: str, error: OSError) -> TaskFailedError:
    """The error for a *noun* at *path* that the system does not let us read."""
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
