"""The writing half of the task loop: frames become records in Kafka, with their offsets."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from headrace.connect.bad_record import BadRecord
from headrace.connect.batch import SourceBatch
from headrace.connect.errors import (
    ConnectError,
    RecordError,
    TaskFailedError,
    TransactionTimedOutError,
)
from headrace.connect.partition import OffsetReader
from headrace.connect.task import SourceTask
from headrace.kafka.sender import EncodedRecords, RecordSender, TooLargeError, UnsendableError
from headrace.kafka.undelivered import LateRefusalError
from headrace.slot.amounts import Amounts
from headrace.slot.boundary import Boundary
from headrace.slot.commits import Commits
from headrace.slot.dead_letters import PassedOver, class_name
from headrace.slot.encoding import Encoder, located
from headrace.slot.frames import (
    Abort,
    Commit,
    DeadLetter,
    EndOfPoll,
    Failed,
    Filtered,
    Frame,
    OffsetsOnly,
    Place,
    Records,
    Refused,
)
from headrace.slot.hooks import CommitHooks
from headrace.slot.lease import Lease
from headrace.slot.offset_updates import OffsetUpdates
from headrace.slot.outliving import OpenTransaction, too_long_again
from headrace.slot.pending import PendingOffsets, raise_failed_update
from headrace.slot.raw_rows import raw_key, raw_value
from headrace.slot.sent import SentRows
from headrace.slot.tolerance import Tolerance
from headrace.slot.work import Progress

_log = logging.getLogger(__name__)

# So few rows are tried at first behind a bad one: what is refused costs no more than what is sent.
_FEW_ROWS = 16
_GROWTH = 4

_NOTHING_OPEN = (
    "The task asked to abort its transaction, and none is open: nothing was sent since the last one ended. Offsets "
    "that have moved since are committed."
)

FrameOfPoll = Records | Filtered | Refused | DeadLetter | OffsetsOnly


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlet:
    """Where frames go: how they are encoded, sent and made permanent."""

    encoder: Encoder
    sender: RecordSender
    commits: Commits
    boundary: Boundary
    tolerance: Tolerance

    def refused_by(self, error: RecordError, batch: SourceBatch) -> tuple[str, str]:
        """The stage (KIP-298) in which a row of *batch* is refused, and the class of what refuses it."""
        if isinstance(error, UnsendableError):
            return "KAFKA_PRODUCE", class_name(self.sender)
        stage, by = self.encoder.refused_by(batch)
        return stage, class_name(by)


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
        stored: OffsetReader | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._task = task
        self._outlet = outlet
        self._lease = lease
        self._clock = clock
        self._pending = PendingOffsets()
        self._updates = OffsetUpdates(task, stored)
        self._sent = SentRows()
        self._hooks = CommitHooks(task)
        self._uncommitted = False
        self._held_back = False
        self._amounts = Amounts(progress)
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
            told = self._sent.located(error)
            self._fail(told, None, "KAFKA_PRODUCE", class_name(self._outlet.sender))
            raise self._outlet.tolerance.too_late(told) from error
        except TransactionTimedOutError as error:
            too_long = too_long_again(error, self._open_transaction())
            if too_long is None:
                raise
            raise too_long from error

    def abandon(self) -> None:
        """Throw away what is not committed; its offsets do not move, so it will be read again."""
        self._outlet.commits.abort()

    def _open_transaction(self) -> OpenTransaction:
        return OpenTransaction(
            boundary=self._outlet.boundary.kind,
            records=self._amounts.in_transaction,
            held_back=self._held_back,
        )

    def commit_meanwhile(self, next_from: Place | None) -> None:
        """Commit what is written, if that is due: the next rows, *next_from* there, are long in coming.

        A transaction would time out. They are of a poll, so the task is not asked for updates: its position is
        behind them. What goes wrong is no error of theirs, so it is never a ``RecordError``.
        """
        self._updates.inside_poll = True
        try:
            self._commit_inside_poll(next_from)
        except RecordError as error:
            raise TaskFailedError(str(error)) from error
        except ConnectError:
            raise
        except Exception as error:
            told = f"A commit failed while a record was tried again: {error!r}"
            raise TaskFailedError(told) from error

    def _write(self, frame: Frame) -> None:
        match frame:
            case Records() | Filtered() | Refused() | DeadLetter() | OffsetsOnly():
                self._go_on_with_poll(frame)
                self._write_of_poll(frame)
            case EndOfPoll():
                self._updates.inside_poll = False
                self._commit_if(due=self._is_due_after_poll())
            case Commit():
                self._updates.inside_poll &= not frame.ends_poll
                self._commit()
            case Abort():
                self._updates.inside_poll &= not frame.ends_poll
                self._abort_and_move_on()
            case Failed():
                self._updates.inside_poll = True
                self._end_before(frame.at)
                self._tell_failed(frame)
                raise frame.error

    def _write_of_poll(self, frame: FrameOfPoll) -> None:
        match frame:
            case Records():
                self._send(frame)
            case Filtered():
                self._let_pass(frame)
            case Refused():
                self._pass_over(frame.error, frame.records, "TRANSFORMATION", frame.by)
            case DeadLetter():
                self._bury(frame)
            case OffsetsOnly():
                self._pending.put_all(frame.offsets)

    def _let_pass(self, frame: Filtered) -> None:
        self._pending.put(*frame.ends_at)
        self._uncommitted = True
        self._hooks.passed_over(frame.records)

    def _go_on_with_poll(self, frame: FrameOfPoll) -> None:
        """*frame* is to be written; commit what precedes it of the same poll, if that is due.

        Not directly behind each piece: behind the last one the poll is at its end. Nor where the offset of
        what precedes it says that *frame* has been read as well.
        """
        if self._updates.inside_poll:
            self._commit_inside_poll(_decisive_place(frame))
        self._updates.inside_poll = True

    def _commit_inside_poll(self, next_from: Place | None) -> None:
        due = self._outlet.boundary.due_inside_poll(self._clock())
        self._held_back = due and self._would_pass(next_from)
        self._commit_if(due=due and not self._held_back)

    def _would_pass(self, place: Place | None) -> bool:
        """Whether a commit would say of the record from *place*, which is not sent yet, that it has been read."""
        return place is not None and self._pending.end_at(*place)

    def _is_due_after_poll(self) -> bool:
        boundary = self._outlet.boundary
        overdue = self._updates.is_overdue and boundary.commits_by_itself
        return overdue or boundary.due_after_poll(self._clock())

    def _send(self, frame: Records) -> None:
        error = self._tried(frame)
        if error is None:
            return
        if self._outlet.tolerance.is_on:
            self._send_around(error, frame)
            return
        if not isinstance(error, TooLargeError):
            self._send_up_to(error, frame)
            self._end_before(frame.slice(error.row or 0, 1).begins_at)
        told = located(error, frame.batch)
        self._fail(told, frame.batch, *self._outlet.refused_by(error, frame.batch))
        raise told from error

    def _tried(self, frame: Records) -> RecordError | None:
        """Send all of *frame*; or nothing of it, and return why one of its rows is refused."""
        try:
            encoded = self._outlet.encoder.encoded(frame.batch)
        except RecordError as error:
            return error
        return self._hand_over(frame, encoded)

    def _send_up_to(self, error: RecordError, frame: Records) -> None:
        if error.row:
            # A converter that refuses a column for its type refuses what precedes the first value, too.
            self._send(frame.slice(0, error.row))

    def _send_around(self, error: RecordError | None, frame: Records) -> None:
        """Send the rows of *frame*, of which *error* refuses one, and pass over those that are refused."""
        start, piece = 0, frame
        while start < len(frame.batch):
            if error is None:
                start += len(piece.batch)
                size = len(piece.batch) * _GROWTH
            elif len(piece.batch) == 1:
                self._pass_over(error, piece, *self._outlet.refused_by(error, piece.batch))
                start, size = start + 1, _FEW_ROWS
            else:
                before = len(piece.batch) // 2 if error.row is None else error.row
                size = min(max(1, before), len(piece.batch) - 1)
            piece = frame.slice(start, size)
            error = self._tried(piece) if len(piece.batch) else None

    def _pass_over(self, error: RecordError, frame: Records, stage: str, by: str) -> None:
        """The only row of *frame* is refused for *error*, in *stage*."""
        batch, error.row = frame.batch, 0
        self._let_go(
            PassedOver(
                error=located(error, batch),
                bad=BadRecord(
                    source_partition=batch.source_partition,
                    source_offset=batch.offset_at(0),
                    topic=batch.topic,
                    raw=raw_value(batch),
                ),
                stage=stage,
                class_name=by,
                key=raw_key(batch),
            )
        )
        self._hooks.passed_over(frame)

    def _bury(self, frame: DeadLetter) -> None:
        error, original = frame.error, frame.original
        assert error.bad is not None, "reading hands over what can be passed over only"
        stage = "TASK_POLL" if original is None else "VALUE_CONVERTER"
        self._let_go(
            PassedOver(error=error, bad=error.bad, stage=stage, class_name=class_name(self._task))
        )
        if original is not None:
            self._hooks.never_batched(original)

    def _let_go(self, passed: PassedOver) -> None:
        self._lease.check()
        self._outlet.tolerance.pass_over(passed)
        self._uncommitted = True
        self._pending.put(passed.bad.source_partition, passed.bad.source_offset)

    def _hand_over(self, frame: Records, encoded: EncodedRecords) -> UnsendableError | None:
        """Hand over all rows, or none and return why; raises for a row that is refused in between."""
        if not len(encoded):
            return None
        self._lease.check()
        self._outlet.commits.before_records(encoded.topic)
        self._sent.note(frame.batch, encoded)
        try:
            if self._hooks.wants_records:
                self._hooks.sent(frame, list(self._outlet.sender.send_each(encoded)))
            else:
                self._outlet.sender.send(encoded)
                self._hooks.sent(frame, [])
        except UnsendableError as error:
            self._sent.take_back()
            return error
        except RecordError as error:
            # Rows behind the refused one may be in the queue: nothing of this transaction may stay.
            told = located(error, frame.batch)
            self._fail(told, frame.batch, "KAFKA_PRODUCE", class_name(self._outlet.sender))
            raise told from error
        self._uncommitted = True
        self._amounts.sent(frame.batch)
        self._pending.put(frame.batch.source_partition, frame.batch.offset_at(-1))
        return None

    def _tell_failed(self, frame: Failed) -> None:
        if frame.refused is not None and isinstance(frame.error, RecordError):
            self._fail(frame.error, frame.refused.records.batch, "TRANSFORMATION", frame.refused.by)
        elif isinstance(frame.error, RecordError):
            bad = frame.error.bad
            self._outlet.tolerance.failing(
                frame.error, stage="TASK_POLL", by=class_name(self._task), raw=bad and bad.raw
            )

    def _fail(self, error: ConnectError, batch: SourceBatch | None, stage: str, by: str) -> None:
        """*error* is about the row of *batch* that it names, if that is known, and will be raised."""
        row = error.row if isinstance(error, RecordError) else None
        raw = None if batch is None or row is None else raw_value(batch.slice(row, 1))
        self._outlet.tolerance.failing(error, stage=stage, by=by, raw=raw)

    def _commit_if(self, *, due: bool) -> None:
        if due:
            self._commit()

    def _end_before(self, place: Place | None) -> None:
        """End before the record from *place* that fails: with a commit, if it will then be read again."""
        if not self._would_pass(place):
            self._end()

    def _end(self) -> None:
        if self._outlet.boundary.commits_by_itself:
            self._commit()
        elif self._uncommitted:
            self.left_open = True
            self._outlet.commits.abort()

    def _commit(self) -> None:
        self._lease.check()
        began = self._clock()
        commits = self._outlet.commits
        commits.settle()
        self._ask_for_updates()
        offsets = self._pending.taken()
        if commits.commit(offsets):
            took = self._clock() - began
            self._amounts.took(took, in_transaction=commits.in_transactions)
        self._amounts.committed(moved_offsets=self._updates.committed(offsets))
        self._outlet.tolerance.committed()
        self._uncommitted = False
        self._sent.forget()
        self._outlet.boundary.committed(self._clock())
        self._hooks.committed()

    def _ask_for_updates(self) -> None:
        try:
            self._pending.put_all(self._updates.asked(self._pending.so_far()))
        except Exception as error:  # noqa: BLE001 (raised again, or told and tried again)
            if self._outlet.commits.update_must_succeed:
                raise_failed_update(error)
            _log.exception("update_offsets raised; it is asked again at the next commit")

    def _abort_and_move_on(self) -> None:
        if not self._outlet.commits.abort():
            _log.warning(_NOTHING_OPEN)
        self._sent.forget()
        self._hooks.dropped()
        self._outlet.tolerance.dropped()
        self._amounts.dropped()
        self._commit()


def _decisive_place(frame: FrameOfPoll) -> Place | None:
    """The place of *frame* whose offset must not be behind a commit that precedes it."""
    match frame:
        case OffsetsOnly():
            return None
        case Filtered():
            # Nothing of it is sent, but what comes behind it may share its last offset.
            return frame.ends_at
        case _:
            return frame.begins_at
