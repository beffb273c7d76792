"""Offsets in a topic of the connector's own, over secondary offsets: copies in the worker's store, written after the commit (KIP-618)."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Protocol

from headrace.connect.errors import ConnectError, ConnectorFencedError, RetriableError
from headrace.connect.partition import OffsetsByNames, SourceOffset, SourcePartition, of_names
from headrace.connect.task import Offsets
from headrace.kafka.sender import OffsetEntry
from headrace.offsets.codec import decoded_entries
from headrace.offsets.store import LockedOffsetStore, OffsetSnapshot, OffsetTransaction
from headrace.offsets.target import OffsetTarget

_log = logging.getLogger(__name__)
_RETRY_SECONDS = 5.0

Put = Callable[[str, Offsets], None]
"""Commits offsets of a connector in the worker's store; raises when that fails."""


class SecondaryOffsetWriter:
    """Copies the offsets of connectors with topics of their own to the worker's store. Any thread may call.

    Copies of one source partition are written in the order of the calls, and of pending ones only the last. A
    thread writes them; a failure is logged, and retried with the next copy, at the latest after *retry_seconds*.
    They are written by *put*, unless the connector's driver has set another function; after its end they wait for the
    next driver. Copies of a connector that another worker has taken over are dropped: that worker writes them.
    """

    def __init__(self, put: Put, *, retry_seconds: float = _RETRY_SECONDS) -> None:
        self._put = put
        self._retry_seconds = retry_seconds
        # Held during a write, so that writes keep their order.
        self._writing = threading.Lock()
        self._changed = threading.Condition()
        self._writers: dict[str, Put] = {}
        # Connectors whose driver has ended, and with it the function that it has set.
        self._ended = set[str]()
        self._waiting: dict[str, dict[SourcePartition, SourceOffset | None]] = {}
        self._in_flight: str | None = None
        self._failing = frozenset[str]()
        self._closing = False
        self._thread: threading.Thread | None = None

    def write_with(self, connector: str, put: Put, *, keep: bool) -> None:
        """Write the copies of *connector* by *put* from now on; called by each driver that takes it over.

        Pending copies of a driver that has ended are written only with *keep*. They may be older than what another
        worker has copied since; a driver that reads the connector's own topic finds out which are still missing.
        """
        with self._changed:
            self._writers[connector] = put
            if connector in self._ended:
                self._ended.remove(connector)
                if not keep:
                    self._keep(connector, {})
            self._changed.notify_all()

    def ended(self, connector: str, put: Put) -> None:
        """The driver that has set *put* has ended: try no more to write pending copies until another one sets its own."""
        with self._changed:
            if self._writers.get(connector) == put:
                self._ended.add(connector)
                self._changed.notify_all()

    def first(self, connector: str, offsets: Offsets) -> None:
        """Write *offsets* now, in place of pending copies of the same source partitions; raises when that fails.

        For removals: if they came last here, a removed offset could be read from here again.
        """
        if not offsets:
            return
        with self._writing:
            with self._changed:
                waiting = self._waiting.get(connector, {})
                left = {each: waiting[each] for each in waiting if each not in offsets}
                self._keep(connector, left)
                self._changed.notify_all()
            self._writer(connector)(connector, offsets)

    def finish(self, connector: str) -> None:
        """Write pending copies of *connector* now; raises when that fails.

        For one that no longer has a topic of its own: a later copy would overwrite newer offsets.
        """
        with self._writing:
            with self._changed:
                waiting = dict(self._waiting.get(connector, {}))
            if not waiting:
                return
            self._writer(connector)(connector, waiting)
            with self._changed:
                self._keep(connector, {})
                self._changed.notify_all()

    def later(self, connector: str, offsets: Offsets) -> None:
        """Have *offsets* written soon; returns at once."""
        if not offsets:
            return
        with self._changed:
            self._waiting.setdefault(connector, {}).update(offsets)
            if self._thread is None and not self._closing:
                self._thread = threading.Thread(
                    target=self._work, name="headrace-offset-copies", daemon=True
                )
                self._thread.start()
            self._changed.notify_all()

    def first_entries(self, entries: Sequence[OffsetEntry]) -> None:
        """Like :meth:`first`, for records of an offsets topic; raises ``ValueError`` for unreadable ones."""
        for connector, offsets in decoded_entries(entries).items():
            self.first(connector, offsets)

    def later_entries(self, entries: Sequence[OffsetEntry]) -> None:
        """Like :meth:`later`, for records of an offsets topic; raises ``ValueError`` for unreadable ones."""
        for connector, offsets in decoded_entries(entries).items():
            self.later(connector, offsets)

    def settle(self, connector: str, seconds: float) -> bool:
        """Wait until *connector* has no pending copies, at most *seconds*; returns whether that is so."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._is_waiting(connector), seconds)

    def close(self) -> None:
        """Try once more to write pending copies, and end; the rest is written at the connectors' next start."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.join()

    def _writer(self, connector: str) -> Put:
        with self._changed:
            return self._writers.get(connector, self._put)

    def _due(self) -> list[str]:
        """The connectors with copies that can be written."""
        return [each for each in self._waiting if each not in self._ended]

    def _is_waiting(self, connector: str) -> bool:
        return connector in self._waiting or connector == self._in_flight

    def _work(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._due() or self._closing)
                is_last = self._closing
            failed, is_away = self._write_all()
            if is_last:
                return
            if failed:
                self._pause(failed, is_away=is_away)

    def _pause(self, failed: frozenset[str], *, is_away: bool) -> None:
        """Wait for the next attempt; other connectors' copies end the wait, unless the store *is_away*."""
        with self._changed:
            self._changed.wait_for(
                lambda: self._closing or (not is_away and set(self._due()) - failed),
                self._retry_seconds,
            )

    def _write_all(self) -> tuple[frozenset[str], bool]:
        """Write pending copies; returns the connectors whose copies failed and stay pending, and whether the store is away.

        A store that is away is tried once and not for each connector, because removals wait for this to end.
        """
        with self._changed:
            names = self._due()
        failed = set[str]()
        for name in names:
            failure = self._write(name)
            if failure is not None:
                failed.add(name)
            if isinstance(failure, RetriableError):
                return frozenset(failed), True
        return frozenset(failed), False

    def _write(self, connector: str) -> Exception | None:
        """Write pending copies of *connector*; returns the failure, if any."""
        with self._writing:
            with self._changed:
                taken = self._waiting.pop(connector, {})
                self._in_flight = connector
            failure = self._tried(connector, taken) if taken else None
            with self._changed:
                if failure is not None:
                    self._keep(connector, {**taken, **self._waiting.pop(connector, {})})
                if connector in self._ended:
                    # It is not tried again until the next driver, and its failure says nothing about the store.
                    failure = None
                self._in_flight = None
                self._changed.notify_all()
        return failure

    def _tried(self, connector: str, offsets: Offsets) -> Exception | None:
        try:
            self._writer(connector)(connector, offsets)
        except ConnectorFencedError:
            _log.info(
                "Connector %s: another worker has taken it over, and copies its offsets.", connector
            )
            return None
        except Exception as error:  # noqa: BLE001 (logged and retried; the offsets are safe in the connector's topic)
            self._log_failure(connector, error)
            return error
        if connector in self._failing:
            _log.info(
                "Connector %s: its offsets are copied to the worker's store again.", connector
            )
        self._failing -= {connector}
        return None

    def _log_failure(self, connector: str, error: Exception) -> None:
        if connector in self._failing:
            return
        self._failing |= {connector}
        _log.warning(
            "Connector %s: its offsets could not be copied to the worker's store: %s They are safe in the topic that "
            "offsets.storage.topic names; copying is retried.",
            connector,
            error,
            exc_info=None if isinstance(error, ConnectError) else error,
        )

    def _keep(self, connector: str, offsets: Mapping[SourcePartition, SourceOffset | None]) -> None:
        if offsets:
            self._waiting[connector] = dict(offsets)
        else:
            self._waiting.pop(connector, None)


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


