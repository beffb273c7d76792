"""Objects of a store, opened for reading."""

from __future__ import annotations

from io import BufferedReader

from headrace.connect.errors import ConnectError, RetriableError, TaskFailedError
from headrace.connectors.files.details import SplitDetails
from headrace.connectors.files.file_opener import HEAD_BYTES, Opened
from headrace.connectors.files.selecting.addresses import Root
from headrace.stores.errors import StoreUnavailableError
from headrace.stores.later_reader import LaterReader
from headrace.stores.store import Store

_BUFFER_BYTES = 64 * 1024


class StoreFileOpener:
    """See :class:`~headrace.connectors.files.file_opener.FileOpener`. Every request asks for the planned version."""

    def __init__(self, root: Root, store: Store) -> None:
        self._root = root
        self._store = store

    def open(self, path: str, planned: SplitDetails, *, with_head: bool) -> Opened:
        """See :class:`~headrace.connectors.files.file_opener.FileOpener`. Asks nothing of the store without the head."""
        key = self._root.key(path)
        if key is None:
            raise TaskFailedError(f"{path}: This is not in {self._store.name}.")
        raw = LaterReader(
            lambda position: self._store.open(key, planned.version, position, size=planned.size),
            name=path,
            size=planned.size,
        )
        if not with_head:
            return Opened(raw=raw)
        # So that the first bytes are not asked for twice: a stream of a store does not go back for free.
        buffered = BufferedReader(raw, _BUFFER_BYTES)
        try:
            return Opened(raw=buffered, head=buffered.peek(HEAD_BYTES)[:HEAD_BYTES])
        except BaseException:
            buffered.close()
            raise

    def is_as_planned(self, path: str, planned: SplitDetails, *, grown: bool) -> bool:
        """See :class:`~headrace.connectors.files.file_opener.FileOpener`: what was read was of that version."""
        return True

    def digest(self, path: str, planned: SplitDetails) -> int | None:
        """See :class:`~headrace.connectors.files.file_opener.FileOpener`: an object is known by its version."""
        return None

    def failure(self, path: str, error: OSError) -> ConnectError:
        """See :class:`~headrace.connectors.files.file_opener.FileOpener`."""
        if isinstance(error, StoreUnavailableError):
            return RetriableError(f"{path}: It cannot be read now: {error}")
        return TaskFailedError(f"{path}: It cannot be read: {error}")
