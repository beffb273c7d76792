"""The committed offsets of each connector: in the worker's store, or in its own topic over that; any thread may ask."""

from __future__ import annotations

import copy
import threading
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Final, Protocol

from headrace.config.client_settings import OwnOffsets
from headrace.connect.errors import RetriableError, TaskFailedError
from headrace.connect.partition import OffsetsByNames, SourceOffset, SourcePartition, of_names
from headrace.connect.task import Offsets
from headrace.kafka.sender import OffsetEntry
from headrace.offsets.codec import decoded_entries
from headrace.offsets.secondary import SecondaryOffsetWriter
from headrace.offsets.target import OffsetTarget, OffsetTopic
from headrace.storage.protocols import OffsetStore

CLOSED: Final = (
    "This offset store was closed, because the connector has new settings or the worker is shutting down. "
    "Retry the request."
)
"""The error of a store that was closed while it was in use."""


class LockedOffsetStore:
    """One lock around one store, so that only one thread at a time owns it.

    However many threads read, each fails within the store's own limit for one read; after a write, that time
    begins when the write has ended.
    """

    def __init__(self, store: OffsetStore, *, clock: Callable[[], float] = time.monotonic) -> None:
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

    def foreign(self, connector: str) -> Offsets:
        """The offsets of *connector* that are now stored under other bytes than ours.

        Blocks; raises as ``OffsetStore.refresh`` does.
        """
        with self._refreshed():
            return self._store.foreign(connector)

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
        write: Callable[[Sequence[OffsetEntry]], None],
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


class OverlaidOffsets(OffsetsByNames):
    """A snapshot: the offset of each source partition is its *own*, or else the one *below* (KIP-618)."""

    def __init__(
        self,
        own: Mapping[SourcePartition, SourceOffset],
        below: Mapping[SourcePartition, SourceOffset],
    ) -> None:
        self._own = own
        self._below = below
        self._length: int | None = None

    def __getitem__(self, partition: SourcePartition) -> SourceOffset:
        own = self._own.get(partition)
        return self._below[partition] if own is None else own

    def __iter__(self) -> Iterator[SourcePartition]:
        yield from self._own
        yield from (each for each in self._below if each not in self._own)

    def __len__(self) -> int:
        if self._length is None:
            self._length = len(self._own) + sum(each not in self._own for each in self._below)
        return self._length

    def of_names(self, names: frozenset[str]) -> OverlaidOffsets:
        """See :class:`~headrace.connect.partition.OffsetsByNames`."""
        return OverlaidOffsets(of_names(self._own, names), of_names(self._below, names))

    def pairs(self) -> Iterator[tuple[SourcePartition, SourceOffset]]:
        """See :class:`~headrace.connect.partition.Paired`."""
        yield from self._own.items()
        yield from (pair for pair in self._below.items() if pair[0] not in self._own)


def missing_below(
    own: Mapping[SourcePartition, SourceOffset], below: Mapping[SourcePartition, SourceOffset]
) -> dict[SourcePartition, SourceOffset]:
    """Those of *own* that are missing or different in *below*."""
    return {
        partition: offset for partition, offset in own.items() if below.get(partition) != offset
    }


_Known = Mapping[SourcePartition, SourceOffset]
_NOTHING: _Known = MappingProxyType({})

Write = Callable[[Sequence[OffsetEntry]], None]
"""Commits records of an offsets topic."""


class ConnectorOffsets(Protocol):
    """The offsets of one connector. Any thread may call; calls block on the stores and raise what they raise."""

    def target(self, wanted: OffsetTarget) -> OffsetTarget:
        """Where tasks commit offsets now, if the settings say *wanted*."""
        ...

    def current(self) -> OffsetSnapshot:
        """All committed offsets, now. Writes nothing, and creates no topic."""
        ...

    def foreign(self) -> Offsets:
        """Offsets that are now stored under other bytes than ours in the store to which the tasks write."""
        ...

    def put(self, offsets: Offsets) -> None:
        """Commit *offsets*; ``None`` removes."""
        ...

    def commit(self, offsets: Offsets, write: Write) -> None:
        """Have *write* commit *offsets*, with tombstones for their other keys, to the store to which the tasks write."""
        ...

    def catch_up(self) -> None:
        """Have offsets copied soon that were committed but not copied because of a crash or an outage."""
        ...

    def settle(self, seconds: float) -> bool:
        """Wait until all copies are written, at most *seconds*; returns whether they are."""
        ...


