"""What the reading half hands to the writing half: records, and the marks between them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from headrace.connect.batch import SourceBatch
from headrace.connect.errors import RecordError
from headrace.connect.partition import SourceOffset, SourcePartition
from headrace.connect.record import SourceRecord

Place = tuple[SourcePartition, SourceOffset | None]
"""A source partition, and an offset in it."""


@dataclass(frozen=True, slots=True)
class Returned:
    """Some *rows* of a batch as the task returned it; copied only for a task that asks for them."""

    batch: SourceBatch
    rows: pa.Int64Array

    def taken(self) -> SourceBatch:
        """The rows themselves."""
        whole = len(self.rows) == len(self.batch)
        return self.batch if whole else self.batch.take(self.rows)


@dataclass(frozen=True, slots=True)
class Records:
    """Rows to send. *originals* are the plain records they were made from, if there were any.

    *returned* are the same rows as the task returned them, where a transformation has changed them.
    """

    batch: SourceBatch
    originals: Sequence[SourceRecord] | None = None
    returned: Returned | None = None

    @property
    def of_task(self) -> SourceBatch:
        """The rows as the task knows them; a copy where they are not all of its batch."""
        return self.batch if self.returned is None else self.returned.taken()

    @property
    def begins_at(self) -> Place | None:
        """Where its first row comes from; ``None`` without rows."""
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
        """The rows with the numbers *rows*, in their order; a copy."""
        originals, returned = self.originals, self.returned
        return Records(
            self.batch.take(rows),
            None if originals is None else [originals[row] for row in rows.to_pylist()],
            None if returned is None else Returned(returned.batch, returned.rows.take(rows)),
        )


@dataclass(frozen=True, slots=True)
class Filtered:
    """Rows that a transformation dropped; with them, everything up to *offset* of their source partition is done."""

    records: Records
    offset: SourceOffset | None

    @property
    def ends_at(self) -> Place:
        """Where it leaves its source partition."""
        return self.records.batch.source_partition, self.offset


@dataclass(frozen=True, slots=True)
class Refused:
    """One row that a transformation cannot change, in its place among the others; *by* is that one's class."""

    records: Records
    error: RecordError
    by: str

    @property
    def begins_at(self) -> Place | None:
        """Where its row comes from."""
        return self.records.begins_at


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A record that could not be read, in its place among the others; *error* says which, in ``bad``.

    *original* is the plain record, if there is one. It obeys the ends of transactions as records do.
    """

    error: RecordError
    original: SourceRecord | None = None

    @property
    def begins_at(self) -> Place | None:
        """Where the record comes from."""
        bad = self.error.bad
        return None if bad is None else (bad.source_partition, bad.source_offset)


@dataclass(frozen=True, slots=True)
class EndOfPoll:
    """Everything that one poll returned is behind; *records* tells how many those were."""

    records: int


@dataclass(frozen=True, slots=True)
class Commit:
    """The connector ends the transaction here; *ends_poll* says that this is behind all of a poll."""

    ends_poll: bool = True


@dataclass(frozen=True, slots=True)
class Abort:
    """The connector throws away what is in the transaction, and moves past it; *ends_poll* as of a commit."""

    ends_poll: bool = True


@dataclass(frozen=True, slots=True)
class Failed:
    """Reading failed here, or transforming the row that is *refused*; what precedes it keeps its place.

    *at* is the record that failed, where it is one. With *abandons* nothing is committed that is not yet: it is
    not known whether an offset there says that what failed has been read.
    """

    error: Exception
    at: Place | None = None
    refused: Refused | None = None
    abandons: bool = False


@dataclass(frozen=True, slots=True)
class Waiting:
    """The next row is long in coming: a step tries it again, or ``poll`` has not returned.

    *next_from* is where it comes from; ``None`` where all of a poll is behind.
    """

    next_from: Place | None = None


Frame = Records | Filtered | Refused | DeadLetter | EndOfPoll | Commit | Abort | Failed | Waiting
