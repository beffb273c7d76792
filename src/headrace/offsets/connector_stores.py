"""The committed offsets of each connector, wherever they are: the worker's store, or its own topic over that; any thread may ask."""

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
    "These offsets are not read any more: the connector that they belong to has other settings by now, or the "
    "worker is ending. Ask again."
)
"""Says why a store is refused that was closed while somebody used it."""


class LockedOffsetStore:
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
    """Those of *own* that are not, or not the same, *below*."""
    return {
        partition: offset for partition, offset in own.items() if below.get(partition) != offset
    }


_Known = Mapping[SourcePartition, SourceOffset]
_NOTHING: _Known = MappingProxyType({})

Write = Callable[[Sequence[OffsetEntry]], None]
"""Commits records of an offsets topic."""


class ConnectorOffsets(Protocol):
    """One connector's. Any thread may call; each call blocks on the stores and raises what they raise."""

    def target(self, wanted: OffsetTarget) -> OffsetTarget:
        """Where tasks commit offsets now, of which settings say *wanted*."""
        ...

    def current(self) -> OffsetSnapshot:
        """All committed offsets, now. Writes nothing, and makes no topic."""
        ...

    def foreign(self) -> Offsets:
        """Those that others stored under bytes of their own, now, in the place that the connector's tasks write."""
        ...

    def put(self, offsets: Offsets) -> None:
        """Commit *offsets*; ``None`` removes."""
        ...

    def commit(self, offsets: Offsets, write: Write) -> None:
        """Have *write* commit *offsets*, with tombstones for others' bytes of them, where the tasks write."""
        ...

    def catch_up(self) -> None:
        """Have what was committed and not copied, because of a kill or an outage, copied soon."""
        ...

    def settle(self, seconds: float) -> bool:
        """Wait until all copies are written, at most *seconds*; whether they are."""
        ...


class WorkerOffsets:
    """``ConnectorOffsets`` in the worker's store.

    Copies that still wait, of a topic of its own that the connector had before, are written before anything else is.
    """

    def __init__(
        self, desk: LockedOffsetStore, connector: str, copies: SecondaryOffsetWriter
    ) -> None:
        self._desk = desk
        self._connector = connector
        self._copies = copies

    def target(self, wanted: OffsetTarget) -> OffsetTarget:
        """There, so nothing is copied."""
        return replace(wanted, has_secondary=False) if isinstance(wanted, OffsetTopic) else wanted

    def current(self) -> OffsetSnapshot:
        """All committed offsets, now."""
        return self._desk.current(self._connector)

    def foreign(self) -> Offsets:
        """Those that others stored under bytes of their own, now."""
        return self._desk.foreign(self._connector)

    def put(self, offsets: Offsets) -> None:
        """Commit *offsets*; ``None`` removes."""
        self._copies.finish(self._connector)
        self._desk.put(self._connector, offsets)

    def commit(self, offsets: Offsets, write: Write) -> None:
        """Have *write* commit *offsets*, with tombstones for others' bytes of them."""
        self._copies.finish(self._connector)
        write(self._desk.entries_for(self._connector, offsets))

    def catch_up(self) -> None:
        """Have copies that wait written at once: slots write to the same place."""
        self._copies.finish(self._connector)

    def settle(self, seconds: float) -> bool:
        """At once: there are no copies."""
        return True


class OwnTopic(Protocol):
    """A topic of source offsets besides the worker's."""

    def desk(self) -> LockedOffsetStore | None:
        """The store over it, ``None`` while there is no such topic."""
        ...

    def ensured(self) -> LockedOffsetStore:
        """The store over it; the topic is made where it is missing."""
        ...


class OwnTopicOffsets:
    """``ConnectorOffsets`` in a topic of the connector's own, over those in the worker's store (KIP-618).

    What is committed in the *topic* is copied to the *worker*'s store afterwards, and what is removed is removed
    there first: a value that is left there would count again.
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
        self._seen: tuple[_Known, _Known, _Known] | None = None

    def target(self, wanted: OffsetTarget) -> OffsetTarget:
        """In its own topic, with copies, so that the connector may give it up."""
        return wanted

    def current(self) -> OffsetSnapshot:
        """All committed offsets, now: the connector's own, and the worker's where it has none."""
        # Its own first: what is being removed is gone from the worker's store before, and must not show there.
        own = self._own()
        below = self._worker.current(self._connector).known()
        return OffsetSnapshot(self._overlaid(own, below))

    def foreign(self) -> Offsets:
        """Those that others stored under bytes of their own in the connector's topic, now."""
        return self._topic.ensured().foreign(self._connector)

    def put(self, offsets: Offsets) -> None:
        """Commit *offsets*; ``None`` removes."""
        desk = self._topic.ensured()
        self._around(offsets, lambda: desk.put(self._connector, offsets))

    def commit(self, offsets: Offsets, write: Write) -> None:
        """Have *write* commit *offsets*, with tombstones for others' bytes of them in the connector's topic."""
        entries = self._topic.ensured().entries_for(self._connector, offsets)
        self._around(offsets, lambda: write(entries))

    def catch_up(self) -> None:
        """Have what is in the connector's topic and not in the worker's store copied soon."""
        own = self._own()
        below = self._worker.current(self._connector).known()
        self._copies.later(self._connector, missing_below(own, below))

    def settle(self, seconds: float) -> bool:
        """Wait until all copies are written, at most *seconds*; whether they are."""
        return self._copies.settle(self._connector, seconds)

    def _around(self, offsets: Offsets, commit: Callable[[], None]) -> None:
        values = {each: offset for each, offset in offsets.items() if offset is not None}
        self._copies.first(self._connector, {each: None for each in offsets if each not in values})
        commit()
        self._copies.later(self._connector, values)

    def _own(self) -> _Known:
        desk = self._topic.desk()
        return _NOTHING if desk is None else desk.current(self._connector).known()

    def _overlaid(self, own: _Known, below: _Known) -> _Known:
        """The same object as before where both are: that tells that nothing is new."""
        seen = self._seen
        if seen is None or seen[0] is not own or seen[1] is not below:
            seen = self._seen = (own, below, OverlaidOffsets(own, below) if own else below)
        return seen[2]


