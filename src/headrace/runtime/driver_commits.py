"""What the driver itself does in Kafka: fencing, and offsets that change without records."""

from __future__ import annotations

import time
from collections.abc import Sequence

from headrace.connect.task import Offsets
from headrace.kafka.client_config import producer_config
from headrace.kafka.client_sender import make_sender
from headrace.kafka.deadline import Deadline
from headrace.kafka.fencing import fence
from headrace.runtime.fencing import transactional_id
from headrace.runtime.offset_desk import OffsetDesk
from headrace.runtime.services import RunSpec
from headrace.storage.offset_codec import encoded_entries

# What is late is told and tried again; fencing waits for the coordinator to end what was open.
_PATIENCE_SECONDS = 15.0


def fence_owners(spec: RunSpec, transactional_ids: Sequence[str]) -> None:
    """Make every earlier owner of *transactional_ids* unable to write.

    Raises :class:`~headrace.connect.errors.RetriableError` when that was not possible in time.
    """
    if transactional_ids:
        config = producer_config(spec.producer, transactional_id=transactional_ids[0])
        fence(config, transactional_ids, Deadline.after(_PATIENCE_SECONDS, time.monotonic))


class DriverCommits:
    """Commits offsets without records, as the slot of task 0 would; called while no slot is running."""

    def __init__(self, desk: OffsetDesk, group_id: str) -> None:
        self._desk = desk
        self._group_id = group_id

    def commit(self, spec: RunSpec, offsets: Offsets) -> None:
        """Commit *offsets* of the connector, all of them or none; ``None`` removes."""
        if spec.offsets_topic is None or not spec.exactly_once:
            self._desk.put(spec.name, offsets)
            return
        name = transactional_id(self._group_id, spec.name, 0)
        sender = make_sender(
            producer_config(spec.producer, transactional_id=name),
            owner=f"connector {spec.name}",
            open_seconds=_PATIENCE_SECONDS,
        )
        try:
            sender.open()
            sender.begin()
            sender.send_offsets(spec.offsets_topic, encoded_entries(spec.name, offsets))
            sender.commit()
        finally:
            sender.close()
