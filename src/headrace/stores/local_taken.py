"""Files on local disk that are taken from their names before they go.

A name says only until the next moment which file it is. So a file that is to go gets a name first that no one else
knows, and is looked at under that: a new one that came under its name meanwhile is given back.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from hashlib import sha256
from typing import Final
from uuid import uuid4

from headrace.connect.errors import TaskFailedError
from headrace.stores.local_reader import version_of

TAKEN: Final = ".headrace-taken-"
"""How the names begin of files that are about to go."""

_KEPT = (
    "{path}: Another file came under this name before the one that had it could be put back, which is {private} now. To "
    "have that one read, give it a name that files.path selects."
)


class NotExpectedError(Exception):
    """Another file is there than the one that was to be taken; it has its name again."""


@contextmanager
def taken(path: str, expected: str) -> Generator[str]:
    """The file at *path*, whose version is *expected*, links not followed, under another name in its folder.

    Whoever takes it lets it go. It is given back where that fails. Raises ``NotExpectedError``, what ``os.rename`` does,
    and what :func:`give_back` does.
    """
    # No such name comes twice, so that nothing is ever renamed over another file.
    private = f"{_beginning(path)}{expected}-{uuid4().hex[:8]}"
    os.rename(path, private)  # noqa: PTH104
    try:
        if not is_as_taken(private):
            raise NotExpectedError(path)
        yield private
    except BaseException:
        give_back(private, path)
        raise


def is_as_taken(private: str) -> bool:
    """Whether the file at *private* is the one that was to be taken, and not one that came in its place."""
    expected = private.removeprefix(_beginning_of(private)).rpartition("-")[0]
    return version_of(os.lstat(private)) == expected


def give_back(private: str, path: str) -> None:
    """Give the file at *private* its name *path* again, if nothing is there; what is gone is let be.

    Raises ``TaskFailedError`` where another file is there.
    """
    with suppress(FileNotFoundError):
        try:
            os.link(private, path, follow_symlinks=False)
        except FileExistsError:
            if not os.path.samestat(os.lstat(private), os.lstat(path)):
                raise TaskFailedError(_KEPT.format(path=path, private=private)) from None
        except FileNotFoundError:
            return
        except OSError:
            # Where there are no links, nothing closes the moment between the two.
            if os.path.lexists(path):
                raise TaskFailedError(_KEPT.format(path=path, private=private)) from None
            os.rename(private, path)  # noqa: PTH104
            return
        os.unlink(private)  # noqa: PTH108


class LeftTaken:
    """What processes have left that died before the file that they had taken was gone. Used by one thread.

    Each folder is looked into once: what dies later leaves its files to the next start.
    """

    def __init__(self) -> None:
        self._folders = set[str]()
        self._found = dict[str, list[str]]()

    def of(self, path: str) -> Sequence[str]:
        """Where the files are that were taken from *path*."""
        folder = os.path.dirname(path)  # noqa: PTH120
        if folder not in self._folders:
            self._look_into(folder)
        if not self._found:
            return ()
        return [each for each in self._found.get(_beginning(path), ()) if os.path.lexists(each)]

    def _look_into(self, folder: str) -> None:
        # One that is away now is looked into when it is back.
        with suppress(OSError), os.scandir(folder) as entries:
            for each in entries:
                if each.name.startswith(TAKEN):
                    private = f"{folder}/{each.name}"
                    self._found.setdefault(_beginning_of(private), []).append(private)
            self._folders.add(folder)


def _beginning(path: str) -> str:
    """How each name begins that the file at *path* may get; short, since names may be as long as disks allow."""
    folder, _, name = path.rpartition("/")
    return f"{folder}/{TAKEN}{sha256(os.fsencode(name)).hexdigest()[:16]}-"


def _beginning_of(private: str) -> str:
    folder, _, name = private.rpartition("/")
    return f"{folder}/{TAKEN}{name.removeprefix(TAKEN).partition('-')[0]}-"
