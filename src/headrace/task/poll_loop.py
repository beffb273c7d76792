"""The poll loop: polls a task, and turns what each poll returned into frames: split where a transaction may end, and throttled."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import cast

from headrace.connect.batch import SourceBatch
from headrace.connect.encoded import EncodedBatches
from headrace.connect.errors import RecordError, RetriableError, TaskFailedError
from headrace.connect.record import BadRecord, SourceRecord
from headrace.connect.task import Polled, SourceTask
from headrace.task.batching import batches_of
from headrace.task.channel import Lease
from headrace.task.error_handling import untolerated
from headrace.task.frames import (
    Abort,
    Commit,
    DeadLetter,
    Encoded,
    EndOfPoll,
    Failed,
    Frame,
    Place,
    Records,
)
from headrace.task.slot_report import Outcome, Progress
from headrace.task.slot_work import EndReason, SlotWork
from headrace.task.transaction_boundary import BoundaryRequests, ConnectorBoundary

_log = logging.getLogger(__name__)

# So many consecutive bad records without an offset may look the same.
_MOST_ALIKE = 100
# After an empty poll that did not wait by itself: long enough to leave the core to others, short
# enough not to be noticed.
_EMPTY_POLL_SECONDS = 0.05
_RETRY_SECONDS = 1.0

# A quarter of the client's queue: at 1 MB/s, which is slow, a piece takes eight seconds of the sixty that a
# transaction may be open.
MOST_BYTES = 8 * 1024 * 1024
# At 50 µs a row, which transformations in plain Python take, a piece takes three seconds.
MOST_ROWS = 65_536

_PIECES_PER_SECOND = 10
# After a bad record only so few are tried at first, because a batch with another bad one has to be processed again.
_FEW_RECORDS = 16
_GROWTH = 4

_KINDS = (SourceBatch, EncodedBatches, SourceRecord)
_RETURN = "return a SourceBatch, a list of those or of SourceRecord, or None."
_NO_RECORDS = (
    "poll returned batches, but the task asked to end a transaction at a record: return plain records, or ask to end "
    "it after everything that poll returns."
)
_NOT_ENCODED = (
    "poll returned record batches that are not decoded, but the connector's transformations or its converters have to see "
    "the records, or its offsets are not in a group on the target: the task must look at context.takes_encoded, and "
    "return a SourceBatch when that is false."
)


def pieces(
    batch: SourceBatch, *, most_rows: int = MOST_ROWS, most_bytes: int = MOST_BYTES
) -> Iterator[SourceBatch]:
    """*batch* in pieces of similar size, at most *most_rows* rows each, and *most_bytes* bytes by the average row.

    A transaction may end between two pieces. Nothing is copied.
    """
    per_row = batch.nbytes / max(1, len(batch))
    fitting = min(most_rows, max(1, int(most_bytes / max(1.0, per_row))))
    if len(batch) <= fitting:
        yield batch
        return
    count = -(-len(batch) // fitting)
    step = -(-len(batch) // count)
    for start in range(0, len(batch), step):
        yield batch.slice(start, min(step, len(batch) - start))


class Throttle:
    """Limits the rate to *records_per_second*; ``None`` passes every batch on unchanged."""

    def __init__(
        self, records_per_second: int | None, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._rate = records_per_second
        self._clock = clock
        self._free_at = clock()

    def paced(self, batch: SourceBatch, wait: Callable[[float], None]) -> Iterator[SourceBatch]:
        """The pieces of *batch*, each as soon as the rate allows; *wait* may return early."""
        if self._rate is None:
            yield batch
            return
        step = max(1, self._rate // _PIECES_PER_SECOND)
        for start in range(0, len(batch), step):
            piece = batch.slice(start, min(step, len(batch) - start))
            wait(max(0.0, self._free_at - self._clock()))
            self._free_at = max(self._free_at, self._clock()) + len(piece) / self._rate
            yield piece

    def paced_encoded(
        self, batches: EncodedBatches, wait: Callable[[float], None]
    ) -> Iterator[Encoded]:
        """As :meth:`paced`, with whole record batches: what was sent of a piece is paid for before the next one."""
        if self._rate is None:
            yield Encoded(batches)
            return
        step = max(1, self._rate // _PIECES_PER_SECOND)
        for piece in batches.pieces(most_bytes=MOST_BYTES, most_records=step):
            wait(max(0.0, self._free_at - self._clock()))
            began, frame = max(self._free_at, self._clock()), Encoded(piece)
            yield frame
            self._free_at = began + frame.records / self._rate


class PolledFrames:
    """Makes frames of polls, at the rate of *throttle*; *wait* may return early.

    *requests* is given when the connector defines the transaction boundaries. With *tolerates* a record that does
    not fit its schema is skipped. Encoded batches are refused unless *takes_encoded*.
    """

    def __init__(
        self,
        throttle: Throttle,
        wait: Callable[[float], None],
        requests: BoundaryRequests | None,
        *,
        tolerates: bool,
        takes_encoded: bool,
    ) -> None:
        self._throttle = throttle
        self._wait = wait
        self._requests = requests
        self._tolerates = tolerates
        self._takes_encoded = takes_encoded

    def of(self, polled: Polled | RecordError) -> Iterator[Frame]:
        """The frames of *polled*; an error stands for a record that could not be read.

        Raises ``TypeError`` and :class:`~headrace.connect.errors.TaskFailedError` for invalid return values.
        """
        if polled is None:
            return
        if isinstance(polled, RecordError):
            yield DeadLetter(polled)
            return
        is_one = isinstance(polled, SourceBatch | EncodedBatches)
        found = _by_kind([polled] if is_one else polled)
        is_batches = bool(found.batches or found.encoded)
        if is_batches and self._requests is not None and self._requests.cuts_at_records():
            raise TaskFailedError(_NO_RECORDS)
        if found.encoded and not self._takes_encoded:
            raise TaskFailedError(_NOT_ENCODED)
        for batch in found.batches:
            yield from self._paced(batch)
        for encoded in found.encoded:
            for piece in encoded.pieces(most_bytes=MOST_BYTES):
                yield from self._throttle.paced_encoded(piece, self._wait)
        yield from self._plain(found.plain)

    def _paced(
        self, batch: SourceBatch, originals: Sequence[SourceRecord] | None = None
    ) -> Iterator[Frame]:
        start = 0
        for piece in pieces(batch):
            for paced in self._throttle.paced(piece, self._wait):
                end = start + len(paced)
                yield Records(paced, None if originals is None else originals[start:end])
                start = end

    def _plain(self, records: Sequence[SourceRecord]) -> Iterator[Frame]:
        requests = self._requests
        if requests is None or not requests.cuts_at_records():
            yield from self._batched(records)
            return
        start = 0
        for end, record in enumerate(records, 1):
            ends = list(_ends_after(record, requests, ends_poll=end == len(records)))
            if ends:
                yield from self._batched(records[start:end])
                yield from ends
                start = end
        yield from self._batched(records[start:])

    def _batched(self, records: Sequence[SourceRecord]) -> Iterator[Frame]:
        """*records* in batches; those that do not fit their schemas become dead letters if errors are tolerated."""
        start, size = 0, len(records)
        while start < len(records):
            piece = records[start : start + size]
            try:
                for batch, originals in batches_of(piece):
                    yield from self._paced(batch, originals)
            except RecordError as error:
                if not self._tolerates or error.row is None or error.bad is None:
                    raise
                yield DeadLetter(error, piece[error.row])
                start, size = start + error.row + 1, _FEW_RECORDS
            else:
                start, size = start + len(piece), size * _GROWTH


@dataclass(slots=True)
class _ByKind:
    """What a poll returned; all but one of the lists are empty."""

    batches: list[SourceBatch] = field(default_factory=list[SourceBatch])
    encoded: list[EncodedBatches] = field(default_factory=list[EncodedBatches])
    plain: list[SourceRecord] = field(default_factory=list[SourceRecord])


def _by_kind(polled: object) -> _ByKind:
    """What an author's task *polled*, by its kind; raises ``TypeError`` for several kinds, or others."""
    # A generator would be empty when iterated a second time.
    if not isinstance(polled, Sequence):
        raise TypeError(f"poll returned {type(polled).__name__!r}: {_RETURN}")
    items = cast("Sequence[object]", polled)
    found = _ByKind(
        [each for each in items if isinstance(each, SourceBatch)],
        [each for each in items if isinstance(each, EncodedBatches)],
        [each for each in items if isinstance(each, SourceRecord)],
    )
    counts = [len(found.batches), len(found.encoded), len(found.plain)]
    if found.batches and found.plain:
        raise TypeError("poll returned batches and plain records in one list: return one kind.")
    if found.encoded and max(counts) < sum(counts):
        raise TypeError("poll returned encoded batches and others in one list: return one kind.")
    if sum(counts) < len(items):
        others = {type(each).__name__ for each in items if not isinstance(each, _KINDS)}
        held = ", ".join(map(repr, sorted(others)))
        raise TypeError(f"poll returned {type(polled).__name__!r} with {held} in it: {_RETURN}")
    return found


