"""The writing half of the task loop: frames become records in Kafka, with their offsets."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from headrace.connect.batch import SourceBatch
from headrace.connect.errors import RecordError
from headrace.connect.task import SourceTask
from headrace.kafka.sender import EncodedRecords, Sender
from headrace.kafka.undelivered import LateRefusalError
from headrace.slot.boundary import Boundary
from headrace.slot.commits import Commits
from headrace.slot.encoding import Encoder, located
from headrace.slot.frames import Abort, Commit, EndOfPoll, Failed, Frame, OffsetsOnly, Records
from headrace.slot.hooks import CommitHooks
from headrace.slot.lease import Lease
from headrace.slot.pending import PendingOffsets, checked_update
from headrace.slot.sent import SentRows
from headrace.slot.work import Progress

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlet:
    """Where frames go: how they are encoded, sent and made permanent."""

    encoder: Encoder
    sender: Sender
    commits: Commits
    boundary: Boundary


class WritingHalf:
    """Sends frames in order and commits at boundaries. The only one who moves offsets.

    Asks *task* for ``update_offsets`` and tells it of commits; in split form that is an instance of its
    own, which is never polled.
    """

    def __init__(
        self,
        task: SourceTask,
        outlet: Outlet,
        lease: Lease,
        progress: Progress,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._task = task
        self._outlet = outlet
        self._lease = lease
        self._progress = progress
        self._clock = clock
        self._pending = PendingOffsets()
        self._sent = SentRows()
        self._hooks = CommitHooks(task)
        self._uncommitted = False
        self.left_open = False
        """Whether records were thrown away at the end, because the connector had not ended their transaction."""

    def write(self, frames: Iterable[Frame]) -> None:
        """Write all of *frames* and commit what the boundary allows.

        Raises what reading raised, after what precedes it was committed; a failure of its own leaves the
        transaction to :meth:`abandon`.
        """
        try:
            for frame in frames:
                self._write(frame)
            self._end()
        except LateRefusalError as error:
            raise self._sent.located(error) from error

    def abandon(self) -> None:
        """Throw away what is not committed; its offsets do not move, so it will be read again."""
        self._outlet.commits.abort()

    def _write(self, frame: Frame) -> None:
        match frame:
            case Records():
                self._send(frame)
                self._commit_if(due=self._outlet.boundary.due_after_records(self._clock()))
            case OffsetsOnly():
                self._pending.put_all(frame.offsets)
            case EndOfPoll():
                self._commit_if(due=self._outlet.boundary.due_after_poll(self._clock()))
            case Commit():
                self._commit()
            case Abort():
                self._abort_and_move_on()
            case Failed():
                self._end()
                raise frame.error

    def _send(self, frame: Records) -> None:
        batch = frame.batch
        try:
            encoded = self._outlet.encoder.encoded(batch)
        except RecordError as error:
            self._send_up_to(error, frame)
            self._end()
            raise located(error, batch) from error
        self._hand_over(frame, encoded)

    def _send_up_to(self, error: RecordError, frame: Records) -> None:
        if error.row:
            head = frame.batch.slice(0, error.row)
            originals = None if frame.originals is None else frame.originals[: error.row]
            # A converter that refuses a column for its type refuses what precedes the first value, too.
            self._send(Records(head, originals))

    def _hand_over(self, frame: Records, encoded: EncodedRecords) -> None:
        if not len(encoded):
            return
        self._lease.check()
        self._outlet.commits.before_records()
        self._sent.note(frame.batch, encoded)
        try:
            if self._hooks.wants_records:
                self._hooks.sent(frame, list(self._outlet.sender.send_each(encoded)))
            else:
                self._outlet.sender.send(encoded)
                self._hooks.sent(frame, [])
        except RecordError as error:
            # Rows behind the refused one may be in the queue: nothing of this transaction may stay.
            raise located(error, frame.batch) from error
        self._uncommitted = True
        self._count(frame.batch)
        self._pending.put(frame.batch.source_partition, frame.batch.offset_at(-1))

    def _count(self, batch: SourceBatch) -> None:
        self._progress.records += len(batch)
        self._progress.bytes += batch.nbytes

    def _commit_if(self, *, due: bool) -> None:
        if due:
            self._commit()

    def _end(self) -> None:
        if self._outlet.boundary.commits_at_end:
            self._commit()
        elif self._uncommitted:
            self.left_open = True
            self._outlet.commits.abort()

    def _commit(self) -> None:
        self._lease.check()
        commits = self._outlet.commits
        commits.settle()
        self._ask_for_updates()
        if commits.commit(self._pending.taken()):
            self._progress.transactions += 1
        self._progress.committed_records = self._progress.records
        self._progress.committed_bytes = self._progress.bytes
        self._progress.waiting_for = None
        self._uncommitted = False
        self._sent.forget()
        self._outlet.boundary.committed(self._clock())
        self._hooks.committed()

    def _ask_for_updates(self) -> None:
        try:
            self._pending.put_all(checked_update(self._task.update_offsets(self._pending.shown())))
        except Exception:
            if self._outlet.commits.update_must_succeed:
                raise
            _log.exception("update_offsets raised; it is asked again at the next commit")

    def _abort_and_move_on(self) -> None:
        self._outlet.commits.abort()
        self._sent.forget()
        self._hooks.dropped()
        self._commit()
