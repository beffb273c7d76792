"""Commits what has been written since the last commit, with its offsets, when the transaction boundary allows."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping

from headrace.connect.batch import SourceBatch
from headrace.connect.encoded import EncodedBatches
from headrace.connect.partition import OffsetReader, SourceOffset, SourcePartition
from headrace.connect.task import Offsets, SourceTask
from headrace.kafka.batches.forwarding import Counted
from headrace.kafka.sender import EncodedRecords
from headrace.task.channel import Lease
from headrace.task.commit_hooks import CommitHooks
from headrace.task.frames import Place
from headrace.task.offset_updates import OffsetUpdates, raise_failed_update
from headrace.task.record_origin import InFlightRecords
from headrace.task.slot_report import Progress
from headrace.task.transaction_timeout import OpenTransaction
from headrace.task.write_pipeline import WritePipeline

_log = logging.getLogger(__name__)

_NOTHING_OPEN = (
    "The task asked to abort its transaction, but none is open: nothing has been sent since the last one ended. "
    "Offsets that have moved since then are committed."
)


class PendingOffsets:
    """The newest offset of each source partition since the last commit."""

    def __init__(self) -> None:
        self._offsets: dict[SourcePartition, SourceOffset | None] = {}

    def put(self, partition: SourcePartition, offset: SourceOffset | None) -> None:
        """Note that everything of *partition* up to *offset* has been handed over."""
        self._offsets[partition] = offset

    def put_all(self, offsets: Offsets) -> None:
        """As :meth:`put`, for several partitions."""
        self._offsets.update(offsets)

    def end_at(self, partition: SourcePartition, offset: SourceOffset | None) -> bool:
        """Whether *offset* is the newest pending one of *partition*."""
        return partition in self._offsets and self._offsets[partition] == offset

    def so_far(self) -> Offsets:
        """A copy of the pending offsets."""
        return dict(self._offsets)

    def taken(self) -> Offsets:
        """The offsets to commit; none are pending afterwards."""
        offsets, self._offsets = self._offsets, {}
        return offsets


class SentCounts:
    """Counts what is sent, and what of it is committed. Used by the writer."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self.dropped()

    def sent(self, topic: str, *, records: int, nbytes: int) -> None:
        """Note that so many *records* for *topic* are in the transaction."""
        self._progress.records += records
        self._progress.bytes += nbytes
        self._records += records
        self._bytes += nbytes
        self._topics.add(topic)

    def copied(self, counted: Mapping[str, Counted]) -> None:
        """Note what was copied unopened so far, and which way it went."""
        # New dictionaries, because the heartbeat may be reading the old ones.
        self._progress.copied_batches = {way: each.batches for way, each in counted.items()}
        self._progress.copied_bytes = {way: each.nbytes for way, each in counted.items()}

    def not_written(self, records: int) -> None:
        """So many *records* that were sent are not in the transaction after all."""
        self._records -= records

    @property
    def in_transaction(self) -> int:
        """How many records were sent since the last commit."""
        return self._records

    def dropped(self) -> None:
        """Forget what is in the transaction: it was aborted."""
        self._records = 0
        self._bytes = 0
        self._topics = set[str]()

    def took(self, seconds: float, *, in_transaction: bool) -> None:
        """Note the duration of a commit that wrote something."""
        self._progress.transactions += 1
        self._progress.commits.add(seconds)
        if in_transaction:
            self._progress.transaction_sizes.add(self._records)

    def committed(self, *, moved_offsets: int) -> None:
        """Count what is in the transaction as committed, with *moved_offsets* offsets that moved without a record."""
        progress = self._progress
        progress.moved_offsets += moved_offsets
        progress.committed_records += self._records
        progress.committed_bytes += self._bytes
        if not self._topics.issubset(progress.topics):
            # A new list, because the heartbeat may be reading the old one.
            progress.topics = sorted(self._topics.union(progress.topics))
        progress.waiting_for = None
        self.dropped()


