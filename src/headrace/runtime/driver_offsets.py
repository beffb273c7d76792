"""Commits offsets that change without records while no slot runs."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager

from headrace.connect.task import Offsets
from headrace.kafka.client_config import producer_config
from headrace.kafka.client_sender import make_sender
from headrace.kafka.sender import GroupSender, OffsetEntry, Sender
from headrace.kafka.wire_sender import make_wire_sender
from headrace.offsets.connector_stores import ConnectorOffsetStores
from headrace.offsets.group_codec import GroupChange
from headrace.offsets.target import DriverStore, OffsetTopic
from headrace.runtime.fencing import PATIENCE_SECONDS, transactional_id
from headrace.runtime.services import RunSpec

StillOurs = Callable[[], None]
"""Raises when the connector has another driver by now, or the offsets have changed since they were planned from."""

MakeSender = Callable[..., Sender]


class DriverOffsetCommitter:
    """Commits offsets without records, as the slot of task 0 would; called while no slot runs.

    These are the offsets that a plan or idle tasks move, those that a request alters or resets, and those that are
    imported from a Java worker's file. *make_group_sender* makes the sender of entries of groups.
    """

    def __init__(
        self,
        stores: ConnectorOffsetStores,
        group_id: str,
        *,
        make_group_sender: MakeSender = make_wire_sender,
    ) -> None:
        self._stores = stores
        self._group_id = group_id
        self._make_group_sender = make_group_sender

    def commit(self, spec: RunSpec, offsets: Offsets, still_ours: StillOurs) -> None:
        """Commit *offsets* of the connector, all of them or none; ``None`` removes.

        Offsets of the same partitions that others stored under differently encoded keys are removed with it. In a
        transaction, *still_ours* is called after the id was initialised, which fences older writers, and before
        anything is written. Entries of groups are removed after the transaction.
        """
        stored = self._stores.of(spec)
        if isinstance(spec.offsets, DriverStore) or not spec.exactly_once:
            stored.put(offsets)
        else:
            transactional = transactional_id(self._group_id, spec.name, 0)
            stored.commit(
                offsets,
                DriverTransaction(
                    spec, transactional, still_ours, make_group_sender=self._make_group_sender
                ),
            )


class DriverTransaction:
    """Commits offsets of *spec* in a transaction of the id *transactional*."""

    def __init__(
        self,
        spec: RunSpec,
        transactional: str,
        still_ours: StillOurs,
        *,
        make_group_sender: MakeSender,
    ) -> None:
        self._spec = spec
        self._id = transactional
        self._still_ours = still_ours
        self._make_group_sender = make_group_sender

    def commit_records(self, entries: Sequence[OffsetEntry]) -> None:
        """Commit *entries* to the topic to which the tasks write."""
        assert isinstance(self._spec.offsets, OffsetTopic), "records are stored in topics"
        make = make_wire_sender if self._spec.sends_by_wire else make_sender
        with self._opened(make) as sender:
            commit_entries(sender, self._spec.offsets.name, entries)

    def commit_group(self, change: GroupChange) -> None:
        """Commit the entries of *change*, with its records, then remove what it removes."""
        with self._opened(self._make_group_sender) as sender:
            assert isinstance(sender, GroupSender), "it is made for groups"
            if change.entries or change.records:
                sender.begin()
                sender.send_offsets(change.topic, change.records)
                sender.send_group_offsets(change.group, change.entries)
                sender.commit()
            if change.removed:
                sender.delete_group_offsets(change.group, change.removed)

    @contextmanager
    def _opened(self, make: MakeSender) -> Generator[Sender]:
        sender = make(
            producer_config(self._spec.producer, transactional_id=self._id),
            owner=f"connector {self._spec.name}",
            open_seconds=PATIENCE_SECONDS,
        )
        try:
            sender.open()
            self._still_ours()
            yield sender
        finally:
            sender.close()


def commit_entries(sender: Sender, topic: str, entries: Sequence[OffsetEntry]) -> None:
    """Commit *entries* of *topic* in a transaction of their own."""
    sender.begin()
    sender.send_offsets(topic, entries)
    sender.commit()