class ConnectorTopic(Protocol):
    """A topic of source offsets besides the worker's."""

    def existing(self) -> LockedOffsetStore | None:
        """The store on this topic, ``None`` while the topic does not exist."""
        ...

    def ensured(self) -> LockedOffsetStore:
        """The store on this topic, which is created if it is missing."""
        ...


class ConnectorTopicOffsets:
    """``ConnectorOffsets`` in a topic of the connector's own, over those in the worker's store (KIP-618).

    Offsets committed in the *topic* are copied to the *worker*'s store afterwards. Removals are written to the
    worker's store first: a value left there would take effect again.
    """

    def __init__(
        self,
        connector: str,
        topic: ConnectorTopic,
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

    def differently_encoded(self) -> Offsets:
        """Offsets that are now stored under other bytes than ours in the connector's topic."""
        return self._topic.ensured().differently_encoded(self._connector)

    def put(self, offsets: Offsets) -> None:
        """Commit *offsets*; ``None`` removes."""
        store = self._topic.ensured()
        self._around(offsets, lambda: store.put(self._connector, offsets))

    def commit(self, offsets: Offsets, transaction: OffsetTransaction) -> None:
        """Have *transaction* commit *offsets*, with tombstones for their other keys in the connector's topic."""
        entries = self._topic.ensured().entries_for(self._connector, offsets)
        self._around(offsets, lambda: transaction.commit_records(entries))

    def as_stored(self, offsets: Offsets) -> Offsets:
        """*offsets* themselves."""
        return offsets

    def refuse_other_users(self) -> None:
        """Do nothing: only workers write to such a topic."""

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
