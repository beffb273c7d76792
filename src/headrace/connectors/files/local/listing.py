"""What lies on disk: the files that a configuration selects, as they are now."""

from __future__ import annotations

import fnmatch
import logging
import os
import stat
from collections.abc import Callable, Container, Iterator, Sequence
from dataclasses import dataclass, replace

from headrace.connect.errors import TaskFailedError
from headrace.connectors.files.local.file_seen import GONE, is_loop, status_of, unreadable
from headrace.connectors.files.local.unopenable import shown
from headrace.connectors.files.selecting.addresses import NO_GLOB, shows
from headrace.connectors.files.selecting.exclusion import NOTHING_EXCLUDED, Exclusion
from headrace.connectors.files.selecting.scope import LeftOut, unheard

_LOG = logging.getLogger(__name__)
_HIDDEN = "Its name begins with a dot."
_NOT_BELOW = "It is no file. Files in the folders of a folder are read with files.recursive=true, but not through links."
_GLOBBED_FOLDER = (
    "It is a folder, and globs select files. Files in folders are read with ** in the glob, or with "
    "files.recursive=true where files.path names the folder."
)
_KINDS = {
    stat.S_IFIFO: "a FIFO",
    stat.S_IFSOCK: "a socket",
    stat.S_IFBLK: "a device",
    stat.S_IFCHR: "a device",
}
NO_FILES = frozenset(f"It is {kind}, and only regular files are read." for kind in _KINDS.values())
"""Why what is neither a file, a folder nor a link is left out."""
_VANISHED_FILE = "It vanished while the folder was listed."
VANISHED = "The folder vanished while it was listed."
"""Why what was below a folder is left out of a listing that had found it."""
LOST_FILE = "It is a link that leads nowhere now. Bring back what it leads to, or remove the link."
"""Why a link is left out that may be one to a file."""
LOST_FOLDER = (
    "It is a link, and no folder is where it leads now. Bring that back, or remove the link."
)
"""Why what may be below a link is left out."""
_MAGIC = frozenset("*?[")


def list_files(
    paths: Sequence[str],
    *,
    recursive: bool,
    known: Container[str] = (),
    exclusion: Exclusion = NOTHING_EXCLUDED,
    without_match: Callable[[str], None] = lambda _: None,
    left_out: LeftOut = unheard,
) -> list[str]:
    """The absolute paths of the regular files that *paths* (folders, files, globs) select, sorted.

    What vanishes while it is listed is left out, and logged. What cannot be opened is among them, under a name that
    :mod:`~headrace.connectors.files.local.unopenable` knows. Raises
    :class:`~headrace.connect.errors.TaskFailedError` for a folder that is missing or may not be read, and
    for a missing file that is not *known* from earlier; a glob without matches in a readable folder selects
    nothing, and *without_match* is called with it. *left_out* is told of what is there and is not selected,
    and why; *exclusion* leaves out what *paths* do not name.
    """
    view = _View(left_out=lambda path, reason: left_out(shown(path), reason), exclusion=exclusion)
    absolute = [os.path.abspath(path) for path in paths]  # noqa: PTH100 (keeps symbolic links)
    found = set[str]()
    for path in absolute:
        selected = set(_selected(path, recursive=recursive, known=path in known, view=view))
        if not selected and _MAGIC & set(path):
            without_match(path)
        found |= selected
    return sorted(map(shown, found))


@dataclass(frozen=True, slots=True, kw_only=True)
class _View:
    """What is shown of a folder; *left_out* is told of the rest."""

    left_out: LeftOut
    exclusion: Exclusion

    def shows(self, entry: os.DirEntry[str], pattern: str) -> bool:
        shown = shows(pattern, entry.name)
        reason = self.exclusion.reason((entry.name,)) if shown else _HIDDEN
        # For ** what is in the folder is matched with what comes behind it, too, which tells the reason.
        if reason is not None and pattern != "**":
            self.left_out(entry.path, reason)
        return reason is None


