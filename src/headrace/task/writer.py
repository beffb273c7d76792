"""The writer of a task: sends frames to Kafka and has them committed with their offsets."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NoReturn

from headrace.connect.batch import SourceBatch
from headrace.connect.encoded import EncodedBatches
from headrace.connect.errors import (
    ConnectError,
    PartitionError,
    RecordError,
    TaskFailedError,
    TransactionTimedOutError,
)
from headrace.connect.record import BadRecord
from headrace.connect.task import SourceTask
from headrace.kafka.batches.errors import DamagedBatchError, UnforwardableError
from headrace.kafka.errors import LateRefusalError
from headrace.kafka.refused_records import without_tolerance
from headrace.kafka.sender import EncodedRecords, TooLargeError, UnsendableError
from headrace.task.channel import Lease
from headrace.task.dead_letters import SkippedRecord, class_name, raw_key, raw_value
from headrace.task.error_handling import stage_of
from headrace.task.frames import (
    Abort,
    Commit,
    DeadLetter,
    Encoded,
    EndOfPoll,
    Failed,
    Filtered,
    Frame,
    Place,
    Records,
    Refused,
    Waiting,
)
from headrace.task.offset_commit import OffsetCommitter
from headrace.task.record_origin import located
from headrace.task.transaction_timeout import too_long_again
from headrace.task.write_pipeline import WritePipeline

# After a bad row only so few are tried at first: a refused piece then costs no more than a sent one.
_FEW_ROWS = 16
_GROWTH = 4

FrameOfPoll = Records | Filtered | Refused | DeadLetter


class TaskWriter:
    """Sends frames in order, skips bad records if errors are tolerated, and has the rest committed at boundaries.

    *committer* commits what goes through *pipeline* and calls the hooks of *task*. When another process reads, *task*
    is an instance that is never polled.
    """

    def __init__(
        self,
        task: SourceTask,
        pipeline: WritePipeline,
        lease: Lease,
        committer: OffsetCommitter,
    ) -> None:
        self._task = task
        self._pipeline = pipeline
        self._lease = lease
        self._committer = committer

    @property
    def left_open(self) -> bool:
        """Whether records were aborted at the end, because the connector had not ended their transaction."""
        return self._committer.left_open

    def write(self, frames: Iterable[Frame]) -> None:
        """Write all of *frames* and commit when the boundary allows.

        Raises what reading raised, after committing the frames before it; after a failure of its own the
        transaction is left to :meth:`abandon`.
        """
        try:
            for frame in frames:
                self._write(frame)
            self._committer.end()
        except LateRefusalError as error:
            failure = self._committer.rows.located(error)
            self._fail(failure, None, "KAFKA_PRODUCE", class_name(self._pipeline.sender))
            raise self._pipeline.tolerance.too_late(failure) from error
        except UnforwardableError as error:
            self._fail(error, None, stage_of(error), class_name(self._pipeline.sender))
            raise
        except TransactionTimedOutError as error:
            too_long = too_long_again(error, self._committer.open_transaction())
            if too_long is None:
                raise
            raise too_long from error

    def abandon(self) -> None:
        """Abort what is not committed; its offsets do not move, so it will be read again."""
        self._pipeline.commits.abort()

    def commit_meanwhile(self, next_from: Place | None) -> None:
        """Commit what is written, if that is due, while the next rows, from *next_from* on, are delayed.

        The transaction would time out otherwise. A failure is no error of those rows, so it is never raised as a
        ``RecordError``.
        """
        try:
            self._committer.meanwhile(next_from)
        except RecordError as error:
            raise TaskFailedError(str(error)) from error
        except ConnectError:
            raise
        except Exception as error:
            raise TaskFailedError(
                f"A commit failed while a record was being retried: {error!r}"
            ) from error

    def _write(self, frame: Frame) -> None:
        match frame:
            case Records() | Filtered() | Refused() | DeadLetter():
                self._committer.before_more_of_poll(_decisive_place(frame))
                self._write_of_poll(frame)
            case Encoded():
                # What was sent before it never has its offset: a source offset is in one piece only.
                self._committer.before_more_of_poll(None)
                self._forward(frame)
            case EndOfPoll():
                self._committer.poll_ended(is_empty=not frame.records)
            case Commit():
                self._committer.asked_to_commit(ends_poll=frame.ends_poll)
            case Abort():
                self._committer.asked_to_abort(ends_poll=frame.ends_poll)
            case Waiting():
                self._committer.meanwhile(frame.next_from)
            case Failed():
                if not frame.abandons:
                    self._committer.end_inside_poll_before(frame.at)
                self._note_failure(frame)
                raise frame.error

    def _write_of_poll(self, frame: FrameOfPoll) -> None:
        match frame:
            case Records():
                self._send(frame)
            case Filtered():
                self._skip_filtered(frame)
            case Refused():
                self._skip_row(frame.error, frame.records, "TRANSFORMATION", frame.by)
            case DeadLetter():
                self._write_dead_letter(frame)

    def _skip_filtered(self, frame: Filtered) -> None:
        self._committer.moved(*frame.ends_at)
        self._committer.hooks.skipped(frame.records)

    def _send(self, frame: Records) -> None:
        error = self._try_to_send(frame)
        if error is None:
            return
        if self._pipeline.tolerance.is_on:
            self._send_around(error, frame)
            return
        if not isinstance(error, TooLargeError):
            self._send_up_to(error, frame)
            self._committer.end_before(frame.slice(error.row or 0, 1).begins_at)
        failure = located(error, frame.batch)
        self._fail(failure, frame.batch, *self._pipeline.refused_by(error, frame.batch))
        raise failure from error

    def _forward(self, frame: Encoded) -> None:
        batches = frame.batches
        self._lease.check()
        frame.sent = 0
        if len(batches):
            self._pipeline.commits.before_records(batches.topic)
            try:
                frame.sent = self._pipeline.forward(batches)
            except DamagedBatchError as error:
                frame.sent = error.records
                self._fail_before(error, batches)
        self._committer.forwarded(batches, frame.sent)

    def _fail_before(self, damaged: DamagedBatchError, batches: EncodedBatches) -> NoReturn:
        """Commit what comes before the *damaged* one of *batches*, whose source partition cannot be read on."""
        if damaged.before is not None:
            self._committer.forwarded(damaged.before, damaged.records)
        self._committer.end_inside_poll_before(None)
        failure = PartitionError(
            batches.source_partition,
            without_tolerance(damaged, damaged.last),
            source_offset=batches.offset_at(damaged.last + 1),
        )
        self._fail(failure, None, stage_of(damaged), class_name(self._pipeline.sender))
        raise failure from damaged

    def _try_to_send(self, frame: Records) -> RecordError | None:
        """Send all of *frame*; or none of it, and return the error of the row that is refused."""
        try:
            encoded = self._pipeline.encoder.encoded(frame.batch)
        except RecordError as error:
            return error
        return self._hand_over(frame, encoded)

    def _send_up_to(self, error: RecordError, frame: Records) -> None:
        if error.row:
            # A converter that refuses a column for its type also refuses the rows before the first value.
            self._send(frame.slice(0, error.row))

    def _send_around(self, error: RecordError | None, frame: Records) -> None:
        """Send the rows of *frame*, one of which was refused with *error*, and skip those that are refused."""
        start, piece = 0, frame
        while start < len(frame.batch):
            if error is None:
                start += len(piece.batch)
                size = len(piece.batch) * _GROWTH
            elif len(piece.batch) == 1:
                self._skip_row(error, piece, *self._pipeline.refused_by(error, piece.batch))
                start, size = start + 1, _FEW_ROWS
            else:
                before = len(piece.batch) // 2 if error.row is None else error.row
                size = min(max(1, before), len(piece.batch) - 1)
            piece = frame.slice(start, size)
            error = self._try_to_send(piece) if len(piece.batch) else None

    def _skip_row(self, error: RecordError, frame: Records, stage: str, by: str) -> None:
        """Skip the only row of *frame*, which *by* refused with *error* in *stage*."""
        batch, error.row = frame.batch, 0
        self._skip(
            SkippedRecord(
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
        self._committer.hooks.skipped(frame)

    def _write_dead_letter(self, frame: DeadLetter) -> None:
        error, original = frame.error, frame.original
        assert error.bad is not None, (
            "the poll loop makes dead letters only of records that can be skipped"
        )
        stage = "TASK_POLL" if original is None else "VALUE_CONVERTER"
        self._skip(
            SkippedRecord(
                error=error, bad=error.bad, stage=stage, class_name=class_name(self._task)
            )
        )
        if original is not None:
            self._committer.hooks.never_batched(original)

    def _skip(self, record: SkippedRecord) -> None:
        self._lease.check()
        self._pipeline.tolerance.skip(record)
        self._committer.moved(record.bad.source_partition, record.bad.source_offset)

    def _hand_over(self, frame: Records, encoded: EncodedRecords) -> UnsendableError | None:
        """Hand over all rows, or none and return the error; raises if a row in the middle is refused."""
        if not len(encoded):
            return None
        self._lease.check()
        self._pipeline.commits.before_records(encoded.topic)
        rows, hooks = self._committer.rows, self._committer.hooks
        encoded = rows.note(frame.batch, encoded)
        try:
            if hooks.wants_records:
                hooks.sent(frame, list(self._pipeline.sender.send_each(encoded)))
            else:
                self._pipeline.sender.send(encoded)
                hooks.sent(frame, [])
        except UnsendableError as error:
            rows.take_back()
            return error
        except RecordError as error:
            # Rows after the refused one may be in the queue: the whole transaction has to be aborted.
            failure = located(error, frame.batch)
            self._fail(failure, frame.batch, "KAFKA_PRODUCE", class_name(self._pipeline.sender))
            raise failure from error
        self._committer.sent(frame.batch, encoded)
        return None

    def _note_failure(self, frame: Failed) -> None:
        if frame.refused is not None and isinstance(frame.error, RecordError):
            self._fail(frame.error, frame.refused.records.batch, "TRANSFORMATION", frame.refused.by)
        elif isinstance(frame.error, RecordError):
            bad = frame.error.bad
            self._pipeline.tolerance.failing(
                frame.error, stage="TASK_POLL", by=class_name(self._task), raw=bad and bad.raw
            )
        elif isinstance(frame.error, PartitionError):
            self._fail(frame.error, None, "TASK_POLL", class_name(self._task))

    def _fail(self, error: ConnectError, batch: SourceBatch | None, stage: str, by: str) -> None:
        """Count and log *error*, which is about to be raised, with the row of *batch* that it names, if known."""
        row = error.row if isinstance(error, RecordError) else None
        raw = None if batch is None or row is None else raw_value(batch.slice(row, 1))
        self._pipeline.tolerance.failing(error, stage=stage, by=by, raw=raw)


def _decisive_place(frame: FrameOfPoll) -> Place | None:
    """The source position that a commit before *frame* must not cover."""
    # Dropped rows are not sent, but the rows after them may share their last offset.
    return frame.ends_at if isinstance(frame, Filtered) else frame.begins_at
