"""Deletes, moves or tags one file, as long as it is the one whose records are committed."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Protocol

from headrace.connect.errors import TaskFailedError
from headrace.connect.partition import SourceOffset
from headrace.connectors.files.cleanup.after_commit import IN_SELECTION, move_target, tags_of
from headrace.connectors.files.cleanup.cleanups import Outcome
from headrace.connectors.files.config import FilesConfig
from headrace.connectors.files.formats import packing_of
from headrace.connectors.files.local.file_seen import FileSeen, look_at
from headrace.connectors.files.local.prefix_check import PrefixCheck
from headrace.connectors.files.prefix_fingerprint import fingerprint_of
from headrace.connectors.files.progress import number
from headrace.connectors.files.selecting.addresses import Root
from headrace.stores.errors import ObjectChangedError, ObjectGoneError
from headrace.stores.local import LocalStore
from headrace.stores.store import Store

_AWAY: Final = (
    "{path}: {parent}, where this folder of files.move.to is to be, is no folder. It may be on a disk that is away: "
    "mount it, or create {parent}."
)


class Reach(Protocol):
    """Finds what entries speak of. Used by one thread at a time."""

    @property
    def store(self) -> Store:
        """Where it finds them."""
        ...

    def key(self, path: str) -> str | None:
        """What *store* calls the file at *path*; ``None`` for one of another place."""
        ...

    def address(self, key: str) -> str:
        """What people call it that *store* calls *key*."""
        ...

    def version(self, path: str, entry: SourceOffset) -> str:
        """The version, for *store*, of the file that *entry* speaks of.

        Raises ``ObjectChangedError``, ``ObjectGoneError``, and as ``Store`` does.
        """
        ...

    def move(self, key: str, version: str, target: str) -> bool:
        """Give that version the key *target*; ``False`` says that it was gone in the end. Raises as ``Store`` does."""
        ...

    def finish(self, key: str, target: Callable[[], str | None]) -> None:
        """Do to the end what a process began with *key* that died: delete it, or move it to *target*, which may raise."""
        ...

    def check_folder(self, folder: str) -> None:
        """Raise ``TaskFailedError`` where *folder*, as keys begin with it, seems to be away; it need not exist."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class InStore:
    """Objects at *root*: an entry's version is the store's."""

    root: Root
    store: Store

    def key(self, path: str) -> str | None:
        """See :class:`Reach`."""
        return self.root.key(path)

    def address(self, key: str) -> str:
        """See :class:`Reach`."""
        return self.root.address(key)

    def version(self, path: str, entry: SourceOffset) -> str:
        """See :class:`Reach`. Asks nothing: every action asks for the version itself."""
        return str(entry.get("version"))

    def move(self, key: str, version: str, target: str) -> bool:
        """See :class:`Reach`."""
        # The copy's length has been compared when it returns.
        self.store.copy(key, version, target)
        return self.store.delete(key, version)

    def finish(self, key: str, target: Callable[[], str | None]) -> None:
        """See :class:`Reach`. An object keeps its name until it is deleted."""

    def check_folder(self, folder: str) -> None:
        """See :class:`Reach`. Stores have no folders."""


