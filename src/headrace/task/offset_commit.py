"""Commits offsets: of what has been written since the last commit, and those that move without records (KIP-910)."""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from headrace.connect.batch import BatchOffsets, SourceBatch
from headrace.connect.errors import ConnectError, RecordError
from headrace.connect.partition import OffsetReader, SourceOffset, SourcePartition
from headrace.connect.task import Offsets, SourceTask
from headrace.kafka.sender import EncodedRecords, LateRefusalError
from headrace.task.commit_hooks import CommitHooks, overrides
from headrace.task.frames import Place
from headrace.task.lease import Lease
from headrace.task.pending_offsets import (
    PendingOffsets,
    changed,
    checked_update,
    raise_failed_update,
    read_only,
)
from headrace.task.record_origin import position_text, source_name
from headrace.task.slot_report import Progress
from headrace.task.transactions import OpenTransaction
from headrace.task.write_pipeline import WritePipeline

_log = logging.getLogger(__name__)

# More than most tasks ever have; a task with more gets some offsets committed that have not changed.
_MOST_KNOWN = 10_000
# Twice what the client's queue holds, where a record must be to be refused, unless the user enlarged it.
_MOST_BYTES = 64 * 1024 * 1024
_NOTHING_OPEN = (
    "The task asked to abort its transaction, but none is open: nothing has been sent since the last one ended. "
    "Offsets that have moved since then are committed."
)


class SentCounts:
    """Counts what is sent, and what of it is committed. Used by the writer."""

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


class OffsetUpdates:
    """Calls ``update_offsets`` of *task*, when everything that it has polled is sent. Used by the writer.

    In the middle of a poll, a task that returns its own position would be ahead of what is committed. *stored*
    reads the offsets that were committed before this slot began.
    """

    def __init__(self, task: SourceTask, stored: OffsetReader | None) -> None:
        self._task = task
        self._stored = stored
        self._is_wanted = overrides(task, "update_offsets")
        self._known: dict[SourcePartition, SourceOffset | None] = {}
        self._unreported: dict[SourcePartition, SourceOffset | None] = {}
        self._was_asked = False
        self._moved = 0
        self.inside_poll = False
        """Whether records of the last poll are not sent yet, or the poll has not returned."""
        self.is_overdue = False
        """Whether the last commit was in the middle of a poll, when the task could not be asked."""

    def asked(self, pending: Offsets) -> Offsets:
        """What the task changes in the commit of *pending*; nothing when it must not be asked.

        It is shown *pending* and what was committed since it was last asked. Raises what the task raises, and
        :class:`~headrace.connect.errors.TaskFailedError` for a result of the wrong type.
        """
        self._was_asked, self._moved = False, 0
        if not self._is_wanted or self.inside_poll:
            return {}
        shown = read_only({**self._unreported, **pending})
        update = checked_update(self._task.update_offsets(shown))
        self._was_asked = True
        added = update.keys() - pending.keys()
        moved = changed(update, {**self._committed(added), **pending})
        self._moved = len(added & moved.keys())
        return moved

    def committed(self, offsets: Offsets) -> int:
        """Note that *offsets* are committed, whether or not the task was asked; returns how many moved without records."""
        if not self._is_wanted:
            return 0
        self.is_overdue = self.inside_poll
        if self._was_asked:
            self._unreported.clear()
        else:
            self._unreported.update(offsets)
        self._known.update(offsets)
        if len(self._known) > _MOST_KNOWN:
            # The offsets that the store had before are older than those forgotten here.
            self._known, self._stored = {}, None
        return self._moved

    def _committed(self, partitions: set[SourcePartition]) -> Offsets:
        unknown = partitions - self._known.keys()
        if unknown and self._stored is not None:
            self._known.update(self._stored.offsets(unknown))
        return {each: self._known[each] for each in partitions & self._known.keys()}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rows:
    topic: str
    partition: SourcePartition
    offsets: BatchOffsets | None
    keys: pa.Int32Array | None
    values: pa.Int32Array
    nbytes: int


