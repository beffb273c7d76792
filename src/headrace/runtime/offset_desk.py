"""The offset store as several threads use it: the connectors' own, and those of the channel."""

from __future__ import annotations

import copy
import threading
import time
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from typing import Final

from headrace.connect.errors import RetriableError
from headrace.connect.partition import SourceOffset, SourcePartition
from headrace.connect.task import Offsets
from headrace.kafka.sender import OffsetEntry
from headrace.storage.offset_codec import decoded_entries
from headrace.storage.protocols import OffsetStore

CLOSED: Final = (
    "These offsets are not read any more: the connector that they belong to has other settings by now, or the "
    "worker is ending. Ask again."
)
"""Says why a store is refused that was closed while somebody used it."""


class OffsetDesk:
    """One lock around one store, so that only one thread at a time owns it.

    However many read, each learns within the store's own limit for one read that it is late; behind a write,
    that time begins when the write has ended.
    """

    def __init__(self, store: OffsetStore, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._store = store
        self._clock = clock
        self._lock = threading.Lock()
        self._is_closed = False
        self._late: tuple[float, RetriableError] | None = None
        """When the last read was given up and why, if it was. Under the lock."""

    def current(self, connector: str) -> OffsetSnapshot:
        """All committed offsets of *connector*, now. Blocks; raises as ``OffsetStore.refresh`` does."""
        with self._refreshed():
            return OffsetSnapshot(self._store.known(connector))

    def foreign(self, connector: str) -> Offsets:
        """The offsets of *connector* that others stored under bytes of their own, now.

        Blocks; raises as ``OffsetStore.refresh`` does.
        """
        with self._refreshed():
            return self._store.foreign(connector)

    def entries_for(self, connector: str, offsets: Offsets) -> Sequence[OffsetEntry]:
        """*offsets* as records of an offsets topic, with tombstones for others' bytes of them."""
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
        write: Callable[[Sequence[OffsetEntry]], None],
    ) -> None:
        """Have *write* commit *offsets*, given as records, together with something else of its own.

        For stores that share a transaction with other things. Blocks; raises what *write* raises.
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
        """Close the store; whoever comes later is refused by a ``RetriableError``."""
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
        """The lock, with the store as it is now."""
        asked_at = self._clock()
        with self._open():
            # What one read could not reach, another that has waited for it cannot have reached, either.
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
    """Committed offsets at one moment; ``KnownOffsets`` for connectors."""

    def __init__(self, offsets: Mapping[SourcePartition, SourceOffset]) -> None:
        self._offsets = offsets

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