def _ends_after(
    record: SourceRecord, requests: BoundaryRequests, *, ends_poll: bool
) -> Iterator[Frame]:
    if requests.aborts_after(record):
        yield Abort(ends_poll=ends_poll)
    if requests.commits_after(record):
        yield Commit(ends_poll=ends_poll)


class StuckPoll:
    """Detects a task that does not advance after a bad record, which would be skipped forever."""

    def __init__(self) -> None:
        self._passed: tuple[str, BadRecord] | None = None
        self._alike = 0

    def check(self, error: RecordError, bad: BadRecord) -> None:
        """Called when ``poll`` raises *error*, which is about *bad*.

        Raises :class:`~headrace.connect.errors.TaskFailedError` when the same record was skipped just before.
        """
        seen = (str(error), bad)
        self._alike = self._alike + 1 if seen == self._passed else 0
        # Without an offset that identifies it, this may be a similar record.
        if self._alike > (_MOST_ALIKE if bad.source_offset is None else 0):
            raise TaskFailedError(
                f"{error} The record was skipped, but poll raised the same error again: after a RecordError, the "
                "next call of poll must continue after the record."
            )
        self._passed = seen

    def advanced(self) -> None:
        """Called when ``poll`` has returned records."""
        self._passed = None
        self._alike = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class PollSettings:
    """When reading ends. *linger_seconds* is how long polls may return nothing; ``None`` means forever.

    With *once* a polled task then ends even if resuming later would be costly, because there is no later. A share that
    is *followed* ends when it is asked to, wherever that is.
    *requests* is given when the connector defines the transaction boundaries. Reading then continues to the next
    boundary for at most *grace_seconds* after it was asked to end; if others wait for its slot, until the
    transaction has been open for *transaction_seconds*. With *tolerates* a record that cannot be read is skipped,
    with *takes_encoded* the task may return encoded batches.
    """

    planned: bool
    linger_seconds: float | None
    grace_seconds: float
    transaction_seconds: float
    once: bool = False
    requests: BoundaryRequests | None = None
    tolerates: bool = False
    takes_encoded: bool = False
    followed: bool = False