class WorkerOffsets:
    """``ConnectorOffsets`` in the worker's store.

    If the connector had a topic of its own before, copies that are still pending are written before anything else.
    """

    def __init__(
        self, store: LockedOffsetStore, connector: str, copies: SecondaryOffsetWriter
    ) -> None:
        self._store = store
        self._connector = connector
        self._copies = copies

    def target(self, wanted: OffsetTarget) -> OffsetTarget:
        """The worker's store, so nothing is copied."""
        return replace(wanted, has_secondary=False) if isinstance(wanted, OffsetTopic) else wanted

    def current(self) -> OffsetSnapshot:
        """All committed offsets, now."""
        return self._store.current(self._connector)

    def foreign(self) -> Offsets:
        """Offsets that are now stored under other bytes than ours."""
        return self._store.foreign(self._connector)

    def put(self, offsets: Offsets) -> None:
        """Commit *offsets*; ``None`` removes."""
        self._copies.finish(self._connector)
        self._store.put(self._connector, offsets)

    def commit(self, offsets: Offsets, write: Write) -> None:
        """Have *write* commit *offsets*, with tombstones for their other keys."""
        self._copies.finish(self._connector)
        write(self._store.entries_for(self._connector, offsets))

    def catch_up(self) -> None:
        """Write pending copies now: slots write to the same store."""
        self._copies.finish(self._connector)

    def settle(self, seconds: float) -> bool:
        """Return true: there are no copies."""
        return True


class OwnTopic(Protocol):
    """A topic of source offsets besides the worker's."""

    def existing(self) -> LockedOffsetStore | None:
        """The store on this topic, ``None`` while the topic does not exist."""
        ...

    def ensured(self) -> LockedOffsetStore:
        """The store on this topic, which is created if it is missing."""
        ...


class OwnTopicOffsets:
    """``ConnectorOffsets`` in a topic of the connector's own, over those in the worker's store (KIP-618).

    Offsets committed in the *topic* are copied to the *worker*'s store afterwards. Removals are written to the
    worker's store first: a value left there would take effect again.
    """

    def __init__(
        self,
        connector: str,
        topic: OwnTopic,
        *,
        worker: LockedOffsetStore,
        copies: SecondaryOffsetWriter,
    ) -> None:
        self._connector = connector
        self._topic = topic
        self._worker = worker
        self._copies = copies
        self._last_overlay: tuple[_Known, _Known, _Known] | None = None

    def target(self, wanted: OffsetTarget) -> OffsetTarget:
        """Its own topic, with copies, so that the connector can later do without the topic."""
        return wanted

    def current(self) -> OffsetSnapshot:
        """All committed offsets, now: the connector's own, and the worker's where it has none."""
        # Its own first: an offset that is being removed leaves the worker's store first, and must not reappear.
        own = self._own()
        below = self._worker.current(self._connector).known()
        return OffsetSnapshot(self._overlaid(own, below))

    def foreign(self) -> Offsets:
        """Offsets that are now stored under other bytes than ours in the connector's topic."""
        return self._topic.ensured().foreign(self._connector)

    def put(self, offsets: Offsets) -> None:
        """Commit *offsets*; ``None`` removes."""
        store = self._topic.ensured()
        self._around(offsets, lambda: store.put(self._connector, offsets))

    def commit(self, offsets: Offsets, write: Write) -> None:
        """Have *write* commit *offsets*, with tombstones for their other keys in the connector's topic."""
        entries = self._topic.ensured().entries_for(self._connector, offsets)
        self._around(offsets, lambda: write(entries))

    def catch_up(self) -> None:
        """Have offsets copied soon that are in the connector's topic and not in the worker's store."""
        own = self._own()
        below = self._worker.current(self._connector).known()
        self._copies.later(self._connector, missing_below(own, below))

    def settle(self, seconds: float) -> bool:
        """Wait until all copies are written, at most *seconds*; returns whether they are."""
        return self._copies.settle(self._connector, seconds)

    def _around(self, offsets: Offsets, commit: Callable[[], None]) -> None:
        values = {each: offset for each, offset in offsets.items() if offset is not None}
        self._copies.first(self._connector, {each: None for each in offsets if each not in values})
        commit()
        self._copies.later(self._connector, values)

    def _own(self) -> _Known:
        store = self._topic.existing()
        return _NOTHING if store is None else store.current(self._connector).known()

    def _overlaid(self, own: _Known, below: _Known) -> _Known:
        """The same object as before if both arguments are, so that callers see that nothing has changed."""
        last = self._last_overlay
        if last is None or last[0] is not own or last[1] is not below:
            last = self._last_overlay = (own, below, OverlaidOffsets(own, below) if own else below)
        return last[2]


