"""What the poll loop hands to the writer: records, and the marks between them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from headrace.connect.batch import SourceBatch
from headrace.connect.encoded import EncodedBatches
from headrace.connect.errors import RecordError
from headrace.connect.partition import SourceOffset, SourcePartition
from headrace.connect.record import SourceRecord

Place = tuple[SourcePartition, SourceOffset | None]
"""A source partition, and an offset in it."""


@dataclass(frozen=True, slots=True)
class Returned:
    """Some *rows* of a batch as the task returned it; copied only if one of the task's hooks needs them."""

    batch: SourceBatch
    rows: pa.Int64Array

    def taken(self) -> SourceBatch:
        """The rows themselves."""
        whole = len(self.rows) == len(self.batch)
        return self.batch if whole else self.batch.take(self.rows)


@dataclass(frozen=True, slots=True)
class Records:
    """Rows to send. *originals* are the plain records that they were made from, if any.

    *returned* are the same rows as the task returned them, if a transformation has changed them.
    """

    batch: SourceBatch
    originals: Sequence[SourceRecord] | None = None
    returned: Returned | None = None

    @property
    def of_task(self) -> SourceBatch:
        """The rows as the task returned them; a copy if they are not its whole batch."""
        return self.batch if self.returned is None else self.returned.taken()

    @property
    def begins_at(self) -> Place | None:
        """The source position of the first row; ``None`` without rows."""
        batch = self.batch
        return (batch.source_partition, batch.offset_at(0)) if len(batch) else None

    def slice(self, start: int, length: int) -> Records:
        """*length* rows from *start*, without copying."""
        originals, returned = self.originals, self.returned
        return Records(
            self.batch.slice(start, length),
            None if originals is None else originals[start : start + length],
            None
            if returned is None
            else Returned(returned.batch, returned.rows.slice(start, length)),
        )

    def take(self, rows: pa.Int64Array) -> Records:
        """The rows with the indices *rows*, in that order; a copy."""
        originals, returned = self.originals, self.returned
        return Records(
            self.batch.take(rows),
            None if originals is None else [originals[row] for row in rows.to_pylist()],
            None if returned is None else Returned(returned.batch, returned.rows.take(rows)),
        )


@dataclass(slots=True)
class Encoded:
    """Record batches to send unopened. *sent* is how many records they held, noted by the writer.

    Before that, only their headers say it, and those may not know.
    """

    batches: EncodedBatches
    sent: int | None = None

    @property
    def records(self) -> int:
        """How many records they hold, as far as it is known now."""
        return max(0, self.batches.records) if self.sent is None else self.sent


@dataclass(frozen=True, slots=True)
class Filtered:
    """Rows that a transformation dropped; everything up to *offset* of their source partition is done after them."""

    records: Records
    offset: SourceOffset | None

    @property
    def ends_at(self) -> Place:
        """The source position that is reached with these rows."""
        return self.records.batch.source_partition, self.offset


@dataclass(frozen=True, slots=True)
class Refused:
    """One row that a transformation refused, in order among the others; *by* is the transformation's class."""

    records: Records
    error: RecordError
    by: str

    @property
    def begins_at(self) -> Place | None:
        """The source position of the row."""
        return self.records.begins_at


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A record that could not be read, in order among the others; the ``bad`` of *error* identifies it.

    *original* is the plain record, if there is one. Transaction boundaries apply to it as to records.
    """

    error: RecordError
    original: SourceRecord | None = None

    @property
    def begins_at(self) -> Place | None:
        """The source position of the record."""
        bad = self.error.bad
        return None if bad is None else (bad.source_partition, bad.source_offset)


@dataclass(frozen=True, slots=True)
class EndOfPoll:
    """The end of what one poll returned, which were so many *records*."""

    records: int


@dataclass(frozen=True, slots=True)
class Commit:
    """The connector commits the transaction here; *ends_poll* says that this is the end of what a poll returned."""

    ends_poll: bool = True


@dataclass(frozen=True, slots=True)
class Abort:
    """The connector aborts the transaction and moves past its records; *ends_poll* as for a commit."""

    ends_poll: bool = True


@dataclass(frozen=True, slots=True)
class Failed:
    """Reading failed here, or transforming the row that is *refused*; the frames before it stay valid.

    *at* is the position of the record that failed, if it was one. With *abandons* nothing more is committed: an
    uncommitted offset may already cover what failed.
    """

    error: Exception
    at: Place | None = None
    refused: Refused | None = None
    abandons: bool = False


@dataclass(frozen=True, slots=True)
class Waiting:
    """The next row is delayed: a step retries it, or ``poll`` has not returned.

    *next_from* is its source position; ``None`` after the end of a poll.
    """

    next_from: Place | None = None


Frame = (
    Records
    | Encoded
    | Filtered
    | Refused
    | DeadLetter
    | EndOfPoll
    | Commit
    | Abort
    | Failed
    | Waiting
)
