"""Rows of several calls that become batches together. Pure.

A batch costs as much as some hundred rows, so many calls with few rows, or one with few for each of many partitions, would cost a
multiple of what the rows do.
"""

# The library's types do not list the functions of pyarrow.compute.
# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from headrace.kafka.sender import EncodedRecords

# Of each partition, so that its batches are large enough; and of all, so that memory is bounded.
_PARTITION_BYTES: Final = 128 * 1024
_MOST_BYTES: Final = 8 * 1024 * 1024
# Lengths, attributes, deltas, and the number of headers, as long as they can be.
_FIELD_BYTES: Final = 40


class RowNumbers(NamedTuple):
    """Which of the callers' records rows come from: those with these *numbers* begin at the rows *starts*, of which the first is 0."""

    starts: Sequence[int]
    numbers: Sequence[int | None]

    def place(self, row: int) -> tuple[int, int] | None:
        """The number of the records that *row* was in, and its row there; ``None`` if the caller gave them no number."""
        index = bisect_right(self.starts, row) - 1
        number = self.numbers[index]
        return None if number is None else (number, row - self.starts[index])


def may_be_gathered(records: EncodedRecords) -> bool:
    """Whether *records* differ in keys, values and times only, as most do."""
    has_time = isinstance(records.timestamps, int)
    return records.headers is None and records.origin is None and not has_time


def largest_record_bytes(records: EncodedRecords) -> int:
    """How many bytes the largest of *records* has in a batch at most, without the batch's header."""
    columns = [each for each in (records.values, records.keys) if each is not None]
    return _FIELD_BYTES + sum(pc.max(pc.binary_length(each)).as_py() or 0 for each in columns)


def enough_bytes(partitions: int, buffer_bytes: int) -> int:
    """How many bytes to gather for so many *partitions*; *buffer_bytes* is what may wait to be acknowledged."""
    return min(_PARTITION_BYTES * partitions, _MOST_BYTES, buffer_bytes // 4)


class GatheredRows:
    """Records of one topic, in order, which are to be sent together. Holds them as they came."""

    def __init__(self) -> None:
        self._records: list[EncodedRecords] = []
        self.nbytes = 0
        """Bytes of the memory that they keep: a few rows may be a part of much."""

    def __len__(self) -> int:
        return len(self._records)

    def fits(self, records: EncodedRecords) -> bool:
        """Whether *records*, which may be gathered, can become batches with those that are here."""
        return not self._records or _kind(records) == _kind(self._records[0])

    def add(self, records: EncodedRecords) -> None:
        """*records* come after those that are here."""
        self._records.append(records)
        columns = (records.values, records.keys, records.timestamps)
        self.nbytes += sum(
            each.get_total_buffer_size() for each in columns if isinstance(each, pa.Array)
        )

    def clear(self) -> None:
        """They are not sent."""
        self._records.clear()
        self.nbytes = 0

    def take(self) -> tuple[EncodedRecords, RowNumbers]:
        """All that are here, of which there is one at least, as one; nothing is left."""
        taken = list(self._records)
        self.clear()
        return _joined(taken)


def _joined(parts: Sequence[EncodedRecords]) -> tuple[EncodedRecords, RowNumbers]:
    """*parts*, which fit together, as one, and which row came from where."""
    starts, rows = list[int](), 0
    for each in parts:
        starts.append(rows)
        rows += len(each)
    numbers = RowNumbers(starts, [each.number for each in parts])
    first = parts[0]
    if len(parts) == 1:
        return first, numbers
    keys = [each.keys for each in parts if each.keys is not None]
    times = [each.timestamps for each in parts if isinstance(each.timestamps, pa.Array)]
    whole = EncodedRecords(
        topic=first.topic,
        values=pa.concat_arrays([each.values for each in parts]),
        keys=pa.concat_arrays(keys) if keys else None,
        timestamps=pa.concat_arrays(times) if times else None,
        partition=first.partition,
    )
    return whole, numbers


def _kind(records: EncodedRecords) -> tuple[object, ...]:
    """What is the same for all records that are sent together."""
    keys, times = records.keys, records.timestamps
    return (
        records.topic,
        records.partition,
        records.values.type,
        None if keys is None else keys.type,
        None if times is None or isinstance(times, int) else times.type,
    )
