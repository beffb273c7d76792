"""The local disk as a store: the files below one folder."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress

from headrace.connect.errors import TaskFailedError
from headrace.formats.readable import Readable
from headrace.stores.checks import check_version
from headrace.stores.errors import (
    KeyNotRepresentableError,
    ObjectChangedError,
    ObjectGoneError,
    StoreUnavailableError,
)
from headrace.stores.local_move import (
    UNFINISHED,
    copied,
    lies_at,
    make_folder,
    placed,
    renamed,
    sync,
)
from headrace.stores.local_reader import LocalReader, version_of
from headrace.stores.local_taken import (
    TAKEN,
    LeftTaken,
    NotExpectedError,
    give_back,
    is_as_taken,
    taken,
)
from headrace.stores.store import Capabilities, StoredObject

_PRIVATE = (UNFINISHED, TAKEN)
_GONE = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP)


class LocalStore:
    """The regular files below *root*; a key is the path from there, with ``/`` between its parts.

    Symbolic links to folders are not followed, and those to files only where they lead to a file below
    the root. A folder's names are sorted in memory, so the largest folder bounds it. What is deleted or moved
    is taken from its name first, so that no file goes that has just come under that.
    """

    capabilities = Capabilities()

    def __init__(self, root: str) -> None:
        self._root = os.path.realpath(root)
        self.name = f"file://{self._root}"
        self._left = LeftTaken()

    def list(self, prefix: str = "", start_after: str = "") -> Iterator[StoredObject]:
        """See ``Store.list``. Folders that vanish meanwhile are empty, as their files are gone."""
        if not os.path.isdir(self._root):  # noqa: PTH112
            raise TaskFailedError(
                f"{self.name}: This folder does not exist. Create it, or correct it."
            )
        yield from self._below("", prefix, start_after)

    def head(self, key: str) -> StoredObject:
        """See ``Store.head``."""
        with self._telling(key):
            status = os.stat(self._path(key))  # noqa: PTH116
        return self._object(key, status)

    def open(
        self, key: str, version: str, position: int = 0, *, size: int | None = None
    ) -> Readable:
        """See ``Store.open``. That the file is still the same is looked at again at its end."""
        reader = self._opened(key, version)
        try:
            if size not in (None, reader.status.st_size):
                raise ObjectChangedError(self.name, key, f"It no longer has {size} bytes.")
            reader.seek(position)
            return reader
        except BaseException:
            reader.close()
            raise

    def copy(self, key: str, version: str, target: str) -> StoredObject:
        """See ``Store.copy``. Durable when it returns, with the mode and the times of the file."""
        path = self._path(target)
        folder = os.path.dirname(path)  # noqa: PTH120
        with self._opened(key, version) as source, self._telling(target):
            make_folder(folder, like=os.path.dirname(self._path(key)))  # noqa: PTH120
            with copied(source, source.status, folder) as copy:
                os.replace(copy, path)  # noqa: PTH105
            sync(folder)
        return self.head(target)

    def move(self, key: str, version: str, target: str) -> bool:
        """Give that version the key *target*: renamed, or copied and deleted where that is on another disk.

        Raises as :meth:`copy` does, and ``TaskFailedError`` where something else lies at *target*. ``False``
        says that it was gone in the end.
        """
        source, path = self._path(key), self._path(target)
        folder = os.path.dirname(path)  # noqa: PTH120
        with self._opened(key, version) as opened, self._telling(target):
            make_folder(folder, like=os.path.dirname(source))  # noqa: PTH120
            is_there = lies_at(path, source)
            if not is_there and renamed(source, path, self._taken(key, version)):
                return True
            if not is_there:
                with copied(opened, opened.status, folder) as copy:
                    placed(copy, path)
        return self.delete(key, version)

    def delete(self, key: str, version: str) -> bool:
        """See ``Store.delete``. Folders stay, also empty ones."""
        with suppress(ObjectGoneError), self._telling(key):
            with self._taken(key, version) as private:
                os.unlink(private)  # noqa: PTH108
            return True
        return False

    def finish(self, key: str, target: Callable[[], str | None]) -> None:
        """Do to the end what a process had begun with *key* that died: delete it, or move it to *target*.

        That is asked for when it is needed. A file that it had taken for another one has its name again then. Raises as :meth:`move` does.
        """
        path = self._path(key)
        for private in self._left.of(path):
            with self._telling(key):
                if not is_as_taken(private):
                    give_back(private, path)
                elif (moved := target()) is None:
                    os.unlink(private)  # noqa: PTH108
                else:
                    self._finish_move(key, private, moved)

    def _finish_move(self, key: str, private: str, target: str) -> None:
        path = self._path(target)
        folder = os.path.dirname(path)  # noqa: PTH120
        with self._telling(target):
            make_folder(folder, like=os.path.dirname(private))  # noqa: PTH120
            is_there = lies_at(path, private)
            if not is_there and renamed(private, path, nullcontext(private)):
                return
            if not is_there:
                with (
                    LocalReader(self.name, key, private) as opened,
                    copied(opened, opened.status, folder) as copy,
                ):
                    placed(copy, path)
            os.unlink(private)  # noqa: PTH108

    @contextmanager
    def _taken(self, key: str, version: str) -> Generator[str]:
        """That version, under a name that no one else gives to another file."""
        path = self._path(key)
        expected = version_of(os.lstat(path))
        self._same(self.head(key), version)
        try:
            with taken(path, expected) as private:
                yield private
        except NotExpectedError as error:
            raise ObjectChangedError(
                self.name, key, "Another one has just come in its place."
            ) from error

    def tag(self, key: str, version: str, tags: Mapping[str, str]) -> None:
        """Raise ``NotImplementedError``: files have no tags."""
        raise NotImplementedError(f"{self.name}: Files on a disk have no tags.")

    def _opened(self, key: str, version: str) -> LocalReader:
        with self._telling(key):
            reader = LocalReader(self.name, key, self._path(key))
        try:
            self._same(self._object(key, reader.status), version)
        except BaseException:
            reader.close()
            raise
        return reader

    def _below(self, folder: str, prefix: str, start_after: str) -> Iterator[StoredObject]:
        for entry in self._entries(folder):
            is_folder = entry.is_dir(follow_symlinks=False)
            key = f"{folder}{entry.name}" + ("/" if is_folder else "")
            if not _is_text(key):
                # Other than text comes only from names that are not UTF-8; these sort at no place.
                raise KeyNotRepresentableError(
                    self.name, key, "Its name is not UTF-8, so no offset can name it. Rename it."
                )
            if is_folder:
                within = key.startswith(prefix) or prefix.startswith(key)
                if within and (key > start_after or start_after.startswith(key)):
                    yield from self._below(key, prefix, start_after)
            elif key.startswith(prefix) and key > start_after:
                yield from self._listed(key, entry)

    def _entries(self, folder: str) -> Sequence[os.DirEntry[str]]:
        try:
            with os.scandir(f"{self._root}/{folder}") as found:
                entries = [each for each in found if not each.name.startswith(_PRIVATE)]
        except OSError as error:
            if folder and error.errno in _GONE:
                return []
            raise self._unreadable(folder, error) from error
        # A folder sorts as its files' keys do: with the slash that follows its name.
        slash = {True: b"/", False: b""}
        entries.sort(key=lambda e: os.fsencode(e.name) + slash[e.is_dir(follow_symlinks=False)])
        return entries

    def _listed(self, key: str, entry: os.DirEntry[str]) -> Iterator[StoredObject]:
        # A file that went meanwhile, a link that leads out, a socket: no object of this store.
        with suppress(ObjectGoneError):
            if entry.is_symlink():
                found = self.head(key)
            else:
                with self._telling(key):
                    found = self._object(key, entry.stat(follow_symlinks=False))
            yield found

    def _path(self, key: str) -> str:
        parts = key.split("/")
        if not _is_text(key) or "\0" in key or {"", ".", ".."} & set(parts):
            raise KeyNotRepresentableError(
                self.name, key, "No path on a disk has exactly this name. Choose another."
            )
        path = f"{self._root.rstrip('/')}/{key}"
        real = os.path.realpath(path)
        if not real.startswith(f"{self._root.rstrip('/')}/"):
            raise ObjectGoneError(self.name, key)
        return path

    @contextmanager
    def _telling(self, key: str) -> Generator[None]:
        try:
            yield
        except StoreUnavailableError:
            raise
        except OSError as error:
            if error.errno in _GONE:
                raise ObjectGoneError(self.name, key) from error
            if error.errno == errno.ENAMETOOLONG:
                raise KeyNotRepresentableError(
                    self.name, key, "It is too long for this disk. Choose a shorter one."
                ) from error
            raise self._unreadable(key, error) from error

    def _object(self, key: str, status: os.stat_result) -> StoredObject:
        if not stat.S_ISREG(status.st_mode):
            raise ObjectGoneError(self.name, key)
        return StoredObject(
            key=key,
            size=status.st_size,
            version=version_of(status),
            modified_ms=status.st_mtime_ns // 1_000_000,
        )

    def _same(self, found: StoredObject, version: str) -> None:
        check_version(self.name, found.key, found=found.version, version=version)

    def _unreadable(self, key: str, error: OSError) -> TaskFailedError | StoreUnavailableError:
        path = f"{self._root.rstrip('/')}/{key}"
        told = f"{path if _is_text(key) else repr(path)}: {error.strerror}."
        if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS, errno.EISDIR):
            return TaskFailedError(f"{told} Check the permissions of the user that runs headrace.")
        return StoreUnavailableError(told)


def _is_text(key: str) -> bool:
    try:
        key.encode()
    except UnicodeEncodeError:
        return False
    return True
