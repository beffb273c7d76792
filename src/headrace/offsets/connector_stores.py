"""The committed offsets of each connector: in the worker's store, or in its own topic over that; any thread may ask."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Protocol

from headrace.config.client_settings import ConnectorOffsetsGroup, ConnectorOffsetsTopic
from headrace.connect.errors import TaskFailedError
from headrace.connect.task import Offsets
from headrace.offsets.consumer_group import (
    GroupClient,
    GroupOffsets,
    connector_group,
    open_group,
)
from headrace.offsets.secondary import ConnectorTopic, ConnectorTopicOffsets, SecondaryOffsetWriter
from headrace.offsets.store import LockedOffsetStore, OffsetSnapshot, OffsetTransaction
from headrace.offsets.target import OffsetTarget, OffsetTopic


class ConnectorOffsets(Protocol):
    """The offsets of one connector. Any thread may call; calls block on the stores and raise what they raise."""

    def target(self, wanted: OffsetTarget) -> OffsetTarget:
        """Where tasks commit offsets now, if the settings say *wanted*."""
        ...

    def current(self) -> OffsetSnapshot:
        """All committed offsets, now. Writes nothing, and creates no topic."""
        ...

    def differently_encoded(self) -> Offsets:
        """Offsets that are now stored under other bytes than ours in the store to which the tasks write."""
        ...

    def put(self, offsets: Offsets) -> None:
        """Commit *offsets*; ``None`` removes."""
        ...

    def commit(self, offsets: Offsets, transaction: OffsetTransaction) -> None:
        """Have *transaction* commit *offsets* to the store to which the tasks write; what else stored them is removed."""
        ...

    def as_stored(self, offsets: Offsets) -> Offsets:
        """*offsets* in the form in which :meth:`current` has them once they are committed.

        Raises :class:`~headrace.connect.errors.OffsetsError` for what cannot be stored.
        """
        ...

    def refuse_other_users(self) -> None:
        """Raise :class:`~headrace.connect.errors.TaskFailedError` when others use the store as something else.

        Called at each start, once the connector has no other driver.
        """
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

    def differently_encoded(self) -> Offsets:
        """Offsets that are now stored under other bytes than ours."""
        return self._store.differently_encoded(self._connector)

    def put(self, offsets: Offsets) -> None:
        """Commit *offsets*; ``None`` removes."""
        self._copies.finish(self._connector)
        self._store.put(self._connector, offsets)

    def commit(self, offsets: Offsets, transaction: OffsetTransaction) -> None:
        """Have *transaction* commit *offsets*, with tombstones for their other keys."""
        self._copies.finish(self._connector)
        transaction.commit_records(self._store.entries_for(self._connector, offsets))

    def as_stored(self, offsets: Offsets) -> Offsets:
        """*offsets* themselves."""
        return offsets

    def refuse_other_users(self) -> None:
        """Do nothing: only workers write to their store."""

    def catch_up(self) -> None:
        """Write pending copies now: slots write to the same store."""
        self._copies.finish(self._connector)

    def settle(self, seconds: float) -> bool:
        """Return true: there are no copies."""
        return True


class SameNamedTopicOffsets:
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

    def differently_encoded(self) -> Offsets:
        """See ``ConnectorOffsets``."""
        return self._location().differently_encoded()

    def put(self, offsets: Offsets) -> None:
        """See ``ConnectorOffsets``."""
        self._location().put(offsets)

    def commit(self, offsets: Offsets, transaction: OffsetTransaction) -> None:
        """See ``ConnectorOffsets``."""
        self._location().commit(offsets, transaction)

    def as_stored(self, offsets: Offsets) -> Offsets:
        """*offsets* themselves, wherever they are."""
        return offsets

    def refuse_other_users(self) -> None:
        """Do nothing: only workers write to either topic."""

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
_GroupLocation = tuple[str, str, _Pairs, _Pairs]


class OffsetsOwner(Protocol):
    """A connector, as far as its offsets are concerned."""

    @property
    def name(self) -> str:
        """Its name."""
        ...

    @property
    def offsets_topic(self) -> ConnectorOffsetsTopic | None:
        """Its own topic of source offsets, if it has one."""
        ...

    @property
    def offsets_group(self) -> ConnectorOffsetsGroup | None:
        """The consumer group that holds its source offsets, if that is one."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedConnector:
    """A connector of which only this is known."""

    name: str
    offsets_topic: ConnectorOffsetsTopic | None = None
    offsets_group: ConnectorOffsetsGroup | None = None


