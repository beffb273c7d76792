"""What a slot reports to the driver: its progress at each heartbeat, and how it ended."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Self

from headrace.connect.partition import OffsetValue, SourceOffset


class Outcome(StrEnum):
    """How a slot ended."""

    FINISHED = "finished"
    """Its share of the plan is read and committed."""
    IDLE = "idle"
    """Its polls returned nothing for a while; everything before is committed."""
    ASKED = "asked"
    """The driver asked it to end; everything that it read is committed."""
    STALE = "stale"
    """Its token is invalid, or another copy has claimed it; it has written nothing."""
    REPLAN = "replan"
    """It lost its transaction or its lease; the work is to be planned again."""
    REFUSED = "refused"
    """It was given no work, as it has another version of headrace than the driver; it has written nothing."""
    FAILED = "failed"
    """It failed for a reason that an operator has to look at."""


STALE = "stale"
"""The reason reported by a copy of a slot whose token another copy has claimed."""


@dataclass(slots=True, kw_only=True)
class Tally:
    """Count, sum, minimum and maximum of some amounts."""

    count: int = 0
    total: float = 0
    least: float = 0
    most: float = 0

    def add(self, amount: float) -> None:
        """Add one *amount*."""
        self.least = min(self.least, amount) if self.count else amount
        self.most = max(self.most, amount)
        self.total += amount
        self.count += 1


@dataclass(slots=True, kw_only=True)
class Progress:
    """What a slot has done so far in this micro-batch. Written by the slot's thread, read by its heartbeat.

    *waiting_for* is what sending or converting waits for, *source_away* why ``poll`` has to be called again.
    *idle_seconds* is how long polls have returned nothing, ``None`` while the source has something, is away, or is still
    being looked through.

    Of the records with tolerated errors, *dead_lettered* are in the dead letter topic and *skipped* are not;
    *quarantined* of them each stand for the unread rest of an object. All three count committed records, and
    *moved_offsets* counts committed offsets that ``update_offsets`` moved without a record. *topics* are those with
    committed records, sorted.

    *record_errors* are records that could not be read, converted or sent, including those that failed the task,
    and *errors_logged* those that were logged; *retries* is how often a record or batch was retried,
    *dead_letters_failed* how many dead letters could not be written. These count what happened, committed or not.

    *copied_batches* and *copied_bytes* are the record batches that were copied unopened, by ``forwarded``, or the reason why they
    were rebuilt.

    *polled_records* includes bad records. *polls* are the seconds of each poll that returned something and
    *batches* the number of its records, *commits* the seconds of each commit and *transaction_sizes* the number of
    records of each transaction; the last is empty with at-least-once.
    """

    records: int = 0
    bytes: int = 0
    committed_records: int = 0
    committed_bytes: int = 0
    transactions: int = 0
    dead_lettered: int = 0
    skipped: int = 0
    quarantined: int = 0
    moved_offsets: int = 0
    record_errors: int = 0
    retries: int = 0
    errors_logged: int = 0
    dead_letters_failed: int = 0
    copied_batches: Mapping[str, int] = field(default_factory=dict[str, int])
    copied_bytes: Mapping[str, int] = field(default_factory=dict[str, int])
    waiting_for: str | None = None
    source_away: str | None = None
    idle_seconds: float | None = None
    stopping_task: bool = False
    topics: Sequence[str] = ()
    polled_records: int = 0
    polls: Tally = field(default_factory=Tally)
    batches: Tally = field(default_factory=Tally)
    commits: Tally = field(default_factory=Tally)
    transaction_sizes: Tally = field(default_factory=Tally)

    def as_message(self) -> dict[str, Any]:
        """What was done, as JSON values."""
        return dataclasses.asdict(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotReport:
    """A slot's final report.

    *clean* says that it left no transaction open, *surprising* that it ended with an unexpected error, which is no
    ``ConnectError``. *partition* is the source partition because of which alone a planned slot has failed, and *source_offset* the
    one after what cannot be read of it (:class:`~headrace.connect.errors.PartitionError`).
    """

    outcome: Outcome
    clean: bool = True
    surprising: bool = False
    reason: str | None = None
    trace: str | None = None
    partition: Mapping[str, OffsetValue] | None = None
    source_offset: SourceOffset | None = None
    progress: Mapping[str, Any] = field(default_factory=dict[str, Any])

    def as_message(self) -> dict[str, Any]:
        """The report as JSON values."""
        return dataclasses.asdict(self)

    @classmethod
    def from_message(cls, message: Mapping[str, Any]) -> Self:
        """The report from what :meth:`as_message` returned."""
        given = dict(message)
        return cls(outcome=Outcome(given.pop("outcome")), **given)
