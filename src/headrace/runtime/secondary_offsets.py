"""Writes connectors' secondary offsets (KIP-618) to the worker's topic, fenced like the connectors' tasks."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from headrace.connect.errors import ConnectError, RetriableError
from headrace.connect.task import Offsets
from headrace.kafka.client_config import producer_config
from headrace.kafka.client_sender import make_sender
from headrace.kafka.deadline import Deadline
from headrace.kafka.sender import OffsetEntry, Sender
from headrace.kafka.transaction_coordinator import TransactionCoordinator
from headrace.kafka.wire_coverage import wire_problems
from headrace.kafka.wire_sender import make_wire_sender
from headrace.offsets.store import LockedOffsetStore
from headrace.runtime.driver_offsets import commit_entries
from headrace.runtime.fencing import PATIENCE_SECONDS, giving_up, secondary_id

# A transaction that is stuck hides what others commit to the same topic.
_TIMEOUTS = dict.fromkeys(
    ("transaction.timeout.ms", "delivery.timeout.ms"), f"{PATIENCE_SECONDS * 1000:.0f}"
)


class SecondaryOffsetTopic:
    """Writes secondary offsets to the worker's *topic*, which *store* reads, in transactions.

    Each connector has a transactional id of its own for this, so that a worker that takes over the connector can fence
    the old writer: a late copy would restore an offset that was reset since. *producer* are the worker's own producer
    settings.
    """

    def __init__(
        self, store: LockedOffsetStore, topic: str, *, producer: Mapping[str, str], group_id: str
    ) -> None:
        self._store = store
        self._topic = topic
        self._producer = producer
        self._group_id = group_id

    def fence(self, connector: str, *, is_used: bool, give_up: Callable[[], bool]) -> None:
        """Make every older writer of the connector's secondary offsets unable to write.

        *is_used* says that this worker writes such offsets; otherwise older writers are fenced if the brokers know any.
        """
        name, waiting = secondary_id(self._group_id, connector), giving_up(give_up)
        deadline = Deadline.after(PATIENCE_SECONDS, time.monotonic)
        # With the worker's own credentials, with which they were written.
        coordinator = TransactionCoordinator(producer_config(self._producer))
        try:
            known = None if is_used else coordinator.transactional_ids(deadline, waiting=waiting)
            if known is None or name in known:
                coordinator.fence([name], deadline, waiting=waiting)
        finally:
            coordinator.close()

    def writer(
        self, connector: str, prove: Callable[[], None], *, by_wire: bool = False
    ) -> TransactionalSecondaryStore:
        """The writer of secondary offsets for a driver; *prove* raises unless it is the connector's driver.

        *by_wire* is whether headrace's own sender sends for the connector; then it sends these, too, if it can have the
        worker's settings.
        """
        name = secondary_id(self._group_id, connector)
        config = producer_config({**self._producer, **_TIMEOUTS}, transactional_id=name)
        make = partial(
            make_wire_sender if by_wire and not wire_problems(config) else make_sender,
            config,
            owner=f"the secondary offsets of connector {connector}",
            open_seconds=PATIENCE_SECONDS,
        )
        return TransactionalSecondaryStore(self._store, self._topic, make=make, prove=prove)


class TransactionalSecondaryStore:
    """Writes the secondary offsets of one connector for one driver. Any thread may call."""

    def __init__(
        self,
        store: LockedOffsetStore,
        topic: str,
        *,
        make: Callable[..., Sender],
        prove: Callable[[], None],
    ) -> None:
        self._store = store
        self._topic = topic
        self._make = make
        self._prove = prove
        # A sender belongs to one thread at a time.
        self._lock = threading.Lock()
        self._sender: Sender | None = None
        self._deadline = Deadline.after(0, time.monotonic)

    def put(self, connector: str, offsets: Offsets) -> None:
        """Commit *offsets*; ``None`` removes. Raises what the driver's proof raises, and what a sender does."""
        with self._lock:
            # The store is not locked during the write, so that others can read; only this driver writes for the connector.
            self._store.current(connector)
            entries = self._store.entries_for(connector, offsets)
            if entries:
                self._write(entries)

    def close(self) -> None:
        """Release the sender; the next ``put`` makes another."""
        with self._lock:
            self._drop()

    def _write(self, entries: Sequence[OffsetEntry]) -> None:
        self._deadline = Deadline.after(PATIENCE_SECONDS, time.monotonic)
        try:
            commit_entries(self._opened(), self._topic, entries)
        except ConnectError:
            self._drop()
            raise

    def _opened(self) -> Sender:
        if self._sender is None:
            # A driver that has lost the connector would fence the new driver's sender, and write nothing.
            self._prove()
            self._sender = self._make(waiting=self._give_up_late)
            self._sender.open()
            # A driver that takes over the connector from now on fences this sender.
            self._prove()
        return self._sender

    def _give_up_late(self, waited_for: str) -> None:
        """Called by the sender about once a second while it waits."""
        if self._deadline.expired:
            raise RetriableError(
                f"The secondary offsets could not be stored in topic {self._topic!r} in time; waited for: {waited_for}."
            )

    def _drop(self) -> None:
        if self._sender is not None:
            self._sender.close()
            self._sender = None
