"""What the driver itself does in Kafka: fencing, and offsets that change without records."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from headrace.connect.errors import RetriableError
from headrace.connect.task import Offsets
from headrace.kafka.client_config import producer_config
from headrace.kafka.client_sender import make_sender
from headrace.kafka.deadline import Deadline
from headrace.kafka.fencing import fence
from headrace.kafka.sender import OffsetEntry
from headrace.runtime.offset_homes import OffsetHomes
from headrace.runtime.running.fencing import transactional_id
from headrace.runtime.services import RunSpec

# What is late is told and tried again; fencing waits for the coordinator to end what was open.
_PATIENCE_SECONDS = 15.0


def fence_owners(
    spec: RunSpec, transactional_ids: Sequence[str], *, give_up: Callable[[], bool] = lambda: False
) -> None:
    """Make every earlier owner of *transactional_ids* unable to write.

    Raises :class:`~headrace.connect.errors.RetriableError` when that was not possible in time, or before
    *give_up*, which is asked about once a second, said so.
    """

    def go_on(waited_for: str) -> None:
        if give_up():
            raise RetriableError(f"Kafka did not answer {waited_for} before the stop.")

    if transactional_ids:
        config = producer_config(spec.producer, transactional_id=transactional_ids[0])
        deadline = Deadline.after(_PATIENCE_SECONDS, time.monotonic)
        fence(config, transactional_ids, deadline, waiting=go_on)


class DriverCommits:
    """Commits offsets without records, as the slot of task 0 would; called while no slot is running."""

    def __init__(self, homes: OffsetHomes, group_id: str) -> None:
        self._homes = homes
        self._group_id = group_id

    def commit(self, spec: RunSpec, offsets: Offsets) -> None:
        """Commit *offsets* of the connector, all of them or none; ``None`` removes.

        What others stored of the same partitions under bytes of their own is removed with it.
        """
        stored = self._homes.of(spec)
        if spec.offsets_topic is None or not spec.exactly_once:
            stored.put(offsets)
        else:
            topic = spec.offsets_topic
            stored.commit(offsets, lambda entries: self._in_transaction(spec, topic, entries))

    def _in_transaction(self, spec: RunSpec, topic: str, entries: Sequence[OffsetEntry]) -> None:
        name = transactional_id(self._group_id, spec.name, 0)
        sender = make_sender(
            producer_config(spec.producer, transactional_id=name),
            owner=f"connector {spec.name}",
            open_seconds=_PATIENCE_SECONDS,
        )
        try:
            sender.open()
            sender.begin()
            sender.send_offsets(topic, entries)
            sender.commit()
        finally:
            sender.close()