class InFlightRecords:
    """Offsets and sizes of the rows that were handed to the client; not the rows, to stay small.

    Of a refused record the client reports only its sizes. Used by the writer.
    """

    def __init__(self, *, most_bytes: int = _MOST_BYTES) -> None:
        self._most_bytes = most_bytes
        self._rows = deque[_Rows]()
        self._nbytes = 0

    def note(self, batch: SourceBatch, encoded: EncodedRecords) -> None:
        """Note that *batch* is handed to the client as *encoded*."""
        rows = _Rows(
            topic=batch.topic,
            partition=batch.source_partition,
            offsets=batch.offsets,
            keys=None if encoded.keys is None else pc.binary_length(encoded.keys),
            values=pc.binary_length(encoded.values),
            nbytes=encoded.values.nbytes,
        )
        self._rows.append(rows)
        self._nbytes += rows.nbytes
        while self._nbytes - self._rows[0].nbytes > self._most_bytes:
            self._nbytes -= self._rows.popleft().nbytes

    def take_back(self) -> None:
        """Undo the last :meth:`note`: the batch was not handed over after all."""
        self._nbytes -= self._rows.pop().nbytes

    def forget(self) -> None:
        """Forget all rows: they are acknowledged, or aborted."""
        self._rows.clear()
        self._nbytes = 0

    def located(self, error: LateRefusalError) -> ConnectError:
        """*error* with the source position of the first row that it matches; *error* itself if there is none.

        If it matches several rows, the position says "at or after".
        """
        found = self._matches(error)
        first = next(found, None)
        if first is None:
            return error
        rows, row = first
        offset = None if rows.offsets is None else rows.offsets.at(row)
        where = "at" if next(found, None) is None else "at or after"
        return RecordError(
            error.reason,
            native_key=source_name(rows.partition),
            position=position_text(offset, where=where),
            advice=error.advice,
        )

    def _matches(self, error: LateRefusalError) -> Iterator[tuple[_Rows, int]]:
        for rows in self._rows:
            if rows.topic != error.topic or (rows.keys is None and error.key_bytes is not None):
                continue
            fits = _fits(rows.values, error.value_bytes)
            if rows.keys is not None:
                fits = pc.and_(fits, _fits(rows.keys, error.key_bytes))
            yield from ((rows, row) for row in pc.indices_nonzero(fits).to_pylist())


def _fits(lengths: pa.Int32Array, length: int | None) -> pa.BooleanArray:
    """Which of *lengths* equal *length*; null equals null."""
    return pc.is_in(lengths, value_set=pa.array([length], pa.int32()))


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

    def sent(self, batch: SourceBatch) -> None:
        """Note that all of *batch* is handed to the client."""
        self._counts.sent(batch)
        self.moved(batch.source_partition, batch.offset_at(-1))

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

    def poll_ended(self) -> None:
        """All of a poll is written; commit it, if that is due."""
        self._updates.inside_poll = False
        boundary = self._pipeline.boundary
        overdue = self._updates.is_overdue and boundary.commits_by_itself
        if overdue or boundary.due_after_poll(self._clock()):
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
        commits.settle()
        self._ask_for_updates()
        offsets = self._pending.taken()
        if commits.commit(offsets):
            took = self._clock() - began
            self._counts.took(took, in_transaction=commits.in_transactions)
        self._counts.committed(moved_offsets=self._updates.committed(offsets))
        self._pipeline.tolerance.committed()
        self._uncommitted = False
        self.rows.forget()
        self._pipeline.boundary.committed(self._clock())
        self.hooks.committed()

    def _ask_for_updates(self) -> None:
        try:
            self._pending.put_all(self._updates.asked(self._pending.so_far()))
        except Exception as error:  # noqa: BLE001 (raised again, or logged and retried)
            if self._pipeline.commits.update_must_succeed:
                raise_failed_update(error)
            _log.exception("update_offsets raised; it is called again at the next commit")