class PollLoop:
    """Polls one task until its share is finished, it stays idle, or it should end."""

    def __init__(
        self,
        task: SourceTask,
        lease: Lease,
        settings: PollSettings,
        progress: Progress,
        *,
        throttle: Throttle,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._task = task
        self._lease = lease
        self._settings = settings
        self._progress = progress
        self._frames_of_polls = PolledFrames(
            throttle,
            lease.wait,
            settings.requests,
            tolerates=settings.tolerates,
            takes_encoded=settings.takes_encoded,
        )
        self._clock = clock
        self._empty_since: float | None = None
        self._boundary = ConnectorBoundary(
            lease,
            grace_seconds=settings.grace_seconds,
            transaction_seconds=settings.transaction_seconds,
            clock=clock,
        )
        self._failing = False
        self._stuck = StuckPoll()
        self._poll_began_at = 0.0
        self._poll_seconds = 0.0
        self.outcome = Outcome.ASKED

    def frames(self) -> Iterator[Frame]:
        """Everything the task returns, in order; a final :class:`Failed` when it raised.

        When this ends, ``outcome`` says why.
        """
        try:
            while not self._should_end():
                polled = self._polled()
                if polled is None and self._settings.planned:
                    yield from self._batch_requests()
                    self.outcome = Outcome.FINISHED
                    return
                yield from self._frames_of(polled)
        except Exception as error:  # noqa: BLE001 - whatever the task raised is handled by the writer
            yield Failed(
                untolerated(error) if self._settings.tolerates else error, _place_of(error)
            )

    def _should_end(self) -> bool:
        if self._lease.should_end():
            if self._waits_for_boundary() or self._waits_for_cheap_end():
                return False
            self._note_idle_end()
            return True
        linger, idle = self._settings.linger_seconds, self._idle_seconds()
        if linger is None or idle is None or idle < linger or not self._may_leave():
            return False
        self.outcome = Outcome.IDLE
        return True

    def _note_idle_end(self) -> None:
        # Something may have come since the driver decided that all slots are idle.
        if self._lease.asked_to_end == EndReason.IDLE and self._empty_since is not None:
            self.outcome = Outcome.IDLE

    def _idle_seconds(self) -> float | None:
        """For how long there has been nothing to read; ``None`` if there was something, or what there was has to end first."""
        if self._empty_since is None or not self._at_boundary_if_it_matters():
            return None
        return self._clock() - self._empty_since

    def _may_leave(self) -> bool:
        return self._settings.once or self._task.resumes_cheaply()

    def _at_boundary_if_it_matters(self) -> bool:
        # A run that ends with its work has no later time at which the connector might end its transaction.
        return self._settings.requests is None or not self._boundary.is_open or self._settings.once

    def _waits_for_boundary(self) -> bool:
        return self._settings.requests is not None and self._boundary.keeps_reading()

    def _waits_for_cheap_end(self) -> bool:
        # It is unknown when a polled task gets there, and others wait for its slot.
        has_end = self._settings.planned and not self._settings.followed
        if not has_end or self._lease.asked_to_end != EndReason.BUDGET:
            return False
        if self._task.resumes_cheaply():
            return False
        self._lease.check()
        return True

    def _polled(self) -> Polled | RecordError:
        self._poll_began_at = self._clock()
        try:
            return self._polled_once()
        finally:
            self._poll_seconds = self._clock() - self._poll_began_at

    def _polled_once(self) -> Polled | RecordError:
        try:
            polled = self._task.poll()
        except RecordError as error:
            if not self._passes_over(error):
                raise
            polled = error
        except RetriableError as error:
            # The worker logs that this goes on, for all tasks of a connector together.
            level = logging.DEBUG if self._failing else logging.WARNING
            _log.log(level, "poll will be called again: %s", error)
            delay = error.delay_seconds or _RETRY_SECONDS
            # A short interruption is not reported.
            if self._failing or delay > _RETRY_SECONDS:
                self._progress.source_away = str(error) or type(error).__name__
            self._failing = True
            self._progress.idle_seconds = None
            self._boundary.wait(delay)
            return ()
        self._failing = False
        self._progress.source_away = None
        return polled

    def _passes_over(self, error: RecordError) -> bool:
        """Whether *error* is about one record that may be skipped; raises when it was skipped just before."""
        if not self._settings.tolerates or error.bad is None:
            return False
        self._stuck.check(error, error.bad)
        return True

    def _frames_of(self, polled: Polled | RecordError) -> Iterator[Frame]:
        count, has_moved = 0, False
        for frame in self._frames_of_polls.of(polled):
            # Sending it may take long, and the source was not idle meanwhile.
            self._progress.idle_seconds = None
            # These may hold only an offset, behind what the source leaves out.
            has_moved |= isinstance(frame, Encoded)
            if isinstance(frame, Records | Encoded):
                self._stuck.advanced()
            self._boundary.read(frame)
            if not isinstance(frame, Encoded):
                count += self._counted(frame)
            yield frame
            if isinstance(frame, Encoded):
                # Only who has sent them knows for certain how many records there were.
                count += self._counted(frame)
        self._count_poll(count)
        yield EndOfPoll(count)
        yield from self._batch_requests()
        # A source that cannot be read is not an empty one.
        if count or has_moved or self._failing:
            self._empty_since = None
        else:
            if self._empty_since is None and self._task.is_idle():
                self._empty_since = self._poll_began_at
            self._boundary.wait(_EMPTY_POLL_SECONDS)
        self._progress.idle_seconds = self._idle_seconds()

    def _batch_requests(self) -> Iterator[Frame]:
        requests = self._settings.requests
        if requests is None:
            return
        if requests.take_batch_abort():
            self._boundary.ended()
            yield Abort()
        if requests.take_batch_commit():
            self._boundary.ended()
            yield Commit()

    def _counted(self, frame: Frame) -> int:
        records = _records_in(frame)
        self._progress.polled_records += records
        return records

    def _count_poll(self, records: int) -> None:
        if records:
            self._progress.polls.add(self._poll_seconds)
            self._progress.batches.add(records)


def _records_in(frame: Frame) -> int:
    if isinstance(frame, Records):
        return len(frame.batch)
    if isinstance(frame, Encoded):
        return frame.records
    return int(isinstance(frame, DeadLetter))


def _place_of(error: Exception) -> Place | None:
    bad = error.bad if isinstance(error, RecordError) else None
    return None if bad is None else (bad.source_partition, bad.source_offset)


def make_poll_loop(
    task: SourceTask,
    work: SlotWork,
    lease: Lease,
    progress: Progress,
    *,
    requests: BoundaryRequests | None,
) -> PollLoop:
    """The loop that polls *task* for *work*; *requests* as in :class:`PollSettings`."""
    settings = PollSettings(
        planned=work.planned,
        linger_seconds=work.linger_seconds,
        once=work.once,
        grace_seconds=work.grace_seconds,
        transaction_seconds=work.transaction_seconds,
        requests=requests,
        tolerates=work.spec.errors.tolerate,
        takes_encoded=work.spec.takes_encoded,
        followed=work.followed,
    )
    return PollLoop(
        task, lease, settings, progress, throttle=Throttle(work.spec.records_per_second)
    )
