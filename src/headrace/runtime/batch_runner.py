"""Runs micro-batches one after the other: room for each, its tickets, and its end, after which nothing of it can write."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from headrace.connect.errors import ConnectorFencedError, RetriableError, TaskFailedError
from headrace.observe.events import (
    MicroBatchEnded,
    MicroBatchStarted,
    Queued,
    Replanned,
    TaskFailed,
)
from headrace.offsets.connector_stores import OffsetSnapshot
from headrace.runtime.batch_progress import BatchProgress, SourceWaits
from headrace.runtime.micro_batch import MicroBatch, SlotState
from headrace.runtime.run_context import RunContext
from headrace.task.work import BoundaryKind, EndReason, Outcome, SlotReport, SlotTicket, SlotWork

_CUT_SHORT = (Outcome.FAILED, Outcome.REPLAN)


def end_reason(
    ended: Sequence[Outcome],
    *,
    planned: bool,
    stopping: bool,
    reconfiguring: bool,
    over_budget: bool,
    others_wait: bool,
) -> EndReason | None:
    """Why the slots that are left should end, or ``None``; *ended* is how the others did.

    *stopping* is also true of a connector that has failed. A planned slot that is through leaves the rest
    alone, because their work is shared out. A polled one that was idle must get another turn, even if its
    siblings never are. A connector that asks for new tasks or a new plan may do so often: shares of a plan
    are not cut for it where that would cost their reading so far.
    """
    if stopping:
        return EndReason.STOP
    if any(each in _CUT_SHORT for each in ended):
        return EndReason.SIBLING
    if reconfiguring:
        return EndReason.BUDGET if planned else EndReason.RECONFIGURATION
    if over_budget and (others_wait or (ended and not planned)):
        return EndReason.BUDGET
    return None


_LOOK_SECONDS = 0.5
# Two beats: the first tells a slot that its work is not wanted any more.
_LAST_WORD_SECONDS = 2.5
# What is not committed was read in less, with the usual transaction.timeout.ms; it is read once more for each attempt
# that Spark has left.
_REASON_SECONDS = 120.0
# So many times as long as slots may take to start, the engine itself may: a busy machine is no news, silence is.
_LONG_START = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchResult:
    """How a micro-batch ended. *clean* says that no slot of it can have left a transaction open."""

    reports: Sequence[SlotReport]
    clean: bool
    lost: str | None
    committed_records: int
    dead_lettered: int = 0
    skipped: int = 0
    quarantined: int = 0

    def failed(self) -> list[tuple[int, SlotReport]]:
        """The tasks that failed, with their reports."""
        return [(n, each) for n, each in enumerate(self.reports) if each.outcome is Outcome.FAILED]

    def brought_anything(self) -> bool:
        """Whether it moved an offset by a record, also by one that was passed over."""
        return bool(self.committed_records or self.dead_lettered or self.skipped)

    def idle(self) -> bool:
        """Whether every slot ended because there was nothing to read."""
        return all(each.outcome is Outcome.IDLE for each in self.reports)

    def wants_new_plan(self) -> str | None:
        """Why the work has to be planned again, when it was cut short."""
        if self.lost:
            return self.lost
        replanned = (each.reason for each in self.reports if each.outcome is Outcome.REPLAN)
        return next(replanned, None)


class BatchRun:
    """Watches one job: passes on progress, asks it to end when it should, and gives up on silent slots.

    Used by one connector's thread. The slots' capacity has been taken by then and is given back when the
    engine has returned, which may be later than this. What the engine raises by then is put into *failures*, unless
    it is a job that may be tried again: whoever runs the next micro-batch finds it there.
    """

    def __init__(
        self,
        run_context: RunContext,
        batch: MicroBatch,
        *,
        waits: SourceWaits,
        failures: deque[Exception],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._spec = run_context.spec
        self._services = run_context.services
        self._ownership = run_context.ownership
        self._batch = batch
        self._stopping = run_context.stopping
        self._context = run_context.context
        self._progress = BatchProgress(
            self._spec.name,
            batch,
            self._services.emit,
            waits=waits,
            has_begun=partial(
                run_context.statuses.has_begun, among=[each.work.task for each in batch.slots]
            ),
        )
        self._clock = clock
        self._started_at = self._startable_at = clock()
        self._asked: EndReason | None = None
        self._asked_at: float | None = None
        self._lost_because: RetriableError | None = None
        self._failures = failures
        self._engine_thread: threading.Thread | None = None

    @property
    def has_started(self) -> bool:
        """Whether the engine was asked; from then on it gives back the slots that were taken."""
        return self._engine_thread is not None

    def run(self) -> BatchResult:
        """Run the job and return when no slot of it may write any more.

        Raises the first of *failures*.
        """
        tickets = self._services.channel.open(self._batch)
        self._engine_thread = threading.Thread(
            target=self._run_engine,
            args=(tickets,),
            name=f"headrace-job-{self._spec.name}",
            daemon=True,
        )
        self._engine_thread.start()
        lost = self._watch()
        if lost is None:
            self._await_reason()
        unconfirmed = self._batch.withdraw()
        self._end_processes(unconfirmed)
        self._await_engine()
        self._services.channel.forget(self._batch)
        self._progress.progress()
        if self._failures:
            raise self._failures.popleft()
        return self._result(lost)

    def _run_engine(self, tickets: Sequence[SlotTicket]) -> None:
        try:
            self._services.engine.run(tickets, self._spec.between)
        except RetriableError as error:
            self._lost_because = error
        except Exception as error:  # noqa: BLE001 (it is raised again on the connector's thread)
            self._failures.append(error)
        finally:
            self._services.capacity.give_back(len(tickets))
            self._batch.wake()

    def _watch(self) -> str | None:
        while not self._batch.all_reported():
            if not self._engine_is_running():
                return self._why_engine_ended()
            silent = self._batch.silent(self._services.timing.lease)
            if silent:
                return f"Task {silent[0].work.task} has not been heard for its lease time."
            if self._is_ending() and self._batch.first_claim_at is None:
                return "It was stopped before its slots had started."
            if self._overdue():
                return "Slots did not end within the graceful time."
            try:
                self._ownership.prove_if_due()
            except ConnectorFencedError as error:
                # The next round fails with it, after the tokens are withdrawn.
                return str(error)
            self._ask_to_end_if_due()
            self._batch.wait(_LOOK_SECONDS)
            self._progress.progress()
            self._tell_late_slots()
        return None

    def _await_reason(self) -> None:
        """Let Spark try a lost slot again where that was of no use before: when its last attempt fails, it says why."""
        until = self._clock() + _REASON_SECONDS
        while self._batch.may_learn_why() and self._engine_is_running():
            if self._is_ending() or self._clock() > until:
                return
            self._batch.wait(_LOOK_SECONDS)
            self._progress.progress()

    def _engine_is_running(self) -> bool:
        return self._engine_thread is not None and self._engine_thread.is_alive()

    def _why_engine_ended(self) -> str | None:
        if self._batch.all_reported():
            return None
        return str(self._lost_because or "A slot's process ended without a word.")

    def _ask_to_end_if_due(self) -> None:
        planned = self._batch.slots[0].work.planned
        reason = end_reason(
            self._batch.outcomes(),
            planned=planned,
            stopping=self._is_ending(),
            reconfiguring=self._context.wants_reconfiguration,
            over_budget=self._past(self._services.timing.batch_budget),
            others_wait=self._services.capacity.others_wait(),
        )
        if reason is None or self._asked not in (None, EndReason.BUDGET) or reason is self._asked:
            return
        self._batch.ask_to_end(reason)
        self._asked = reason
        # A planned slot may take its time to where going on later is cheap; a polled one may not.
        if reason is not EndReason.BUDGET:
            self._asked_at = self._clock()
        elif not planned:
            self._asked_at = self._clock() + self._seconds_to_boundary()

    def _seconds_to_boundary(self) -> float:
        """How long a polled slot may take to the end of a transaction that only its connector may place."""
        work = self._batch.slots[0].work
        return work.transaction_seconds if work.spec.boundary is BoundaryKind.CONNECTOR else 0.0

    def _is_ending(self) -> bool:
        return self._stopping.is_set() or self._context.has_failed

    def _past(self, seconds: float, *, since: float = 0.0) -> bool:
        """Whether *seconds* are over since then and since slots began, so not while Spark is starting."""
        began = self._batch.first_claim_at
        return began is not None and self._clock() > max(began, since) + seconds

    def _tell_late_slots(self) -> None:
        patience, now = self._services.timing.slot_start, self._clock()
        if self._services.engine.is_starting:
            self._startable_at = now
            if now > self._started_at + _LONG_START * patience:
                self._progress.late_start(_LONG_START * patience)
        elif now > self._startable_at + patience:
            self._progress.late_slots(patience, worker_slots=self._services.capacity.slots)

    def _overdue(self) -> bool:
        grace = self._services.timing.grace
        if self._batch.hung(grace):
            return True
        return self._asked_at is not None and self._past(grace, since=self._asked_at)

    def _await_engine(self) -> None:
        """Let the job return, so that its slots are free for the next one; tell when they are not."""
        if self._batch.first_claim_at is None and self._is_ending():
            # Its slots will find their tokens withdrawn, and no one needs their places.
            return
        if self._engine_thread is not None:
            self._engine_thread.join(_LAST_WORD_SECONDS)
        if self._engine_is_running():
            self._progress.slots_still_taken()

    def _end_processes(self, unconfirmed: Sequence[SlotState]) -> None:
        # A slot that was told ends by itself within a beat; one that hangs keeps Spark's slot for ever.
        processes = self._services.processes
        deadline = self._clock() + _LAST_WORD_SECONDS
        while left := [slot for slot in unconfirmed if not slot.gone and processes.running(slot)]:
            if self._clock() > deadline:
                for slot in left:
                    processes.end(slot)
                return
            self._batch.wait(_LOOK_SECONDS / 5)

    def _result(self, lost: str | None) -> BatchResult:
        reports = [
            slot.report or SlotReport(outcome=Outcome.REPLAN, clean=False, reason=lost)
            for slot in self._batch.slots
        ]
        return BatchResult(
            reports=reports,
            clean=all(each.clean for each in reports),
            lost=lost,
            committed_records=self._batch.total("committed_records"),
            dead_lettered=self._batch.total("dead_lettered"),
            skipped=self._batch.total("skipped"),
            quarantined=self._batch.total("quarantined"),
        )


class BatchSupervisor:
    """Runs the micro-batches of one connector. Used by its thread."""

    def __init__(self, run_context: RunContext) -> None:
        self._run_context = run_context
        self._name = run_context.spec.name
        self._emit = run_context.services.emit
        self._waits = SourceWaits()
        self._failures = deque[Exception]()
        self._was_cut_short = False

    def run(
        self,
        works: Sequence[SlotWork],
        offsets: OffsetSnapshot,
        *,
        total_bytes: int | None = None,
        has_more: bool = False,
        objects: Sequence[str] = (),
    ) -> BatchResult | None:
        """Wait for room and run *works*; ``None`` when the run is ending before there is room.

        Raises ``TaskFailedError`` when a task has failed, and what the engine raises.
        """
        if not self._has_room(len(works)):
            return None
        services = self._run_context.services
        ownership = self._run_context.ownership
        run = self._batch_run(
            MicroBatch(
                works,
                offsets.known(),
                run=services.run_id,
                admit=partial(ownership.admit, planned_from=offsets),
                readers=self._run_context.spec.between is not None,
                repeats=self._was_cut_short,
            )
        )
        try:
            self._emit(
                MicroBatchStarted(
                    connector=self._name,
                    slots=len(works),
                    total_bytes=total_bytes,
                    has_more=has_more or None,
                    objects=objects,
                )
            )
            ownership.dirty = True
            result = run.run()
        finally:
            if not run.has_started:
                services.capacity.give_back(len(works))
        ownership.dirty = not result.clean
        self._was_cut_short = result.wants_new_plan() is not None
        self._judge(result, has_more=has_more)
        return result

    def _batch_run(self, batch: MicroBatch) -> BatchRun:
        return BatchRun(self._run_context, batch, waits=self._waits, failures=self._failures)

    def _has_room(self, count: int) -> bool:
        capacity = self._run_context.services.capacity
        if capacity.take(count, give_up=lambda: True):
            return True
        self._emit(Queued(connector=self._name, slots=count))
        return capacity.take(count, give_up=self._run_context.is_ending)

    def _judge(self, result: BatchResult, *, has_more: bool) -> None:
        self._emit(
            MicroBatchEnded(
                connector=self._name,
                committed_records=result.committed_records,
                has_more=has_more or None,
                dead_lettered=result.dead_lettered or None,
                skipped=result.skipped or None,
                quarantined=result.quarantined or None,
            )
        )
        failed = result.failed()
        if failed:
            self._fail(failed)
        if result.committed_records:
            self._run_context.backoff.reset()
        reason = result.wants_new_plan()
        if reason and not self._run_context.is_ending():
            self._emit(Replanned(connector=self._name, reason=reason))
            self._run_context.backoff.pause()

    def _fail(self, failed: Sequence[tuple[int, SlotReport]]) -> None:
        for task, report in failed:
            self._run_context.statuses.failed(task, report)
            self._emit(
                TaskFailed(
                    connector=self._name,
                    task=task,
                    reason=report.reason or "",
                    trace=report.trace if report.surprising else None,
                )
            )
        task, report = failed[0]
        raise TaskFailedError(f"Task {self._name}-{task} failed: {report.reason}")
