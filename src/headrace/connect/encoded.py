"""Record batches in Kafka's own format that pass from a source partition to a target partition without being opened."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, NamedTuple

from headrace.connect.partition import SourceOffset, SourcePartition, as_partition

UNKNOWN_COUNT: Final = -1
"""Instead of a number of records: it is only known once the records have been decoded."""


class EncodedHeader(NamedTuple):
    """What is known of one record batch without decoding it: its source offsets, and how many records it holds.

    *last_offset* is the offset after which the next batch may begin, less one: records that compaction removed from
    the end of the batch are passed, too. *record_count* is :data:`UNKNOWN_COUNT` where the batch does not say it.
    """

    base_offset: int
    last_offset: int
    record_count: int

    @property
    def at_most(self) -> int:
        """The number of its records, or one that is certainly not exceeded."""
        span = self.last_offset - self.base_offset + 1
        return span if self.record_count == UNKNOWN_COUNT else self.record_count

    def count_from(self, start: int) -> int:
        """How many of its records have at least the source offset *start*, or :data:`UNKNOWN_COUNT`."""
        if start <= self.base_offset or self.record_count == UNKNOWN_COUNT:
            return self.record_count
        if start > self.last_offset:
            return 0
        has_gaps = self.record_count != self.last_offset - self.base_offset + 1
        return UNKNOWN_COUNT if has_gaps else self.last_offset - start + 1


class CopiedRun(NamedTuple):
    """As many *records* of a source partition, from the source offset *first* on, which lie at the target from *target_first* on.

    There is no gap between them on either side. *target* is a topic and a partition.
    """

    source: SourcePartition
    target: tuple[str, int]
    first: int
    target_first: int
    records: int


@dataclass(frozen=True, slots=True, kw_only=True)
class EncodedBatches:
    """Whole record batches of one source partition for one target partition, unopened, in order.

    A task's ``poll`` may return it, or several in a sequence, when its context says so
    (:attr:`~headrace.connect.task.TaskContext.takes_encoded`); transformations and converters never see it. The
    sender forwards each batch with a new header, or rebuilds it where the target would not take it as it is.

    *data* are complete record batches as they were fetched, in any version of the format: only such whose
    transactions are committed, and no control batches. They must not change until the records are committed.
    *headers* has one entry for each. Records with a source offset below *start*, which only the first batch may have,
    are not sent. *next_offset* is the source offset at which reading goes on, with markers and aborted batches passed
    behind the last one; it is not below any header's ``last_offset`` + 1.

    *offset* is committed with the records. Its entry *moving* is an integer that grows as *next_offset* does, by one
    for each source offset: when a transaction ends between two batches, the runtime commits what it then is. The other
    entries hold for every batch, so a task returns another object where one of them changes.

    Without batches, *offset* moves and nothing is sent. Raises ``TypeError`` or ``ValueError`` for parts that do not fit
    together.
    """

    topic: str
    partition: int
    source_partition: SourcePartition
    data: Sequence[memoryview]
    headers: Sequence[EncodedHeader]
    start: int
    next_offset: int
    offset: SourceOffset
    moving: str = "offset"

    def __post_init__(self) -> None:
        object.__setattr__(self, "source_partition", as_partition(self.source_partition))
        if len(self.data) != len(self.headers):
            raise ValueError(
                f"Encoded batches have {len(self.data)} batches but {len(self.headers)} headers."
            )
        if type(self.offset.get(self.moving)) is not int:
            raise TypeError(
                f"The offset of encoded batches has no integer {self.moving!r}: {dict(self.offset)!r}."
            )
        self._check_order()

    def __len__(self) -> int:
        """The number of batches."""
        return len(self.data)

    @property
    def nbytes(self) -> int:
        """Bytes of all batches as they were fetched."""
        return sum(each.nbytes for each in self.data)

    @property
    def records(self) -> int:
        """How many records there are to send, or :data:`UNKNOWN_COUNT`."""
        counts = [each.count_from(self.start) for each in self.headers]
        return UNKNOWN_COUNT if UNKNOWN_COUNT in counts else sum(counts)

    def released(self) -> EncodedBatches:
        """The same without the bytes, for whoever only counts or places what was sent."""
        return dataclasses.replace(self, data=(memoryview(b""),) * len(self.data))

    def slice(self, first: int, count: int) -> EncodedBatches:
        """*count* batches from the one with the index *first*, without copying.

        What lies behind the last batch belongs to the last piece: only that has the whole's *next_offset*.
        """
        headers = self.headers[first : first + count]
        if not headers or first + count >= len(self.headers):
            next_offset = self.next_offset
        else:
            next_offset = headers[-1].last_offset + 1
        return dataclasses.replace(
            self,
            data=self.data[first : first + count],
            headers=headers,
            start=self.start if first == 0 or not headers else headers[0].base_offset,
            next_offset=next_offset,
            offset=self.offset_at(next_offset),
        )

    def offset_at(self, next_offset: int) -> SourceOffset:
        """What is committed when everything before the source offset *next_offset* is passed."""
        moved = self.offset[self.moving]
        assert isinstance(moved, int), "checked when it was made"
        return {**self.offset, self.moving: moved - (self.next_offset - next_offset)}

    def pieces(
        self, *, most_bytes: int, most_records: int | None = None
    ) -> Iterator[EncodedBatches]:
        """Pieces of at most *most_bytes* and *most_records*, but at least one batch each; itself if it is small enough."""
        cuts, nbytes, records = [0], 0, 0
        for index, (data, header) in enumerate(zip(self.data, self.headers, strict=True)):
            nbytes, records = nbytes + data.nbytes, records + header.at_most
            is_full = nbytes > most_bytes or (most_records is not None and records > most_records)
            if is_full and index > cuts[-1]:
                cuts.append(index)
                nbytes, records = data.nbytes, header.at_most
        if len(cuts) == 1:
            yield self
            return
        for begin, end in pairwise([*cuts, len(self.data)]):
            yield self.slice(begin, end - begin)

    def _check_order(self) -> None:
        reached = None
        for each in self.headers:
            if reached is not None and each.base_offset < reached:
                raise ValueError(
                    f"A batch begins at offset {each.base_offset}, before {reached}, where the one before it ends."
                )
            reached = each.last_offset + 1
        if reached is not None and self.next_offset < reached:
            raise ValueError(
                f"Encoded batches end at offset {reached}, but name {self.next_offset} as the next one."
            )
