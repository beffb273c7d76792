"""What a slot's transactions hold, counted for its progress."""

from __future__ import annotations

from headrace.connect.batch import SourceBatch
from headrace.slot.work import Progress


class Amounts:
    """Counts what is sent, and again as committed once it is. Used by the writing half."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self.dropped()

    def sent(self, batch: SourceBatch) -> None:
        """Note that *batch* is in the transaction."""
        self._progress.records += len(batch)
        self._progress.bytes += batch.nbytes
        self._records += len(batch)
        self._bytes += batch.nbytes
        self._topics.add(batch.topic)

    @property
    def in_transaction(self) -> int:
        """The records that were sent since the last commit."""
        return self._records

    def dropped(self) -> None:
        """What is in the transaction counts no more."""
        self._records = 0
        self._bytes = 0
        self._topics = set[str]()

    def took(self, seconds: float, *, in_transaction: bool) -> None:
        """Note how long a commit took that wrote anything."""
        self._progress.transactions += 1
        self._progress.commits.add(seconds)
        if in_transaction:
            self._progress.transaction_sizes.add(self._records)

    def committed(self, *, moved_offsets: int) -> None:
        """What is in the transaction is there for good, with offsets that moved without a record."""
        progress = self._progress
        progress.moved_offsets += moved_offsets
        progress.committed_records += self._records
        progress.committed_bytes += self._bytes
        if not self._topics.issubset(progress.topics):
            # Another sequence, because the heartbeat may be reading this one.
            progress.topics = sorted(self._topics.union(progress.topics))
        progress.waiting_for = None
        self.dropped()
