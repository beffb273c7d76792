"""Deletes, moves or tags one file, as long as it is the one whose records are committed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from headrace.connect.errors import TaskFailedError
from headrace.connect.partition import SourceOffset
from headrace.connectors.files.cleanup.after_commit import IN_SELECTION, move_target, tags_of
from headrace.connectors.files.cleanup.cleanups import Outcome
from headrace.connectors.files.config import FilesConfig
from headrace.connectors.files.formats import packing_of
from headrace.connectors.files.local.listing import FileSeen, look_at
from headrace.connectors.files.local.prefix_check import PrefixCheck
from headrace.connectors.files.progress import number
from headrace.connectors.files.proof import proof_of
from headrace.connectors.files.selecting.addresses import Root
from headrace.connectors.files.stores.errors import ObjectChangedError, ObjectGoneError
from headrace.connectors.files.stores.local import LocalStore
from headrace.connectors.files.stores.store import Store


class Reach(Protocol):
    """Finds what entries speak of. Used by one thread at a time."""

    store: Store

    def key(self, path: str) -> str | None:
        """What *store* calls the file at *path*; ``None`` for one of another place."""
        ...

    def version(self, path: str, entry: SourceOffset) -> str:
        """The version, for *store*, of the file that *entry* speaks of.

        Raises ``ObjectChangedError``, ``ObjectGoneError``, and as ``Store`` does.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class InStore:
    """Objects at *root*: an entry's version is the store's."""

    root: Root
    store: Store

    def key(self, path: str) -> str | None:
        """See :class:`Reach`."""
        return self.root.key(path)

    def version(self, path: str, entry: SourceOffset) -> str:
        """See :class:`Reach`. Asks nothing: every action asks for the version itself."""
        return str(entry.get("version"))


class OnDisk:
    """Files on local disk, which are looked at just before."""

    def __init__(self, config: FilesConfig) -> None:
        self._config = config
        self.store: Store = LocalStore("/")

    def key(self, path: str) -> str | None:
        """See :class:`Reach`."""
        return path.removeprefix("/") if path.startswith("/") else None

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

    def _is_as_read(self, file: FileSeen, entry: SourceOffset) -> bool:
        """Whether *entry* speaks of *file*, also when one was written over another in its place."""
        if file.size != number(entry, "size") or not file.is_still(str(entry.get("version"))):
            return False
        proof = proof_of(entry)
        packing = packing_of(file.path, file.head, self._config)
        return PrefixCheck().holds(file, packing, [proof] if proof is not None else [])


class Cleanup:
    """Does to files what ``files.after.commit`` says. Used by one thread.

    Doing it twice is as good as doing it once.
    """

    def __init__(self, config: FilesConfig) -> None:
        root = config.root
        self._reach = (
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

    def clean(self, path: str, entry: SourceOffset) -> Outcome:
        """Do it to the file at *path*, of which *entry* says that it was read to its end.

        Raises :class:`~headrace.connect.errors.TaskFailedError` and ``OSError``: it may go well later.
        """
        key = self._reach.key(path)
        if key is None:
            raise TaskFailedError(f"{path}: This is not in the place that files.path speaks of.")
        try:
            was_there = self._act(key, self._reach.version(path, entry))
        except ObjectGoneError as error:
            if error.key != key:
                raise
            return Outcome.GONE
        except ObjectChangedError:
            return Outcome.CHANGED
        return Outcome.DONE if was_there else Outcome.GONE

    def _delete(self, key: str, version: str) -> bool:
        return self._reach.store.delete(key, version)

    def _move(self, key: str, version: str) -> bool:
        assert self._target is not None
        target = self._target.of(key)
        if self._target.is_selected(target):
            raise TaskFailedError(f"{self._reach.store.name}: {target!r}: {IN_SELECTION}")
        # The copy's length has been compared when it returns.
        self._reach.store.copy(key, version, target)
        return self._reach.store.delete(key, version)

    def _tag(self, key: str, version: str) -> bool:
        self._reach.store.tag(key, version, self._tags)
        return True
