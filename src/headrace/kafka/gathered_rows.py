"""Rows of several calls that become batches together. Pure.

A batch costs as much as some hundred rows, so many calls with few rows, or one with few for each of many partitions, would cost a
multiple of what the rows do.
"""

# The library's types do not list the functions of pyarrow.compute.
# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import replace
from typing import Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from headrace.kafka.row_batches import times_of
from headrace.kafka.sender import EncodedRecords

# Of each partition, so that its batches are large enough; and of all, so that memory is bounded.
_PARTITION_BYTES: Final = 128 * 1024
_MOST_BYTES: Final = 8 * 1024 * 1024
# What a call keeps besides its bytes, however few rows it has.
_CALL_BYTES: Final = 4096
# Lengths, attributes, deltas, and the number of headers, as long as they can be.
_FIELD_BYTES: Final = 40


class RowNumbers(NamedTuple):
    """Which call rows come from: the records that it handed over with one of *numbers* begin at one of the rows *starts*, of which the first is 0."""

    starts: Sequence[int]
    numbers: Sequence[int | None]

    def place(self, row: int) -> tuple[int, int] | None:
        """The number of the records that *row* was in, and its row there; ``None`` if the caller gave them no number."""
        index = bisect_right(self.starts, row) - 1
        number = self.numbers[index]
        return None if number is None else (number, row - self.starts[index])


def may_be_gathered(records: EncodedRecords, partitions: int) -> bool:
    """Whether *records*, for so many *partitions*, make small batches, and differ in keys, values and times only, as most do."""
    is_plain = records.headers is None and records.origin is None
    return is_plain and records.data_bytes < _PARTITION_BYTES * partitions


def largest_record_bytes(records: EncodedRecords) -> int:
    """How many bytes the largest of *records* has in a batch at most, without the batch's header."""
    columns = [each for each in (records.values, records.keys) if each is not None]
    return _FIELD_BYTES + sum(pc.max(pc.binary_length(each)).as_py() or 0 for each in columns)


class GatheredRows:
    """Records of one topic, in order, which are to be sent together. Holds them as they came."""

    def __init__(self) -> None:
        self._parts: list[EncodedRecords] = []
        # How much of each address is kept, which columns may share.
        self._buffers = dict[int, int]()
        self._data_bytes = 0
        self._kept_bytes = 0

    def __len__(self) -> int:
        return len(self._parts)

    def fits(self, records: EncodedRecords) -> bool:
        """Whether *records*, which may be gathered, can become batches with those that are here."""
        return not self._parts or _kind(records) == _kind(self._parts[0])

    def add(self, records: EncodedRecords, *, now: int) -> None:
        """*records* come after those that are here; *now* is the time, in milliseconds, of those that have none."""
        times = pa.array(times_of(records, now))
        self._parts.append(replace(records, timestamps=times))
        self._data_bytes += records.data_bytes
        self._kept_bytes += _CALL_BYTES + times.nbytes
        for column in (records.values, records.keys):
            for buffer in () if column is None else column.buffers():
                if buffer is not None:
                    self._keep(buffer)

    def are_enough(self, partitions: int, buffer_bytes: int) -> bool:
        """Whether they make large batches in so many *partitions*, or keep much memory; *buffer_bytes* may wait to be acknowledged."""
        if self._data_bytes >= _PARTITION_BYTES * partitions:
            return True
        # Rows that share memory are copied when they are joined.
        return max(self._data_bytes, self._kept_bytes) >= min(_MOST_BYTES, buffer_bytes // 4)

    def clear(self) -> None:
        """Nothing is here any more."""
        self._parts.clear()
        self._buffers.clear()
        self._data_bytes = self._kept_bytes = 0

    def _keep(self, buffer: pa.Buffer) -> None:
        # Rows may be a part of what was read together, which they keep whole.
        known = self._buffers.get(buffer.address, 0)
        if buffer.size > known:
            self._buffers[buffer.address] = buffer.size
            self._kept_bytes += buffer.size - known

    def joined(self) -> tuple[EncodedRecords, RowNumbers]:
        """All that are here, of which there is one at least, as one, and which row came from where."""
        first, starts, rows = self._parts[0], list[int](), 0
        if len(self._parts) == 1:
            return replace(first, number=None), RowNumbers((0,), (first.number,))
        for each in self._parts:
            starts.append(rows)
            rows += len(each)
        columns = {
            name: pa.concat_arrays([getattr(each, name) for each in self._parts])
            for name in ("values", "keys", "timestamps")
            if getattr(first, name) is not None
        }
        numbers = RowNumbers(starts, [each.number for each in self._parts])
        return replace(first, number=None, **columns), numbers


def _kind(records: EncodedRecords) -> tuple[object, ...]:
    """What is the same for all records that are sent together."""
    key_type = None if records.keys is None else records.keys.type
    return records.topic, records.partition, records.values.type, key_type
