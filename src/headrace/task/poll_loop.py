"""The poll loop: polls a task and turns what it returns into frames."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from headrace.connect.errors import RecordError, RetriableError, TaskFailedError
from headrace.connect.record import BadRecord
from headrace.connect.task import Polled, SourceTask
from headrace.task.error_handling import untolerated
from headrace.task.frames import Abort, Commit, DeadLetter, EndOfPoll, Failed, Frame, Place, Records
from headrace.task.lease import Lease
from headrace.task.polled_frames import PolledFrames, Throttle
from headrace.task.slot_report import Outcome, Progress
from headrace.task.slot_work import EndReason, SlotWork
from headrace.task.transaction_boundary import BoundaryRequests
from headrace.task.transactions import never_ended

_log = logging.getLogger(__name__)

# So many consecutive bad records without an offset may look the same.
_MOST_ALIKE = 100
# After an empty poll that did not wait by itself: long enough to leave the core to others, short
# enough not to be noticed.
_EMPTY_POLL_SECONDS = 0.05
_RETRY_SECONDS = 1.0


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
        if not isinstance(frame, Records | DeadLetter):
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


@dataclass(frozen=True, slots=True, kw_only=True)
class PollSettings:
    """When reading ends. *linger_seconds* is how long polls may return nothing; ``None`` means forever.

    With *once* a polled task then ends even if resuming later would be costly, because there is no later.
    *requests* is given when the connector defines the transaction boundaries. Reading then continues to the next
    boundary for at most *grace_seconds* after it was asked to end; if others wait for its slot, until the
    transaction has been open for *transaction_seconds*. With *tolerates* a record that cannot be read is skipped.
    """

    planned: bool
    linger_seconds: float | None
    grace_seconds: float
    transaction_seconds: float = 60.0
    once: bool = False
    requests: BoundaryRequests | None = None
    tolerates: bool = False


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
            throttle, lease.wait, settings.requests, tolerates=settings.tolerates
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
            return not (self._waits_for_boundary() or self._waits_for_cheap_end())
        linger = self._settings.linger_seconds
        if linger is None or self._empty_since is None or not self._at_boundary_if_it_matters():
            return False
        if self._clock() - self._empty_since < linger or not self._may_leave():
            return False
        self.outcome = Outcome.IDLE
        return True

    def _may_leave(self) -> bool:
        return self._settings.once or self._task.resumes_cheaply()

    def _at_boundary_if_it_matters(self) -> bool:
        # A run that ends with its work has no later time at which the connector might end its transaction.
        return self._settings.requests is None or not self._boundary.is_open or self._settings.once

    def _waits_for_boundary(self) -> bool:
        return self._settings.requests is not None and self._boundary.keeps_reading()

    def _waits_for_cheap_end(self) -> bool:
        # It is unknown when a polled task gets there, and others wait for its slot.
        if not self._settings.planned or self._lease.asked_to_end != EndReason.BUDGET:
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
            _log.warning("poll will be called again: %s", error)
            delay = error.delay_seconds or _RETRY_SECONDS
            # A short interruption is not reported.
            if self._failing or delay > _RETRY_SECONDS:
                self._progress.source_away = str(error) or type(error).__name__
            self._failing = True
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
        count = 0
        for frame in self._frames_of_polls.of(polled):
            if isinstance(frame, Records):
                self._stuck.advanced()
            records = _records_in(frame)
            count += records
            self._progress.polled_records += records
            self._boundary.read(frame)
            yield frame
        self._count_poll(count)
        yield EndOfPoll(count)
        yield from self._batch_requests()
        # A source that cannot be read is not an empty one.
        if count or self._failing:
            self._empty_since = None
        else:
            if self._empty_since is None and self._task.is_idle():
                self._empty_since = self._poll_began_at
            self._boundary.wait(_EMPTY_POLL_SECONDS)

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

    def _count_poll(self, records: int) -> None:
        if records:
            self._progress.polls.add(self._poll_seconds)
            self._progress.batches.add(records)


def _records_in(frame: Frame) -> int:
    if isinstance(frame, Records):
        return len(frame.batch)
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
    )
    return PollLoop(
        task, lease, settings, progress, throttle=Throttle(work.spec.records_per_second)
    )
