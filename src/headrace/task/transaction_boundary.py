"""Where transactions end (KIP-618)."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Self

from headrace.connect.errors import TaskFailedError
from headrace.connect.record import SourceRecord
from headrace.connect.task import TransactionScope
from headrace.task.channel import Lease
from headrace.task.connector_spec import BoundaryKind
from headrace.task.frames import DeadLetter, Encoded, Frame, Records
from headrace.task.slot_work import EndReason, SlotWork
from headrace.task.transaction_timeout import never_ended

# Of the interval. A trickle of single records would otherwise have a transaction for each of them.
_EARLY = 0.25


@dataclass(slots=True, kw_only=True)
class Boundary:
    """Decides when to commit, from ``transaction.boundary`` and the time of the last commit.

    With *follows* the source is followed as it grows: what it had is committed as soon as it has nothing more for now,
    instead of at the end of the interval, because no one knows when more will come. A share that is followed may end
    anywhere, so it does not matter where that is.
    """

    kind: BoundaryKind
    interval_seconds: float
    committed_at: float
    follows: bool = False

    @classmethod
    def begun(cls, work: SlotWork, now: float) -> Self:
        """That of a slot that begins with *work*."""
        interval = work.spec.commit_seconds
        # Shares are often followed because of a single record, which then need not wait.
        head_start = _EARLY * interval if work.followed else 0.0
        return cls(
            kind=work.spec.boundary,
            interval_seconds=interval,
            committed_at=now - head_start,
            follows=work.followed,
        )

    def due_inside_poll(self, now: float) -> bool:
        """Whether to commit between two batches of what one poll returned."""
        return self.kind is BoundaryKind.INTERVAL and self._interval_over(now)

    def due_after_poll(self, now: float, *, catches_up: bool = False) -> bool:
        """Whether to commit after a poll, whether or not it returned anything.

        *catches_up* says that it did not, and that something is written that is not committed.
        """
        if self.kind is BoundaryKind.POLL:
            return True
        early = catches_up and self.follows
        return self.kind is BoundaryKind.INTERVAL and self._interval_over(
            now, share=_EARLY if early else 1.0
        )

    @property
    def commits_by_itself(self) -> bool:
        """Whether transactions end without a request of the connector, also one that is open when the loop ends."""
        return self.kind is not BoundaryKind.CONNECTOR

    def committed(self, now: float) -> None:
        """Start the next interval."""
        self.committed_at = now

    def _interval_over(self, now: float, *, share: float = 1.0) -> bool:
        return now >= self.committed_at + share * self.interval_seconds


@dataclass(slots=True)
class BoundaryRequests:
    """What a task has asked of its transaction context since the last poll; a ``TransactionContext``."""

    _commit_batch: bool = False
    _abort_batch: bool = False
    _commit_records: list[SourceRecord] = field(default_factory=list[SourceRecord])
    _abort_records: list[SourceRecord] = field(default_factory=list[SourceRecord])

    def commit_transaction(
        self, record: SourceRecord | TransactionScope = TransactionScope.POLL
    ) -> None:
        """Commit after *record*, or after what this ``poll`` returns."""
        if record is TransactionScope.POLL:
            self._commit_batch = True
            self._refuse_both_of_poll()
        else:
            self._commit_records.append(_named(record))
            self._refuse_both_of(record)

    def abort_transaction(
        self, record: SourceRecord | TransactionScope = TransactionScope.POLL
    ) -> None:
        """Abort after *record*, or after what this ``poll`` returns."""
        if record is TransactionScope.POLL:
            self._abort_batch = True
            self._refuse_both_of_poll()
        else:
            self._abort_records.append(_named(record))
            self._refuse_both_of(record)

    def cuts_at_records(self) -> bool:
        """Whether a transaction is to end at a certain record."""
        return bool(self._commit_records or self._abort_records)

    def commits_after(self, record: SourceRecord) -> bool:
        """Whether to commit directly after *record*; a request counts once."""
        return _taken(self._commit_records, record)

    def aborts_after(self, record: SourceRecord) -> bool:
        """Whether to abort directly after *record*; a request counts once."""
        return _taken(self._abort_records, record)

    def take_batch_commit(self) -> bool:
        """Whether to commit after this poll; a request counts once."""
        asked, self._commit_batch = self._commit_batch, False
        return asked

    def take_batch_abort(self) -> bool:
        """Whether to abort after this poll; a request counts once."""
        asked, self._abort_batch = self._abort_batch, False
        return asked

    def take_any(self) -> bool:
        """Whether to commit or abort after this poll; a request counts once."""
        commits, aborts = self.take_batch_commit(), self.take_batch_abort()
        return commits or aborts

    def _refuse_both_of_poll(self) -> None:
        if self._commit_batch and self._abort_batch:
            raise TaskFailedError("Connector requested both commit and abort of same transaction")

    def _refuse_both_of(self, record: SourceRecord) -> None:
        if record in self._commit_records and record in self._abort_records:
            partition = "null" if record.partition is None else record.partition
            raise TaskFailedError(
                "Connector requested both commit and abort of same record against "
                f"topic/partition {record.topic}/{partition}"
            )


def _named(record: SourceRecord | None) -> SourceRecord:
    if record is None:
        raise TaskFailedError("Source record used to define transaction boundaries may not be null")
    return record


def _taken(records: list[SourceRecord], record: SourceRecord) -> bool:
    if record not in records:
        return False
    records.remove(record)
    return True


class ConnectorBoundary:
    """Tracks whether a task's transaction is open, and lets a slot continue to its end. Used by the poll loop.

    A slot that should end continues for *grace_seconds*. A slot whose budget is over because others wait continues
    for as long as the transaction may be open, because a long transaction would otherwise be started over forever.
    """

    def __init__(
        self,
        lease: Lease,
        *,
        grace_seconds: float,
        transaction_seconds: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._lease = lease
        self._grace_seconds = grace_seconds
        self._transaction_seconds = transaction_seconds
        self._clock = clock
        self._open_since: float | None = None
        self._asked_at: float | None = None

    @property
    def is_open(self) -> bool:
        """Whether something was read since the connector last ended its transaction."""
        return self._open_since is not None

    def read(self, frame: Frame) -> None:
        """Note that *frame* goes into the transaction, or ends it."""
        if not isinstance(frame, Records | Encoded | DeadLetter):
            self.ended()
        elif self._open_since is None:
            self._open_since = self._clock()

    def ended(self) -> None:
        """Note that the connector has ended its transaction."""
        self._open_since = None

    def keeps_reading(self) -> bool:
        """Whether a slot that should end continues until the transaction ends.

        Raises :class:`~headrace.connect.errors.TaskFailedError` when it has been open for the maximum time.
        """
        if self._open_since is None or not self._lease.asked_to_end:
            return False
        if self._lease.asked_to_end == EndReason.BUDGET:
            self._lease.check()
            self._check_time(self._clock() - self._open_since)
            return True
        if self._asked_at is None:
            self._asked_at = self._clock()
        return self._grace_left(self._asked_at) > 0

    def wait(self, seconds: float) -> None:
        """Wait until the next poll, also when a slot that should end continues."""
        if self._asked_at is None:
            self._lease.wait(seconds)
        else:
            self._lease.pause(max(0.0, min(seconds, self._grace_left(self._asked_at))))

    def _check_time(self, open_seconds: float) -> None:
        if open_seconds >= self._transaction_seconds:
            raise TaskFailedError(never_ended(open_seconds, self._transaction_seconds))

    def _grace_left(self, asked_at: float) -> float:
        return asked_at + self._grace_seconds - self._clock()
