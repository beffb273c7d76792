"""Rows of one topic as record batches: which partition each row goes to, and the batches of each partition. Pure."""

# The library's types do not list the functions of pyarrow.compute, nor what arrays hold.
# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headrace.kafka.batches.encoding import (
    Encoding,
    RecordColumns,
    RecordTooLargeError,
    encoded,
    record_columns,
)
from headrace.kafka.batches.header_sections import sections_of_rows
from headrace.kafka.batches.producer_batch import UnstampedBatch
from headrace.kafka.batches.varints import Int64Array
from headrace.kafka.partitioner import java_partitions
from headrace.kafka.sender import EncodedRecords


class RowBatch(NamedTuple):
    """A batch for *partition*, and which *rows* it holds, in their order."""

    partition: int
    rows: Int64Array
    batch: UnstampedBatch


def columns_of(records: EncodedRecords, *, now: int) -> RecordColumns:
    """The columns of *records*; *now* is the time, in milliseconds, of those that have none."""
    times, headers = times_of(records, now), sections_of_rows(records.headers)
    return record_columns(times, records.values, records.keys, headers)


def times_of(records: EncodedRecords, now: int) -> Int64Array:
    """The time of each of *records*, in milliseconds; *now* for those that have none."""
    given = records.timestamps
    if given is None or isinstance(given, int):
        return np.full(len(records), now if given is None or given < 0 else given, np.int64)
    times = np.array(pc.fill_null(given, -1), np.int64)
    return np.where(times < 0, now, times)


@dataclass(slots=True)
class StickyPartitions:
    """Partitions for records without a key: one until a batch is full, then the next, as Java's clients choose (KIP-480).

    A batch is full with *batch_bytes*. *first* chooses where to begin, out of so many.
    """

    batch_bytes: int
    first: Callable[[int], int] = random.randrange
    _current: dict[str, tuple[int, int]] = field(default_factory=dict[str, tuple[int, int]])

    def next(self, topic: str, partitions: int, nbytes: int) -> int:
        """The partition for the next batch, which has *nbytes*, of *topic* with so many *partitions*."""
        if topic not in self._current:
            self._current[topic] = self.first(partitions), 0
        partition, used = self._current[topic]
        if used and used + nbytes > self.batch_bytes:
            partition, used = partition + 1, 0
        partition %= partitions
        self._current[topic] = partition, used + nbytes
        return partition


def row_batches(
    columns: RecordColumns,
    how: Encoding,
    *,
    keys: pa.BinaryArray | None,
    partition: int | None,
    partitions: Callable[[], int],
    sticky: Callable[[int, int], int],
) -> Iterator[RowBatch]:
    """The batches of *columns*, partition after partition; within one, rows keep their order.

    All rows are for *partition*, or where their *keys* belong out of so many *partitions*; a batch without keys goes where
    *sticky* says for that many partitions and its number of bytes. Raises
    :class:`~headrace.kafka.batches.encoding.RecordTooLargeError` with the row in *columns*.
    """
    if not len(columns):
        return
    every = np.arange(len(columns))
    if partition is not None:
        for batch, rows in _cut(columns, every, how):
            yield RowBatch(partition, rows, batch)
        return
    count = partitions()
    if keys is None or columns.keys is None:
        for batch, rows in _cut(columns, every, how):
            yield RowBatch(sticky(count, len(batch.data)), rows, batch)
        return
    chosen = java_partitions(keys.fill_null(b""), count)
    keyless = columns.keys.sizes < 0
    if keyless.any():
        # All in one, so that they are in order with those whose keys belong there.
        nbytes = np.maximum(columns.values.sizes[keyless], 0).sum()
        chosen[keyless] = sticky(count, int(nbytes))
    order = np.argsort(chosen, kind="stable")
    starts = np.flatnonzero(np.diff(chosen[order])) + 1
    # All partitions together: what is done for each of them costs as much as for many rows.
    for batch, rows in _cut(columns.take(order), order, how, starts=starts.tolist()):
        yield RowBatch(int(chosen[rows[0]]), rows, batch)


def _cut(
    columns: RecordColumns, rows: Int64Array, how: Encoding, *, starts: Sequence[int] = ()
) -> Iterator[tuple[UnstampedBatch, Int64Array]]:
    """The batches of *columns*, and which of *rows* are in each."""
    done = 0
    try:
        for batch in encoded(columns, how, starts=starts):
            yield batch, rows[done : done + batch.record_count]
            done += batch.record_count
    except RecordTooLargeError as error:
        raise RecordTooLargeError(int(rows[error.row]), error.size) from error
