"""Where transactions end (KIP-618); pure."""

from __future__ import annotations

from dataclasses import dataclass, field

from headrace.connect.errors import TaskFailedError
from headrace.connect.record import SourceRecord
from headrace.connect.task import TransactionScope
from headrace.task.connector_spec import BoundaryKind


@dataclass(slots=True, kw_only=True)
class Boundary:
    """Decides when to commit, from ``transaction.boundary`` and the time of the last commit."""

    kind: BoundaryKind
    interval_seconds: float
    committed_at: float

    def due_inside_poll(self, now: float) -> bool:
        """Whether to commit between two batches of what one poll returned."""
        return self.kind is BoundaryKind.INTERVAL and self._interval_over(now)

    def due_after_poll(self, now: float) -> bool:
        """Whether to commit after a poll, whether or not it returned anything."""
        return self.kind is BoundaryKind.POLL or self.due_inside_poll(now)

    @property
    def commits_by_itself(self) -> bool:
        """Whether transactions end without a request of the connector, also one that is open when the loop ends."""
        return self.kind is not BoundaryKind.CONNECTOR

    def committed(self, now: float) -> None:
        """Start the next interval."""
        self.committed_at = now

    def _interval_over(self, now: float) -> bool:
        return now >= self.committed_at + self.interval_seconds


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