class NamesakeOffsets:
    """``ConnectorOffsets`` that are the *worker*'s where *is_worker_s*, and otherwise the connector's *own*.

    Asked at each call, which may block on brokers and raise what they do: nothing is written before it is known.
    """

    def __init__(
        self,
        is_worker_s: Callable[[], bool],
        *,
        own: ConnectorOffsets,
        worker: ConnectorOffsets,
    ) -> None:
        self._is_worker_s = is_worker_s
        self._own = own
        self._worker = worker

    def target(self, wanted: OffsetTarget) -> OffsetTarget:
        """As where they are."""
        return self._place().target(wanted)

    def current(self) -> OffsetSnapshot:
        """As where they are."""
        return self._place().current()

    def foreign(self) -> Offsets:
        """As where they are."""
        return self._place().foreign()

    def put(self, offsets: Offsets) -> None:
        """As where they are."""
        self._place().put(offsets)

    def commit(self, offsets: Offsets, write: Write) -> None:
        """As where they are."""
        self._place().commit(offsets, write)

    def catch_up(self) -> None:
        """As where they are."""
        self._place().catch_up()

    def settle(self, seconds: float) -> bool:
        """As for those of its own: there are no copies otherwise, and a connector that ends asks no broker."""
        return self._own.settle(seconds)

    def _place(self) -> ConnectorOffsets:
        return self._worker if self._is_worker_s() else self._own


_Pairs = frozenset[tuple[str, str]]
_Place = tuple[str, _Pairs, _Pairs, _Pairs]


class OffsetsOwner(Protocol):
    """A connector, as far as its offsets go."""

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
    """A connector of which no more is known."""

    name: str
    own_offsets: OwnOffsets | None = None


class OpenedTopic(OwnTopic, Protocol):
    """One that is closed in the end."""

    def is_worker_s(self) -> bool:
        """Whether it is the worker's own after all. Blocks on brokers; raises what they do."""
        ...

    def close(self) -> None:
        """Release what it holds."""
        ...


class ConnectorOffsetStores:
    """All of a worker's. Any thread may call. *worker* is the worker's own store, which its caller closes.

    *open_topic* makes the reader of a connector's own topic, which stays open while a connector may need it:
    to begin again is to read all of it. Connectors that name the same topic in the same way share it. Whoever still
    reads what is closed gets a :class:`~headrace.connect.errors.RetriableError`, and another reader when it asks again.
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
        self._topics: dict[_Place, OpenedTopic] = {}
        self._offsets: dict[tuple[str, _Place], ConnectorOffsets] = {}

    def of(self, connector: OffsetsOwner) -> ConnectorOffsets:
        """The connector's; asks no broker by itself."""
        own = connector.own_offsets
        if own is None:
            return WorkerOffsets(self.worker, connector.name, self.copies)
        with self._lock:
            key = (connector.name, _place(own))
            if key not in self._offsets:
                self._offsets[key] = self._placed(connector.name, own)
            return self._offsets[key]

    def keep_only(self, connector: OffsetsOwner) -> None:
        """Close what no connector needs now that *connector* is as it is; called when it starts, and when it is gone.

        Blocks while another thread is reading that.
        """
        own = connector.own_offsets
        kept = None if own is None else (connector.name, _place(own))
        with self._lock:
            for key in [each for each in self._offsets if each[0] == connector.name]:
                if key != kept:
                    del self._offsets[key]
            used = {place for _, place in self._offsets}
            unused = [self._topics.pop(place) for place in self._topics.keys() - used]
        for each in unused:
            each.close()

    def close(self) -> None:
        """Write copies that wait, and release what was opened here."""
        self.copies.close()
        with self._lock:
            opened, self._topics, self._offsets = list(self._topics.values()), {}, {}
        for each in opened:
            each.close()

    def _placed(self, name: str, own: OwnOffsets) -> ConnectorOffsets:
        topic = self._topic(own)
        both = OwnTopicOffsets(name, topic, worker=self.worker, copies=self.copies)
        if own.namesake is None:
            return both
        worker_s = WorkerOffsets(self.worker, name, self.copies)
        return NamesakeOffsets(topic.is_worker_s, own=both, worker=worker_s)

    def _topic(self, own: OwnOffsets) -> OpenedTopic:
        if self._open_topic is None:
            raise TaskFailedError(
                f"This worker opens no topic besides its own, such as {own.topic}."
            )
        key = _place(own)
        if key not in self._topics:
            self._topics[key] = self._open_topic(own)
        return self._topics[key]


def _place(own: OwnOffsets) -> _Place:
    return own.topic, _pairs(own.reader), _pairs(own.writer), _pairs(own.admin)


def _pairs(settings: Mapping[str, str]) -> _Pairs:
    return frozenset(settings.items())
