"""What the reading half hands to the writing half: records, and the marks between them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from headrace.connect.batch import SourceBatch
from headrace.connect.errors import RecordError
from headrace.connect.record import SourceRecord
from headrace.connect.task import Offsets


@dataclass(frozen=True, slots=True)
class Records:
    """Rows to send. *originals* are the plain records they were made from, if there were any."""

    batch: SourceBatch
    originals: Sequence[SourceRecord] | None = None

    def slice(self, start: int, length: int) -> Records:
        """*length* rows from *start*, without copying."""
        originals = self.originals
        cut = None if originals is None else originals[start : start + length]
        return Records(self.batch.slice(start, length), cut)


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A record that could not be read, in its place among the others; *error* says which, in ``bad``.

    *original* is the plain record, if there is one. It obeys the ends of transactions as records do.
    """

    error: RecordError
    original: SourceRecord | None = None


@dataclass(frozen=True, slots=True)
class OffsetsOnly:
    """Offsets that move without a record, as those of filtered records do."""

    offsets: Offsets


@dataclass(frozen=True, slots=True)
class EndOfPoll:
    """Everything that one poll returned is behind; *records* tells how many those were."""

    records: int


@dataclass(frozen=True, slots=True)
class Commit:
    """The connector ends the transaction here."""


@dataclass(frozen=True, slots=True)
class Abort:
    """The connector throws away what is in the transaction, and moves past it."""


@dataclass(frozen=True, slots=True)
class Failed:
    """Reading failed here; what precedes it keeps its place."""

    error: Exception


Frame = Records | DeadLetter | OffsetsOnly | EndOfPoll | Commit | Abort | Failed
