"""What a sender refuses before it hands anything over: records that are too large, and partitions that a topic lacks."""

# The library's types do not list the functions of pyarrow.compute, nor what arrays hold.
# pyright: reportAttributeAccessIssue=false, reportUnknownParameterType=false

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import pyarrow as pa
import pyarrow.compute as pc

from headrace.connect.errors import TaskFailedError
from headrace.kafka.deadline import Clock
from headrace.kafka.sender import EncodedRecords, NoPartitionError, TooLargeError

# Length, attributes, deltas and the batch's own header, rounded up: a record that fits without them
# could still be refused by the broker, too late to say which one it was.
OVERHEAD_BYTES = 100


def first_too_large(records: EncodedRecords, max_bytes: int) -> int | None:
    """The first row that a request of *max_bytes* cannot hold, ``None`` when all fit."""
    if records.headers is None and _at_most(records) <= max_bytes - OVERHEAD_BYTES:
        return None
    sizes = _sizes(records)
    for row in range(len(records)):
        if sizes[row] + _headers_size(records, row) > max_bytes - OVERHEAD_BYTES:
            return row
    return None


def _at_most(records: EncodedRecords) -> int:
    keys = 0 if records.keys is None else _largest(records.keys)
    return _largest(records.values) + keys


def _largest(column: pa.Array) -> int:
    return cast("int | None", pc.max(pc.binary_length(column)).as_py()) or 0


def _sizes(records: EncodedRecords) -> list[int]:
    sizes = pc.fill_null(pc.binary_length(records.values), 0)
    if records.keys is not None:
        sizes = pc.add(sizes, pc.fill_null(pc.binary_length(records.keys), 0))
    return cast("list[int]", sizes.to_pylist())


def _headers_size(records: EncodedRecords, row: int) -> int:
    if records.headers is None:
        return 0
    return sum(len(key) + len(value or b"") + 10 for key, value in records.headers[row])


# The partition count is refreshed for a missing partition, but not for each of a file's records.
_FRESH_SECONDS = 5.0


class SendPrecheck:
    """Refuses records that a producer with requests of *max_bytes* cannot send; one thread owns it.

    *partitions* asks Kafka for a topic's partition count, and raises ``TaskFailedError`` when it is not available.
    """

    def __init__(self, partitions: Callable[[str], int], *, max_bytes: int, clock: Clock) -> None:
        self._known = KnownPartitions(partitions, clock=clock)
        self._max_bytes = max_bytes

    def check(self, records: EncodedRecords) -> None:
        """Raise :class:`~headrace.kafka.sender.UnsendableError` with the first row that cannot be sent."""
        row = first_too_large(records, self._max_bytes)
        if row is not None:
            raise too_large(records.topic, row, self._max_bytes)
        if records.partition is not None and len(records):
            self._known.refuse_lacking(records.topic, records.partition)


def too_large(topic: str, row: int, max_bytes: int) -> TooLargeError:
    """The error for the record in *row*, which a producer with requests of *max_bytes* cannot send to *topic*."""
    return TooLargeError(
        f"a record for topic {topic!r} is too large: with its key and headers it does not "
        f"fit into {max_bytes} bytes.",
        row=row,
        advice="Raise max.request.size of this producer and max.message.bytes of the topic.",
    )


class KnownPartitions:
    """Partition counts of topics, asked for only where they matter; one thread owns it.

    *partitions* asks Kafka for a topic's partition count, and raises ``TaskFailedError`` when it is not available.
    """

    def __init__(self, partitions: Callable[[str], int], *, clock: Clock) -> None:
        self._partitions = partitions
        self._clock = clock
        self._known = dict[str, tuple[int | None, float]]()

    def refuse_lacking(self, topic: str, partition: int) -> None:
        """Raise :class:`~headrace.kafka.sender.NoPartitionError` if *topic* does not have *partition*."""
        count = self._count(topic, partition)
        if count is None or partition < count:
            return
        there = "partition 0 only" if count == 1 else f"the partitions 0 to {count - 1}"
        raise NoPartitionError(
            f"The record's topic {topic!r} has no partition {partition}: it has {there}.",
            row=0,
            advice="Use one of these, or add partitions to the topic.",
        )

    def _count(self, topic: str, wanted: int) -> int | None:
        """The partition count of *topic*, refreshed when *wanted* is beyond it; ``None`` when it is unknown."""
        count, asked_at = self._known.get(topic, (None, None))
        if count is not None and wanted < count:
            return count
        if asked_at is None or self._clock() >= asked_at + _FRESH_SECONDS:
            count = self._counted(topic)
            self._known[topic] = count, self._clock()
        return count

    def _counted(self, topic: str) -> int | None:
        try:
            return self._partitions(topic)
        except TaskFailedError:
            # Writing to the topic raises the cause, with its own advice.
            return None
