"""What is refused of records before any of them is handed over: their size and their partition."""

from __future__ import annotations

from collections.abc import Callable

from headrace.connect.errors import TaskFailedError
from headrace.kafka.client_rows import first_too_large
from headrace.kafka.deadline import Clock
from headrace.kafka.sender import EncodedRecords, NoPartitionError, TooLargeError

# A partition that is not there is asked for again, but not for each of a file's records.
_FRESH_SECONDS = 5.0


class Door:
    """Lets in what a producer with requests of *max_bytes* can send; one thread owns it.

    *partitions* asks Kafka how many a topic has, and raises ``TaskFailedError`` when that is not to be had.
    """

    def __init__(self, partitions: Callable[[str], int], *, max_bytes: int, clock: Clock) -> None:
        self._partitions = partitions
        self._max_bytes = max_bytes
        self._clock = clock
        self._known = dict[str, tuple[int | None, float]]()

    def admit(self, records: EncodedRecords) -> None:
        """Raise :class:`~headrace.kafka.sender.UnsendableError` with the first row that cannot be sent."""
        self._refuse_too_large(records)
        if records.partition is not None and len(records):
            self._refuse_lacking(records.topic, records.partition)

    def _refuse_too_large(self, records: EncodedRecords) -> None:
        row = first_too_large(records, self._max_bytes)
        if row is not None:
            raise TooLargeError(
                f"a record for topic {records.topic!r} is too large: with its key and headers it does not "
                f"fit into {self._max_bytes} bytes.",
                row=row,
                advice="Raise max.request.size of this producer and max.message.bytes of the topic.",
            )

    def _refuse_lacking(self, topic: str, partition: int) -> None:
        count = self._count(topic, partition)
        if count is None or partition < count:
            return
        there = "partition 0 only" if count == 1 else f"the partitions 0 to {count - 1}"
        raise NoPartitionError(
            f"The record's topic {topic!r} has no partition {partition}: it has {there}.",
            row=0,
            advice="Tell one that it has, or give the topic more partitions.",
        )

    def _count(self, topic: str, wanted: int) -> int | None:
        """How many partitions *topic* has, asked again when *wanted* is beyond; ``None``: nobody knows."""
        count, asked_at = self._known.get(topic, (None, None))
        if count is not None and wanted < count:
            return count
        if asked_at is None or self._clock() >= asked_at + _FRESH_SECONDS:
            count = self._asked(topic)
            self._known[topic] = count, self._clock()
        return count

    def _asked(self, topic: str) -> int | None:
        try:
            return self._partitions(topic)
        except TaskFailedError:
            # Why a topic cannot be written to is told by the writing itself, with its own advice.
            return None
