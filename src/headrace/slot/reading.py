"""The reading half of the task loop: polls a task and turns what it returns into frames."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from headrace.connect.errors import RecordError, RetriableError
from headrace.connect.task import Polled, SourceTask
from headrace.slot.awaited_boundary import AwaitedBoundary
from headrace.slot.boundary import BoundaryRequests
from headrace.slot.frames import Abort, Commit, DeadLetter, EndOfPoll, Failed, Frame, Place, Records
from headrace.slot.lease import Lease
from headrace.slot.polled_frames import PolledFrames
from headrace.slot.stuck_poll import StuckPoll
from headrace.slot.throttle import Throttle
from headrace.slot.tolerance import untolerated
from headrace.slot.work import EndReason, Outcome, Progress, SlotWork

_log = logging.getLogger(__name__)

# After an empty poll that did not wait by itself: long enough to leave the core to others, short
# enough not to be noticed.
_EMPTY_POLL_SECONDS = 0.05
_RETRY_SECONDS = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadingRules:
    """When reading ends. *linger_seconds* is how long polls may bring nothing; ``None``: for ever.

    *once* says that a polled task ends then also where going on later would be costly: there is no later.
    *requests* are there when the connector places the ends of transactions; reading then goes on to the
    next one for at most *grace_seconds* after it was asked to end, or where others wait for its slot, until its
    transaction has been open for *transaction_seconds*. *tolerates* says that a record that cannot
    be read is passed over.
    """

    planned: bool
    linger_seconds: float | None
    grace_seconds: float
    transaction_seconds: float = 60.0
    once: bool = False
    requests: BoundaryRequests | None = None
    tolerates: bool = False


class ReadingHalf:
    """Polls one task until its share is finished, it stays idle, or it should end."""

    def __init__(
        self,
        task: SourceTask,
        lease: Lease,
        rules: ReadingRules,
        progress: Progress,
        *,
        throttle: Throttle,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._task = task
        self._lease = lease
        self._rules = rules
        self._progress = progress
        self._frames_of_polls = PolledFrames(
            throttle, lease.wait, rules.requests, tolerates=rules.tolerates
        )
        self._clock = clock
        self._empty_since: float | None = None
        self._boundary = AwaitedBoundary(
            lease,
            grace_seconds=rules.grace_seconds,
            transaction_seconds=rules.transaction_seconds,
            clock=clock,
        )
        self._failing = False
        self._stuck = StuckPoll()
        self._poll_began_at = 0.0
        self._poll_seconds = 0.0
        self.outcome = Outcome.ASKED

    def frames(self) -> Iterator[Frame]:
        """Everything the task returns, in order; a last :class:`Failed` when it raised.

        When this ends, ``outcome`` tells why.
        """
        try:
            while not self._should_end():
                polled = self._polled()
                if polled is None and self._rules.planned:
                    yield from self._batch_requests()
                    self.outcome = Outcome.FINISHED
                    return
                yield from self._frames_of(polled)
        except Exception as error:  # noqa: BLE001 - whatever the task raised is for the writing half
            yield Failed(untolerated(error) if self._rules.tolerates else error, _place_of(error))

    def _should_end(self) -> bool:
        if self._lease.should_end():
            return not (self._waits_for_boundary() or self._waits_for_cheap_end())
        linger = self._rules.linger_seconds
        if linger is None or self._empty_since is None or not self._at_boundary_if_it_matters():
            return False
        if self._clock() - self._empty_since < linger or not self._may_leave():
            return False
        self.outcome = Outcome.IDLE
        return True

    def _may_leave(self) -> bool:
        return self._rules.once or self._task.resumes_cheaply()

    def _at_boundary_if_it_matters(self) -> bool:
        # A run that ends with its work has no later in which the connector might end its transaction.
        return self._rules.requests is None or not self._boundary.is_open or self._rules.once

    def _waits_for_boundary(self) -> bool:
        return self._rules.requests is not None and self._boundary.keeps_reading()

    def _waits_for_cheap_end(self) -> bool:
        # Of a polled task nobody knows when it will get there, and others wait for its turn.
        if not self._rules.planned or self._lease.asked_to_end != EndReason.BUDGET:
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
            # One that is over in a moment is no news.
            if self._failing or delay > _RETRY_SECONDS:
                self._progress.source_away = str(error) or type(error).__name__
            self._failing = True
            self._boundary.wait(delay)
            return ()
        self._failing = False
        self._progress.source_away = None
        return polled

    def _passes_over(self, error: RecordError) -> bool:
        """Whether *error* is about one record; raises when it is the one that was passed over just now."""
        if not self._rules.tolerates or error.bad is None:
            return False
        self._stuck.check(error, error.bad)
        return True

    def _frames_of(self, polled: Polled | RecordError) -> Iterator[Frame]:
        count = 0
        for frame in self._frames_of_polls.of(polled):
            if isinstance(frame, Records):
                self._stuck.went_on()
            records = _records_in(frame)
            count += records
            self._progress.polled_records += records
            self._boundary.read(frame)
            yield frame
        self._count_poll(count)
        yield EndOfPoll(count)
        yield from self._batch_requests()
        # A source that cannot be read is not one that has nothing.
        if count or self._failing:
            self._empty_since = None
        else:
            if self._empty_since is None and self._task.is_idle():
                self._empty_since = self._poll_began_at
            self._boundary.wait(_EMPTY_POLL_SECONDS)

    def _batch_requests(self) -> Iterator[Frame]:
        requests = self._rules.requests
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


def reading_half(
    task: SourceTask,
    work: SlotWork,
    lease: Lease,
    progress: Progress,
    *,
    requests: BoundaryRequests | None,
) -> ReadingHalf:
    """The half that polls *task* for *work*; *requests* as in :class:`ReadingRules`."""
    rules = ReadingRules(
        planned=work.planned,
        linger_seconds=work.linger_seconds,
        once=work.once,
        grace_seconds=work.grace_seconds,
        transaction_seconds=work.transaction_seconds,
        requests=requests,
        tolerates=work.errors.tolerate,
    )
    return ReadingHalf(task, lease, rules, progress, throttle=Throttle(work.records_per_second))
