"""Commits offsets that change without records while no slot runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from headrace.connect.task import Offsets
from headrace.kafka.client_config import producer_config
from headrace.kafka.client_sender import make_sender
from headrace.kafka.sender import OffsetEntry, Sender
from headrace.offsets.connector_stores import ConnectorOffsetStores
from headrace.offsets.target import OffsetTopic
from headrace.runtime.fencing import PATIENCE_SECONDS, transactional_id
from headrace.runtime.services import RunSpec

StillOurs = Callable[[], None]
"""Raises when the connector has another driver by now, or the offsets have changed since they were planned from."""


class DriverOffsetCommitter:
    """Commits offsets without records, as the slot of task 0 would; called while no slot runs.

    These are the offsets that a plan or idle tasks move, those that a request alters or resets, and those that are
    imported from a Java worker's file.
    """

    def __init__(self, stores: ConnectorOffsetStores, group_id: str) -> None:
        self._stores = stores
        self._group_id = group_id

    def commit(self, spec: RunSpec, offsets: Offsets, still_ours: StillOurs) -> None:
        """Commit *offsets* of the connector, all of them or none; ``None`` removes.

        Offsets of the same partitions that others stored under differently encoded keys are removed with it. In a
        transaction, *still_ours* is called after the id was initialised, which fences older writers, and before
        anything is written.
        """
        stored = self._stores.of(spec)
        if not isinstance(spec.offsets, OffsetTopic) or not spec.exactly_once:
            stored.put(offsets)
        else:
            topic = spec.offsets.name
            stored.commit(
                offsets, lambda entries: self._in_transaction(spec, topic, entries, still_ours)
            )

    def _in_transaction(
        self, spec: RunSpec, topic: str, entries: Sequence[OffsetEntry], still_ours: StillOurs
    ) -> None:
        sender = make_sender(
            producer_config(
                spec.producer, transactional_id=transactional_id(self._group_id, spec.name, 0)
            ),
            owner=f"connector {spec.name}",
            open_seconds=PATIENCE_SECONDS,
        )
        try:
            sender.open()
            still_ours()
            commit_entries(sender, topic, entries)
        finally:
            sender.close()


def commit_entries(sender: Sender, topic: str, entries: Sequence[OffsetEntry]) -> None:
    """Commit *entries* of *topic* in a transaction of their own."""
    sender.begin()
    sender.send_offsets(topic, entries)
    sender.commit()
