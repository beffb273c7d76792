"""Stores of committed source offsets: what a store promises, one lock around it for many threads, and snapshots."""

from __future__ import annotations

import copy
import threading
import time
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from typing import Final, Protocol

from headrace.connect.errors import RetriableError
from headrace.connect.group_offsets import GroupEntry
from headrace.connect.partition import SourceOffset, SourcePartition
from headrace.connect.task import Offsets
from headrace.kafka.sender import OffsetEntry
from headrace.offsets.codec import decoded_entries
from headrace.offsets.group_codec import GroupChange

CLOSED: Final = (
    "This offset store was closed, because the connector has new settings or the worker is shutting down. "
    "Retry the request."
)
"""The error of a store that was closed while it was in use."""


class OffsetTransaction(Protocol):
    """Commits the offsets of one connector in a transaction of the caller's, in the form that the store asks for."""

    def commit_records(self, entries: Sequence[OffsetEntry]) -> None:
        """Commit *entries*, records of the topic to which the connector's tasks write."""
        ...

    def commit_group(self, change: GroupChange) -> None:
        """Commit *change* to the group to which the connector's tasks commit."""
        ...


WriteEntries = Callable[[Sequence[OffsetEntry]], None]
"""Commits records of an offsets topic."""


class OffsetStore(Protocol):
    """Committed source offsets, by connector. One owner thread; the only record of progress."""

    def refresh(self) -> None:
        """See everything committed before this call.

        Blocks; raises :class:`~headrace.connect.errors.RetriableError` naming the store when its end is
        not reached before the deadline that the store was made with.
        """
        ...

    def known(self, connector: str) -> Mapping[SourcePartition, SourceOffset]:
        """All offsets of *connector* as of the last ``refresh``; a snapshot that does not change."""
        ...

    def put(self, connector: str, offsets: Offsets) -> None:
        """Commit *offsets* atomically; ``None`` removes. Durable on return.

        Not for offsets that must share a transaction with records: those go through the sender.
        """
        ...

    def close(self) -> None:
        """Release the store's clients or files."""
        ...


class OffsetRecordStore(OffsetStore, Protocol):
    """An offset store that keeps the records of an offsets topic, in which one offset may lie under several keys.

    Kafka Connect finds an offset by the bytes of its key, and other programs may encode a key in another way: when its
    offset changes, tombstones are written for the other keys.
    """

    def is_empty(self) -> bool:
        """Whether no connector has an offset, as of the last ``refresh``."""
        ...

    def differently_encoded(self, connector: str) -> Mapping[SourcePartition, SourceOffset]:
        """Those of ``known`` that are stored under other bytes than ours, alone or beside ours.

        Writing them back unchanged leaves only our bytes. Called once when a connector is taken over.
        """
        ...

    def entries_for(self, connector: str, offsets: Offsets) -> list[OffsetEntry]:
        """The records that ``put`` would write, for a caller that writes them in a transaction of its own.

        They include tombstones for other bytes of the same partitions, as of the last ``refresh``.
        Raises ``ValueError`` for text that cannot be stored.
        """
        ...


class LockedOffsetStore:
    """One lock around one store, so that only one thread at a time owns it.

    However many threads read, each fails within the store's own limit for one read; after a write, that time
    begins when the write has ended.
    """

    def __init__(
        self, store: OffsetRecordStore, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._store = store
        self._clock = clock
        self._lock = threading.Lock()
        self._is_closed = False
        self._late: tuple[float, RetriableError] | None = None
        """When and why the last read failed, if it did. Guarded by the lock."""

    def current(self, connector: str) -> OffsetSnapshot:
        """All committed offsets of *connector*, now. Blocks; raises as ``OffsetStore.refresh`` does."""
        with self._refreshed():
            return OffsetSnapshot(self._store.known(connector))

    def has_any(self) -> bool:
        """Whether any connector has an offset, now. Blocks; raises as ``OffsetStore.refresh`` does."""
        with self._refreshed():
            return not self._store.is_empty()

    def differently_encoded(self, connector: str) -> Offsets:
        """The offsets of *connector* that are now stored under other bytes than ours.

        Blocks; raises as ``OffsetStore.refresh`` does.
        """
        with self._refreshed():
            return self._store.differently_encoded(connector)

    def entries_for(self, connector: str, offsets: Offsets) -> Sequence[OffsetEntry]:
        """*offsets* as records of an offsets topic, with tombstones for their other keys."""
        with self._open():
            return self._store.entries_for(connector, offsets)

    def put(self, connector: str, offsets: Offsets) -> None:
        """Commit *offsets*; ``None`` removes."""
        with self._open():
            self._store.put(connector, offsets)

    def change(
        self,
        connector: str,
        offsets: Offsets,
        write: WriteEntries,
    ) -> None:
        """Have *write* commit *offsets*, given as records, together with other data.

        For stores that share a transaction with other data. Blocks; raises what *write* raises.
        """
        with self._refreshed():
            write(self._store.entries_for(connector, offsets))

    def put_entries(self, entries: Sequence[OffsetEntry]) -> None:
        """Commit acknowledged offsets of one connector, as records of an offsets topic.

        Called by the channel's threads. Raises ``ValueError`` for a record that cannot be read.
        """
        for connector, each in decoded_entries(entries).items():
            self.put(connector, each)

    def close(self) -> None:
        """Close the store; later calls raise ``RetriableError``."""
        with self._lock:
            self._is_closed = True
            self._store.close()

    @contextmanager
    def _open(self) -> Generator[None]:
        with self._lock:
            if self._is_closed:
                raise RetriableError(CLOSED)
            yield

    @contextmanager
    def _refreshed(self) -> Generator[None]:
        """The lock, with the store refreshed."""
        asked_at = self._clock()
        with self._open():
            # A read that has waited for one that failed would fail in the same way.
            if self._late is not None and self._late[0] >= asked_at:
                raise copy.copy(self._late[1])
            self._refresh()
            yield

    def _refresh(self) -> None:
        self._late = None
        try:
            self._store.refresh()
        except RetriableError as error:
            self._late = (self._clock(), error)
            raise


class OffsetSnapshot:
    """Committed offsets at one moment; ``KnownOffsets`` for connectors.

    *unnamed* are entries of the connector's consumer group that are no offsets of its.
    """

    def __init__(
        self,
        offsets: Mapping[SourcePartition, SourceOffset],
        *,
        unnamed: tuple[GroupEntry, ...] = (),
    ) -> None:
        self._offsets = offsets
        self.unnamed = unnamed

    def offset(self, partition: SourcePartition) -> SourceOffset | None:
        """The committed offset of *partition*, or ``None``."""
        return self._offsets.get(partition)

    def offsets(
        self, partitions: Iterable[SourcePartition]
    ) -> Mapping[SourcePartition, SourceOffset | None]:
        """The committed offsets of several partitions."""
        return {each: self._offsets.get(each) for each in partitions}

    def known(self) -> Mapping[SourcePartition, SourceOffset]:
        """All committed offsets of the connector."""
        return self._offsets