class OpenedConnectorTopic(ConnectorTopic, Protocol):
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
    reading all of it. Connectors that name the same topic in the same way share it. *open_group* makes a client for the
    group of a connector, which no other connector uses. *worker_topic* is the topic that *worker* is in, if it is in one. A
    caller that still reads a closed store gets a
    :class:`~headrace.connect.errors.RetriableError`, and a new store when it retries.
    """

    def __init__(
        self,
        worker: LockedOffsetStore,
        *,
        copies: SecondaryOffsetWriter | None = None,
        open_topic: Callable[[ConnectorOffsetsTopic], OpenedConnectorTopic] | None = None,
        open_group: Callable[[ConnectorOffsetsGroup], GroupClient] = open_group,
        worker_topic: str | None = None,
    ) -> None:
        self.worker = worker
        self.copies = copies or SecondaryOffsetWriter(worker.put)
        self._open_topic = open_topic
        self._open_group = open_group
        self._worker_topic = worker_topic
        self._lock = threading.Lock()
        self._topics: dict[_Location, OpenedConnectorTopic] = {}
        self._offsets: dict[tuple[str, _Location], ConnectorOffsets] = {}
        self._groups: dict[tuple[str, _GroupLocation], GroupOffsets] = {}

    def of(self, connector: OffsetsOwner) -> ConnectorOffsets:
        """The offsets of *connector*; this call contacts no broker."""
        if connector.offsets_group is not None:
            return self._of_group(connector.name, connector.offsets_group)
        own = connector.offsets_topic
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
        own, group = connector.offsets_topic, connector.offsets_group
        kept = None if own is None else (connector.name, _location(own))
        kept_group = None if group is None else (connector.name, _group_location(group))
        with self._lock:
            names_groups = [each for each in self._groups if each[0] == connector.name]
            left = [self._groups.pop(each) for each in names_groups if each != kept_group]
            for key in [each for each in self._offsets if each[0] == connector.name]:
                if key != kept:
                    del self._offsets[key]
            used = {place for _, place in self._offsets}
            unused = [self._topics.pop(place) for place in self._topics.keys() - used]
        for each in (*left, *unused):
            each.close()

    def close(self) -> None:
        """Write pending copies, and close the stores that were opened here."""
        self.copies.close()
        with self._lock:
            opened = [*self._topics.values(), *self._groups.values()]
            self._topics, self._offsets, self._groups = {}, {}, {}
        for each in opened:
            each.close()

    def _of_group(self, name: str, own: ConnectorOffsetsGroup) -> GroupOffsets:
        key = (name, _group_location(own))
        with self._lock:
            if key not in self._groups:
                self._groups[key] = connector_group(
                    own,
                    name,
                    self._open_group,
                    worker=self.worker,
                    worker_topic=self._worker_topic,
                )
            return self._groups[key]

    def _opened(self, name: str, own: ConnectorOffsetsTopic) -> ConnectorOffsets:
        topic = self._topic(own)
        both = ConnectorTopicOffsets(name, topic, worker=self.worker, copies=self.copies)
        if not own.is_same_named:
            return both
        worker_offsets = WorkerOffsets(self.worker, name, self.copies)
        return SameNamedTopicOffsets(topic.is_worker_topic, own=both, worker=worker_offsets)

    def _topic(self, own: ConnectorOffsetsTopic) -> OpenedConnectorTopic:
        if self._open_topic is None:
            raise TaskFailedError(
                f"This worker cannot open a connector's own offsets topic ({own.topic})."
            )
        key = _location(own)
        if key not in self._topics:
            self._topics[key] = self._open_topic(own)
        return self._topics[key]


def _location(own: ConnectorOffsetsTopic) -> _Location:
    return own.topic, _pairs(own.reader), _pairs(own.writer), _pairs(own.admin)


def _group_location(own: ConnectorOffsetsGroup) -> _GroupLocation:
    group = own.group
    return group.group_id, group.codec, _pairs(group.config), _pairs(own.connection)


def _pairs(settings: Mapping[str, str]) -> _Pairs:
    return frozenset(settings.items())