def _selected(path: str, *, recursive: bool, known: bool, view: _View) -> Iterator[str]:
    parts = path.split("/")
    magic = next((i for i, part in enumerate(parts) if _MAGIC & set(part)), None)
    if magic is not None:
        beside = replace(view, exclusion=view.exclusion.beside(parts[magic:]))
        yield from _matching("/".join(parts[:magic]) or "/", parts[magic:], beside)
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
        yield from _files_in(path, view, recursive=recursive)
    elif stat.S_ISREG(mode):
        yield path
    else:
        raise TaskFailedError(f"{path}: This is neither a folder nor a regular file.")


_MISSING = (
    "This folder or file does not exist. Create it, or correct files.path "
    "(files that come and go are selected by their folder or a glob)."
)
_NO_FOLDER = "This folder does not exist. Create it, or correct files.path."


def _files_in(folder: str, view: _View, *, recursive: bool, found: bool = False) -> Iterator[str]:
    for entry in _entries(folder, "*", view, found=found):
        if _is_selected_file(entry):
            yield entry.path
        elif recursive and _is_folder_itself(entry):
            yield from _files_in(entry.path, view, recursive=True, found=True)
        else:
            view.left_out(entry.path, _no_file(entry, folder=_NOT_BELOW))


def _matching(
    folder: str, patterns: Sequence[str], view: _View, *, found: bool = False
) -> Iterator[str]:
    """The files below *folder* whose path matches *patterns*, one for each folder level."""
    pattern, rest = patterns[0], patterns[1:]
    if pattern == "**":
        yield from _matching(folder, rest or ["*"], view, found=found)
        for entry in _entries(folder, pattern, view, found=found):
            if _is_folder_itself(entry):
                yield from _matching(entry.path, patterns, view, found=True)
        return
    is_one = _is_folder if rest else _is_selected_file
    for entry in _entries(folder, pattern, view, found=found):
        matches = fnmatch.fnmatchcase(entry.name, pattern)
        if matches and is_one(entry):
            yield from _matching(entry.path, rest, view, found=True) if rest else (entry.path,)
        elif matches:
            view.left_out(
                entry.path, _no_folder(entry) if rest else _no_file(entry, folder=_GLOBBED_FOLDER)
            )
        else:
            view.left_out(entry.path, NO_GLOB)


def _no_folder(entry: os.DirEntry[str]) -> str:
    """Why nothing is read below *entry*, which a glob matches."""
    return LOST_FOLDER if _is_astray(entry) else NO_GLOB


def _no_file(entry: os.DirEntry[str], *, folder: str) -> str:
    """Why *entry*, which is no file, is not read; *folder* is why one is not."""
    status = status_of(entry.path)
    if status is None:
        return LOST_FILE if entry.is_symlink() else _VANISHED_FILE
    kind = _KINDS.get(stat.S_IFMT(status.st_mode))
    return folder if kind is None else f"It is {kind}, and only regular files are read."


def _entries(folder: str, pattern: str, view: _View, *, found: bool) -> list[os.DirEntry[str]]:
    """What is in *folder* and may match *pattern*; nothing when it was *found* in another one a moment ago and is gone."""
    try:
        with os.scandir(folder) as entries:
            return [entry for entry in entries if view.shows(entry, pattern)]
    except OSError as error:
        if found and isinstance(error, GONE):
            _LOG.warning("%s: %s", folder, VANISHED)
            view.left_out(folder, VANISHED)
            return []
        if isinstance(error, FileNotFoundError):
            raise TaskFailedError(f"{folder}: {_NO_FOLDER}") from None
        raise unreadable("folder", folder, error) from error


def _is_selected_file(entry: os.DirEntry[str]) -> bool:
    """Whether *entry* is a file, or a link that leads to itself, of which no one knows what it should be."""
    return _is(os.DirEntry.is_file, entry) or _is_loop(entry)


def _is_folder(entry: os.DirEntry[str]) -> bool:
    return _is(os.DirEntry.is_dir, entry)


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
        if is_loop(error):
            return False
        raise unreadable("path", entry.path, error) from error


def _is_astray(entry: os.DirEntry[str]) -> bool:
    """Whether *entry* is a symbolic link that leads nowhere, or to itself, to which no kind holds."""
    return entry.is_symlink() and status_of(entry.path) is None


def _is_loop(entry: os.DirEntry[str]) -> bool:
    if not entry.is_symlink():
        return False
    try:
        os.stat(entry.path)  # noqa: PTH116
    except OSError as error:
        return is_loop(error)
    return False