class NamesakeOffsets:
    """For a topic named as the worker's: delegates to *worker* if *is_worker_topic*, and otherwise to *own*.

    That is asked at each call, which may block on brokers and raise errors: nothing is written before it is known.
    """

    def __init__(
        self,
        is_worker_topic: Callable[[], bool],
        *,
        own: ConnectorOffsets,
        worker: ConnectorOffsets,
    ) -> None:
        self._is_worker_topic = is_worker_topic
        self._own = own
        self._worker = worker

    def target(self, wanted: OffsetTarget) -> OffsetTarget:
        """See ``ConnectorOffsets``."""
        return self._location().target(wanted)

    def current(self) -> OffsetSnapshot:
        """See ``ConnectorOffsets``."""
        return self._location().current()

    def foreign(self) -> Offsets:
        """See ``ConnectorOffsets``."""
        return self._location().foreign()

    def put(self, offsets: Offsets) -> None:
        """See ``ConnectorOffsets``."""
        self._location().put(offsets)

    def commit(self, offsets: Offsets, write: Write) -> None:
        """See ``ConnectorOffsets``."""
        self._location().commit(offsets, write)

    def catch_up(self) -> None:
        """See ``ConnectorOffsets``."""
        self._location().catch_up()

    def settle(self, seconds: float) -> bool:
        """Always those of *own*: the worker's have no copies, and a connector that ends must not wait for brokers."""
        return self._own.settle(seconds)

    def _location(self) -> ConnectorOffsets:
        return self._worker if self._is_worker_topic() else self._own


_Pairs = frozenset[tuple[str, str]]
_Location = tuple[str, _Pairs, _Pairs, _Pairs]


class OffsetsOwner(Protocol):
    """A connector, as far as its offsets are concerned."""

    @property
    def name(self) -> str:
        """Its name."""
        ...

    @property
    def own_offsets(self) -> OwnOffsets | None:
        """Its own topic of source offsets, if it has one."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedConnector:
    """A connector of which only this is known."""

    name: str
    own_offsets: OwnOffsets | None = None


class OpenedTopic(OwnTopic, Protocol):
    """An own topic that must be closed."""

    def is_worker_topic(self) -> bool:
        """Whether it is in fact the worker's topic. Blocks on brokers, and raises their errors."""
        ...

    def close(self) -> None:
        """Release its clients."""
        ...


class ConnectorOffsetStores:
    """The offset stores of all connectors of a worker. Any thread may call. The caller closes *worker*, its own store.

    *open_topic* opens a connector's own topic, which stays open while a connector may need it: reopening means
    reading all of it. Connectors that name the same topic in the same way share it. A caller that still reads a
    closed store gets a :class:`~headrace.connect.errors.RetriableError`, and a new store when it retries.
    """

    def __init__(
        self,
        worker: LockedOffsetStore,
        *,
        copies: SecondaryOffsetWriter | None = None,
        open_topic: Callable[[OwnOffsets], OpenedTopic] | None = None,
    ) -> None:
        self.worker = worker
        self.copies = copies or SecondaryOffsetWriter(worker.put)
        self._open_topic = open_topic
        self._lock = threading.Lock()
        self._topics: dict[_Location, OpenedTopic] = {}
        self._offsets: dict[tuple[str, _Location], ConnectorOffsets] = {}

    def of(self, connector: OffsetsOwner) -> ConnectorOffsets:
        """The offsets of *connector*; this call contacts no broker."""
        own = connector.own_offsets
        if own is None:
            return WorkerOffsets(self.worker, connector.name, self.copies)
        with self._lock:
            key = (connector.name, _location(own))
            if key not in self._offsets:
                self._offsets[key] = self._opened(connector.name, own)
            return self._offsets[key]

    def keep_only(self, connector: OffsetsOwner) -> None:
        """Close stores that no connector needs any more; called when *connector* starts, and after it was deleted.

        Blocks while another thread reads such a store.
        """
        own = connector.own_offsets
        kept = None if own is None else (connector.name, _location(own))
        with self._lock:
            for key in [each for each in self._offsets if each[0] == connector.name]:
                if key != kept:
                    del self._offsets[key]
            used = {place for _, place in self._offsets}
            unused = [self._topics.pop(place) for place in self._topics.keys() - used]
        for each in unused:
            each.close()

    def close(self) -> None:
        """Write pending copies, and close the stores that were opened here."""
        self.copies.close()
        with self._lock:
            opened, self._topics, self._offsets = list(self._topics.values()), {}, {}
        for each in opened:
            each.close()

    def _opened(self, name: str, own: OwnOffsets) -> ConnectorOffsets:
        topic = self._topic(own)
        both = OwnTopicOffsets(name, topic, worker=self.worker, copies=self.copies)
        if own.namesake is None:
            return both
        worker_offsets = WorkerOffsets(self.worker, name, self.copies)
        return NamesakeOffsets(topic.is_worker_topic, own=both, worker=worker_offsets)

    def _topic(self, own: OwnOffsets) -> OpenedTopic:
        if self._open_topic is None:
            raise TaskFailedError(
                f"This worker cannot open a connector's own offsets topic ({own.topic})."
            )
        key = _location(own)
        if key not in self._topics:
            self._topics[key] = self._open_topic(own)
        return self._topics[key]


def _location(own: OwnOffsets) -> _Location:
    return own.topic, _pairs(own.reader), _pairs(own.writer), _pairs(own.admin)


def _pairs(settings: Mapping[str, str]) -> _Pairs:
    return frozenset(settings.items())