class OffsetCommitter:
    """Tracks what the writer has written, and commits it with its offsets when the boundary allows.

    Nothing else moves offsets. It asks *task* for ``update_offsets`` and calls its commit hooks.
    """

    def __init__(
        self,
        task: SourceTask,
        pipeline: WritePipeline,
        lease: Lease,
        progress: Progress,
        *,
        stored: OffsetReader | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._pipeline = pipeline
        self._lease = lease
        self._clock = clock
        self._pending = PendingOffsets()
        self._updates = OffsetUpdates(task, stored)
        self._counts = SentCounts(progress)
        self._uncommitted = False
        self._held_back = False
        self.rows = InFlightRecords()
        self.hooks = CommitHooks(task)
        self.left_open = False
        """Whether records were aborted at the end, because the connector had not ended their transaction."""

    def sent(self, batch: SourceBatch, encoded: EncodedRecords) -> None:
        """Note that all of *batch* is handed to the client as *encoded*."""
        self._counts.sent(encoded.topic, records=len(encoded), nbytes=encoded.data_bytes)
        self.moved(batch.source_partition, batch.offset_at(-1))

    def forwarded(self, batches: EncodedBatches, records: int) -> None:
        """Note that all *records* of *batches* are handed over; they count with their bytes as fetched."""
        if records:
            self._counts.sent(batches.topic, records=records, nbytes=batches.nbytes)
        self.hooks.forwarded(batches)
        self.moved(batches.source_partition, batches.offset)
        if self._pipeline.has_many_refused:
            self._pass_over_refused()

    def moved(self, partition: SourcePartition, offset: SourceOffset | None) -> None:
        """Note that everything of *partition* up to *offset* is written or skipped."""
        self._uncommitted = True
        self._pending.put(partition, offset)

    def before_more_of_poll(self, next_from: Place | None) -> None:
        """Called before rows of a poll are written, from *next_from* on; commit what precedes them in it, if due.

        Not directly after each piece, because after the last one the poll is at its end; and not if the offset of
        the preceding rows already covers the next ones.
        """
        if self._updates.inside_poll:
            self._commit_inside_poll(next_from)
        self._updates.inside_poll = True

    def meanwhile(self, next_from: Place | None) -> None:
        """Commit what is written of a poll, if that is due, while its next rows are delayed."""
        # The task is not asked for updates: its position is after those rows.
        self._updates.inside_poll = True
        self._commit_inside_poll(next_from)

    def poll_ended(self, *, is_empty: bool = False) -> None:
        """All of a poll is written, unless it *is_empty*; commit it, and what was before it, if that is due."""
        self._updates.inside_poll = False
        boundary = self._pipeline.boundary
        overdue = self._updates.is_overdue and boundary.commits_by_itself
        catches_up = is_empty and self._uncommitted
        if overdue or boundary.due_after_poll(self._clock(), catches_up=catches_up):
            self._commit()

    def asked_to_commit(self, *, ends_poll: bool) -> None:
        """The connector ends its transaction here."""
        self._updates.inside_poll &= not ends_poll
        self._commit()

    def asked_to_abort(self, *, ends_poll: bool) -> None:
        """The connector aborts its transaction here, and moves past its records."""
        self._updates.inside_poll &= not ends_poll
        if not self._pipeline.commits.abort():
            _log.warning(_NOTHING_OPEN)
        self.rows.forget()
        self.hooks.dropped()
        self._pipeline.tolerance.dropped()
        self._counts.dropped()
        self._commit()

    def end(self) -> None:
        """End writing: commit, or abort what only the connector may commit."""
        if self._pipeline.boundary.commits_by_itself:
            self._commit()
        elif self._uncommitted:
            self.left_open = True
            self._pipeline.commits.abort()

    def end_before(self, place: Place | None) -> None:
        """End before the failing record at *place*: commit only if that record is then read again."""
        if not self._would_pass(place):
            self.end()

    def end_inside_poll_before(self, place: Place | None) -> None:
        """As :meth:`end_before`, when a poll or one of its rows fails."""
        self._updates.inside_poll = True
        self.end_before(place)

    def open_transaction(self) -> OpenTransaction:
        """The transaction that is open, for the error message when it took too long."""
        return OpenTransaction(
            boundary=self._pipeline.boundary.kind,
            records=self._counts.in_transaction,
            held_back=self._held_back,
        )

    def _commit_inside_poll(self, next_from: Place | None) -> None:
        due = self._pipeline.boundary.due_inside_poll(self._clock())
        self._held_back = due and self._would_pass(next_from)
        if due and not self._held_back:
            self._commit()

    def _would_pass(self, place: Place | None) -> bool:
        """Whether a commit would mark the record at *place*, which is not sent yet, as read."""
        return place is not None and self._pending.end_at(*place)

    def _commit(self) -> None:
        self._lease.check()
        began = self._clock()
        commits = self._pipeline.commits
        self._pass_over_refused()
        commits.settle()
        self._ask_for_updates()
        if self._counts.in_transaction:
            self.hooks.before_commit(self._pipeline.write_for_commit)
        offsets = self._pending.taken()
        if commits.commit(offsets):
            took = self._clock() - began
            self._counts.took(took, in_transaction=commits.in_transactions)
        if self._pipeline.forwarder is not None:
            self._counts.copied(self._pipeline.forwarder.counted)
        self._counts.committed(moved_offsets=self._updates.committed(offsets))
        self._pipeline.tolerance.committed()
        self._uncommitted = False
        self.rows.forget()
        self._pipeline.boundary.committed(self._clock())
        self.hooks.committed()

    def _pass_over_refused(self) -> None:
        self._counts.not_written(self._pipeline.pass_over_refused())

    def _ask_for_updates(self) -> None:
        try:
            self._pending.put_all(self._updates.asked(self._pending.so_far()))
        except Exception as error:  # noqa: BLE001 (raised again, or logged and retried)
            if self._pipeline.commits.update_must_succeed:
                raise_failed_update(error)
            _log.exception("update_offsets raised; it is called again at the next commit")
