"""What lies between the last commit and now, to find where a record came from that the broker refuses late."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from headrace.connect.batch import BatchOffsets, SourceBatch
from headrace.connect.errors import ConnectError, RecordError
from headrace.connect.partition import SourcePartition
from headrace.kafka.sender import EncodedRecords
from headrace.kafka.undelivered import LateRefusalError
from headrace.slot.places import position_told, source_name

# Twice what the client's queue holds, where a record must be to be refused, unless the user enlarged it.
_MOST_BYTES = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rows:
    topic: str
    partition: SourcePartition
    offsets: BatchOffsets | None
    keys: pa.Int32Array | None
    values: pa.Int32Array
    nbytes: int


class SentRows:
    """Offsets and sizes of the rows that were handed over; not the rows, so that it stays small.

    The client tells of a refused record nothing but its bytes. Used by the writing half.
    """

    def __init__(self, *, most_bytes: int = _MOST_BYTES) -> None:
        self._most_bytes = most_bytes
        self._rows = deque[_Rows]()
        self._nbytes = 0

    def note(self, batch: SourceBatch, encoded: EncodedRecords) -> None:
        """*batch* is handed over as *encoded*."""
        rows = _Rows(
            topic=batch.topic,
            partition=batch.source_partition,
            offsets=batch.offsets,
            keys=None if encoded.keys is None else pc.binary_length(encoded.keys),
            values=pc.binary_length(encoded.values),
            nbytes=encoded.values.nbytes,
        )
        self._rows.append(rows)
        self._nbytes += rows.nbytes
        while self._nbytes - self._rows[0].nbytes > self._most_bytes:
            self._nbytes -= self._rows.popleft().nbytes

    def take_back(self) -> None:
        """What was noted last was not handed over after all."""
        self._nbytes -= self._rows.pop().nbytes

    def forget(self) -> None:
        """Everything is acknowledged, or thrown away."""
        self._rows.clear()
        self._nbytes = 0

    def located(self, error: LateRefusalError) -> ConnectError:
        """*error* with the place in the source of the first row that it fits; *error* itself without one.

        Says so when it fits more than one row.
        """
        found = self._matches(error)
        first = next(found, None)
        if first is None:
            return error
        rows, row = first
        offset = None if rows.offsets is None else rows.offsets.at(row)
        where = "at" if next(found, None) is None else "at or behind"
        return RecordError(
            error.reason,
            native_key=source_name(rows.partition),
            position=position_told(offset, where=where),
            advice=error.advice,
        )

    def _matches(self, error: LateRefusalError) -> Iterator[tuple[_Rows, int]]:
        for rows in self._rows:
            if rows.topic != error.topic or (rows.keys is None and error.key_bytes is not None):
                continue
            fits = _fits(rows.values, error.value_bytes)
            if rows.keys is not None:
                fits = pc.and_(fits, _fits(rows.keys, error.key_bytes))
            yield from ((rows, row) for row in pc.indices_nonzero(fits).to_pylist())


def _fits(lengths: pa.Int32Array, length: int | None) -> pa.BooleanArray:
    """Which of *lengths* are *length*; null is the length of null."""
    return pc.is_in(lengths, value_set=pa.array([length], pa.int32()))