class OnDisk:
    """Files on local disk, which are looked at just before."""

    def __init__(self, config: FilesConfig) -> None:
        self._config = config
        self._disk = LocalStore("/")
        self.store: Store = self._disk

    def key(self, path: str) -> str | None:
        """See :class:`Reach`."""
        return path.removeprefix("/") if path.startswith("/") else None

    def address(self, key: str) -> str:
        """See :class:`Reach`."""
        return f"/{key}"

    def version(self, path: str, entry: SourceOffset) -> str:
        """See :class:`Reach`."""
        key = path.removeprefix("/")
        found = self.store.head(key).version
        file = look_at(path)
        if file is None:
            raise ObjectGoneError(self.store.name, key)
        if not self._is_as_read(file, entry):
            raise ObjectChangedError(self.store.name, key, "It is not the file that was read.")
        return found

    def move(self, key: str, version: str, target: str) -> bool:
        """See :class:`Reach`."""
        return self._disk.move(key, version, target)

    def finish(self, key: str, target: Callable[[], str | None]) -> None:
        """See :class:`Reach`."""
        self._disk.finish(key, target)

    def check_folder(self, folder: str) -> None:
        """See :class:`Reach`. Of a disk that is not mounted mostly not even the folder is there that it lies in."""
        path = f"/{folder}".rstrip("/")
        parent = os.path.dirname(os.path.realpath(path))  # noqa: PTH120
        if not os.path.isdir(parent):  # noqa: PTH112
            raise TaskFailedError(_AWAY.format(path=path, parent=parent))

    def _is_as_read(self, file: FileSeen, entry: SourceOffset) -> bool:
        """Whether *entry* speaks of *file*, also when one was written over another in its place."""
        if file.size != number(entry, "size") or not file.is_still(str(entry.get("version"))):
            return False
        fingerprint = fingerprint_of(entry)
        packing = packing_of(file.path, file.head, self._config)
        return PrefixCheck().holds(file, packing, [fingerprint] if fingerprint is not None else [])


class Cleanup:
    """Does to files what ``files.after.commit`` says. Used by one thread.

    Doing it twice is as good as doing it once.
    """

    def __init__(self, config: FilesConfig) -> None:
        root = config.root
        self._reach: Reach = (
            OnDisk(config) if root is None else InStore(root=root, store=config.open_store(root))
        )
        act: dict[str, Callable[[str, str], bool]] = {
            "delete": self._delete,
            "move": self._move,
            "tag": self._tag,
        }
        self._act = act[config.after_commit]
        self._target = move_target(config) if config.after_commit == "move" else None
        self._tags = tags_of(config)
        self._marker = config.marker if config.takes_away else None

    def clean(self, path: str, entry: SourceOffset) -> Outcome:
        """Do it to the file at *path*, of which *entry* says that it was read to its end.

        Raises :class:`~headrace.connect.errors.TaskFailedError` and ``OSError``: it may go well later.
        """
        key = self._reach.key(path)
        if key is None:
            raise TaskFailedError(f"{path}: This is not in the place that files.path speaks of.")
        outcome = self._outcome(key, path, entry)
        if outcome is not Outcome.CHANGED and self._marker is not None:
            # Behind the file, and tried again with it: what comes under its name later waits for its own.
            self._clean_marker(self._marker.of(key))
        return outcome

    def _outcome(self, key: str, path: str, entry: SourceOffset) -> Outcome:
        try:
            self._finish(key)
            was_there = self._act(key, self._reach.version(path, entry))
        except ObjectGoneError as error:
            if error.key != key:
                raise
            return Outcome.GONE
        except ObjectChangedError:
            return Outcome.CHANGED
        return Outcome.DONE if was_there else Outcome.GONE

    def _clean_marker(self, key: str) -> None:
        try:
            self._finish(key)
            self._act(key, self._reach.store.head(key).version)
        except ObjectGoneError as error:
            if error.key != key:
                raise

    def _finish(self, key: str) -> None:
        self._reach.finish(key, lambda: None if self._target is None else self._moved(key))

    def _delete(self, key: str, version: str) -> bool:
        return self._reach.store.delete(key, version)

    def _move(self, key: str, version: str) -> bool:
        return self._reach.move(key, version, self._moved(key))

    def _moved(self, key: str) -> str:
        """What *key* is called when it is moved."""
        assert self._target is not None
        target = self._target.of(key)
        if self._target.is_selected(target):
            raise TaskFailedError(f"{self._reach.address(target)}: {IN_SELECTION}")
        self._reach.check_folder(self._target.folder)
        return target

    def _tag(self, key: str, version: str) -> bool:
        self._reach.store.tag(key, version, self._tags)
        return True
