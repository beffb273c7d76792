"""The writing half of the task loop: frames become records in Kafka, with their offsets."""

from __future__ import annotations

from collections.abc import Iterable

from headrace.connect.batch import SourceBatch
from headrace.connect.errors import (
    ConnectError,
    RecordError,
    TaskFailedError,
    TransactionTimedOutError,
)
from headrace.connect.record import BadRecord
from headrace.connect.task import SourceTask
from headrace.kafka.sender import EncodedRecords, LateRefusalError, TooLargeError, UnsendableError
from headrace.task.dead_letters import PassedOver, class_name, raw_key, raw_value
from headrace.task.frames import (
    Abort,
    Commit,
    DeadLetter,
    EndOfPoll,
    Failed,
    Filtered,
    Frame,
    Place,
    Records,
    Refused,
    Waiting,
)
from headrace.task.heartbeat import Lease
from headrace.task.offset_commit import OffsetCommitter
from headrace.task.record_origin import located
from headrace.task.transactions import too_long_again
from headrace.task.write_pipeline import WritePipeline

# So few rows are tried at first behind a bad one: what is refused costs no more than what is sent.
_FEW_ROWS = 16
_GROWTH = 4

FrameOfPoll = Records | Filtered | Refused | DeadLetter


class TaskWriter:
    """Sends frames in order, passes over what may be, and has it committed at boundaries.

    *committing* commits what goes to *outlet*. *task* hears of commits; in split form that is an instance of its
    own, which is never polled.
    """

    def __init__(
        self,
        task: SourceTask,
        outlet: WritePipeline,
        lease: Lease,
        committing: OffsetCommitter,
    ) -> None:
        self._task = task
        self._outlet = outlet
        self._lease = lease
        self._committing = committing

    @property
    def left_open(self) -> bool:
        """Whether records were thrown away at the end, because the connector had not ended their transaction."""
        return self._committing.left_open

    def write(self, frames: Iterable[Frame]) -> None:
        """Write all of *frames* and commit what the boundary allows.

        Raises what reading raised, after what precedes it was committed; a failure of its own leaves the
        transaction to :meth:`abandon`.
        """
        try:
            for frame in frames:
                self._write(frame)
            self._committing.end()
        except LateRefusalError as error:
            told = self._committing.rows.located(error)
            self._fail(told, None, "KAFKA_PRODUCE", class_name(self._outlet.sender))
            raise self._outlet.tolerance.too_late(told) from error
        except TransactionTimedOutError as error:
            too_long = too_long_again(error, self._committing.open_transaction())
            if too_long is None:
                raise
            raise too_long from error

    def abandon(self) -> None:
        """Throw away what is not committed; its offsets do not move, so it will be read again."""
        self._outlet.commits.abort()

    def commit_meanwhile(self, next_from: Place | None) -> None:
        """Commit what is written, if that is due: the next rows, *next_from* there, are long in coming.

        A transaction would time out. What goes wrong is no error of theirs, so it is never a ``RecordError``.
        """
        try:
            self._committing.meanwhile(next_from)
        except RecordError as error:
            raise TaskFailedError(str(error)) from error
        except ConnectError:
            raise
        except Exception as error:
            told = f"A commit failed while a record was tried again: {error!r}"
            raise TaskFailedError(told) from error

    def _write(self, frame: Frame) -> None:
        match frame:
            case Records() | Filtered() | Refused() | DeadLetter():
                self._committing.before_more_of_poll(_decisive_place(frame))
                self._write_of_poll(frame)
            case EndOfPoll():
                self._committing.poll_ended()
            case Commit():
                self._committing.asked_to_commit(ends_poll=frame.ends_poll)
            case Abort():
                self._committing.asked_to_abort(ends_poll=frame.ends_poll)
            case Waiting():
                self._committing.meanwhile(frame.next_from)
            case Failed():
                if not frame.abandons:
                    self._committing.end_inside_poll_before(frame.at)
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

    def _let_pass(self, frame: Filtered) -> None:
        self._committing.moved(*frame.ends_at)
        self._committing.hooks.passed_over(frame.records)

    def _send(self, frame: Records) -> None:
        error = self._tried(frame)
        if error is None:
            return
        if self._outlet.tolerance.is_on:
            self._send_around(error, frame)
            return
        if not isinstance(error, TooLargeError):
            self._send_up_to(error, frame)
            self._committing.end_before(frame.slice(error.row or 0, 1).begins_at)
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
        self._committing.hooks.passed_over(frame)

    def _bury(self, frame: DeadLetter) -> None:
        error, original = frame.error, frame.original
        assert error.bad is not None, "reading hands over what can be passed over only"
        stage = "TASK_POLL" if original is None else "VALUE_CONVERTER"
        self._let_go(
            PassedOver(error=error, bad=error.bad, stage=stage, class_name=class_name(self._task))
        )
        if original is not None:
            self._committing.hooks.never_batched(original)

    def _let_go(self, passed: PassedOver) -> None:
        self._lease.check()
        self._outlet.tolerance.pass_over(passed)
        self._committing.moved(passed.bad.source_partition, passed.bad.source_offset)

    def _hand_over(self, frame: Records, encoded: EncodedRecords) -> UnsendableError | None:
        """Hand over all rows, or none and return why; raises for a row that is refused in between."""
        if not len(encoded):
            return None
        self._lease.check()
        self._outlet.commits.before_records(encoded.topic)
        rows, hooks = self._committing.rows, self._committing.hooks
        rows.note(frame.batch, encoded)
        try:
            if hooks.wants_records:
                hooks.sent(frame, list(self._outlet.sender.send_each(encoded)))
            else:
                self._outlet.sender.send(encoded)
                hooks.sent(frame, [])
        except UnsendableError as error:
            rows.take_back()
            return error
        except RecordError as error:
            # Rows behind the refused one may be in the queue: nothing of this transaction may stay.
            told = located(error, frame.batch)
            self._fail(told, frame.batch, "KAFKA_PRODUCE", class_name(self._outlet.sender))
            raise told from error
        self._committing.sent(frame.batch)
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


def _decisive_place(frame: FrameOfPoll) -> Place | None:
    """The place of *frame* whose offset must not be behind a commit that precedes it."""
    # Nothing of what was dropped is sent, but what comes behind it may share its last offset.
    return frame.ends_at if isinstance(frame, Filtered) else frame.begins_at
