"""Where in its source a record is that failed, as text for messages; also for those that Kafka refused late."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import count

import pyarrow as pa
import pyarrow.compute as pc

from headrace.connect.batch import BatchOffsets, SourceBatch
from headrace.connect.errors import ConnectError, RecordError
from headrace.connect.partition import RECORD_COUNT, SourceOffset, SourcePartition
from headrace.kafka.errors import LateRefusalError
from headrace.kafka.sender import EncodedRecords

# Twice what the client's queue holds, where a record must be to be refused, unless the user enlarged it.
_MOST_BYTES = 64 * 1024 * 1024


def located(error: RecordError, batch: SourceBatch) -> RecordError:
    """*error* with the source position of the row that it names."""
    name = source_name(batch.source_partition)
    if error.row is None:
        return error.located(name, "position unknown")
    return error.located(name, position_text(batch.offset_at(error.row)))


def source_name(partition: Mapping[str, object]) -> str:
    """A source partition as text."""
    return _pairs(partition)


def position_text(offset: SourceOffset | None, *, where: str = "at") -> str:
    """The position of a record with the source offset *offset*; its number if the offset counts an object's records.

    *where* says how exact the offset is: "at", or "at or after".
    """
    if not offset:
        return f"{where} no source offset"
    count = offset.get(RECORD_COUNT)
    if isinstance(count, int) and where == "at":
        return f"record {count}"
    return f"{where} source offset {_pairs(offset)}"


def _pairs(values: Mapping[str, object]) -> str:
    return ", ".join(f"{key} {_text(value)}" for key, value in values.items())


def _text(value: object) -> str:
    return value.hex() if isinstance(value, bytes) else str(value)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rows:
    number: int
    topic: str
    partition: SourcePartition
    offsets: BatchOffsets | None
    keys: pa.Int32Array | None
    values: pa.Int32Array
    nbytes: int


class InFlightRecords:
    """Offsets and sizes of the rows that were handed to the sender; not the rows, to stay small.

    Of a refused record the client library reports only its sizes. Used by the writer.
    """

    def __init__(self, *, most_bytes: int = _MOST_BYTES) -> None:
        self._most_bytes = most_bytes
        self._rows = deque[_Rows]()
        self._nbytes = 0
        self._numbers = count()

    def note(self, batch: SourceBatch, encoded: EncodedRecords) -> EncodedRecords:
        """Note that *batch* is handed to the sender as *encoded*; returns that with a number, by which it is known again."""
        number = next(self._numbers)
        rows = _Rows(
            number=number,
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
        return replace(encoded, number=number)

    def take_back(self) -> None:
        """Undo the last :meth:`note`: the batch was not handed over after all."""
        self._nbytes -= self._rows.pop().nbytes

    def forget(self) -> None:
        """Forget all rows: they are acknowledged, or aborted."""
        self._rows.clear()
        self._nbytes = 0

    def located(self, error: LateRefusalError) -> ConnectError:
        """*error* with the source position of the first row that it matches; *error* itself if there is none.

        If it matches several rows, the position says "at or after".
        """
        found = self._matches(error)
        first = next(found, None)
        if first is None:
            return error
        rows, row = first
        offset = None if rows.offsets is None else rows.offsets.at(row)
        where = "at" if next(found, None) is None else "at or after"
        return RecordError(
            error.reason,
            native_key=source_name(rows.partition),
            position=position_text(offset, where=where),
            advice=error.advice,
        )

    def _matches(self, error: LateRefusalError) -> Iterator[tuple[_Rows, int]]:
        if error.place is not None:
            number, row = error.place
            yield from ((each, row) for each in self._rows if each.number == number)
            return
        for rows in self._rows:
            if rows.topic != error.topic or (rows.keys is None and error.key_bytes is not None):
                continue
            fits = _fits(rows.values, error.value_bytes)
            if rows.keys is not None:
                fits = pc.and_(fits, _fits(rows.keys, error.key_bytes))
            yield from ((rows, row) for row in pc.indices_nonzero(fits).to_pylist())


def _fits(lengths: pa.Int32Array, length: int | None) -> pa.BooleanArray:
    """Which of *lengths* equal *length*; null equals null."""
    return pc.is_in(lengths, value_set=pa.array([length], pa.int32()))
