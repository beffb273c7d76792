"""The offset store as several threads use it: the connectors' own, and those of the channel."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence

from headrace.connect.partition import SourceOffset, SourcePartition
from headrace.connect.task import Offsets
from headrace.kafka.sender import OffsetEntry
from headrace.storage.offset_codec import Unreadable, decoded_key, decoded_value
from headrace.storage.protocols import OffsetStore


class OffsetDesk:
    """One lock around one store, so that only one thread at a time owns it."""

    def __init__(self, store: OffsetStore) -> None:
        self._store = store
        self._lock = threading.Lock()

    def current(self, connector: str) -> OffsetSnapshot:
        """All committed offsets of *connector*, now. Blocks; raises as ``OffsetStore.refresh`` does."""
        with self._lock:
            self._store.refresh()
            return OffsetSnapshot(self._store.known(connector))

    def foreign(self, connector: str) -> Offsets:
        """The offsets of *connector* that others stored under bytes of their own, now.

        Blocks; raises as ``OffsetStore.refresh`` does.
        """
        with self._lock:
            self._store.refresh()
            return self._store.foreign(connector)

    def entries_for(self, connector: str, offsets: Offsets) -> Sequence[OffsetEntry]:
        """*offsets* as records of an offsets topic, with tombstones for others' bytes of them."""
        with self._lock:
            return self._store.entries_for(connector, offsets)

    def put(self, connector: str, offsets: Offsets) -> None:
        """Commit *offsets*; ``None`` removes."""
        with self._lock:
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
        with self._lock:
            self._store.refresh()
            write(self._store.entries_for(connector, offsets))

    def put_entries(self, entries: Sequence[OffsetEntry]) -> None:
        """Commit acknowledged offsets of one connector, as records of an offsets topic.

        Called by the channel's threads. Raises ``ValueError`` for a record that cannot be read.
        """
        offsets: dict[str, dict[SourcePartition, SourceOffset | None]] = {}
        for key, value in entries:
            place, offset = decoded_key(key), decoded_value(value)
            if isinstance(place, Unreadable) or isinstance(offset, Unreadable):
                raise ValueError(f"An offset that cannot be stored was handed over: {key!r}.")  # noqa: TRY004
            offsets.setdefault(place.connector, {})[place.partition] = offset
        for connector, each in offsets.items():
            self.put(connector, each)

    def close(self) -> None:
        """Close the store."""
        with self._lock:
            self._store.close()


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
