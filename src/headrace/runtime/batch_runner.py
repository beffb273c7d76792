"""Runs a connector's micro-batches: takes slots for each, hands out tickets, and makes sure that it has ended."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial

from headrace.connect.errors import ConnectorFencedError, RetriableError, TaskFailedError
from headrace.observe.events import (
    MicroBatchEnded,
    MicroBatchStarted,
    Queued,
    Replanned,
    TaskFailed,
)
from headrace.observe.log_format import in_log_context
from headrace.offsets.store import OffsetSnapshot
from headrace.runtime.batch_progress import BatchProgress, SourceWaits
from headrace.runtime.engine import OtherVersionError
from headrace.runtime.micro_batch import BatchResult, MicroBatch, SlotState
from headrace.runtime.run_context import RunContext
from headrace.runtime.services import MembershipError
from headrace.task.connector_spec import BoundaryKind
from headrace.task.slot_report import Outcome, SlotReport
from headrace.task.slot_work import EndReason, SlotTicket, SlotWork

_CUT_SHORT = (Outcome.FAILED, Outcome.REPLAN)
_LOOK_SECONDS = 0.5
# Two beats: with the first, a slot learns that its work is not wanted any more.
_REPORT_SECONDS = 2.5
# With the usual transaction.timeout.ms, reading what is not committed took less than this; it is read once more for
# each attempt that Spark has left.
_REASON_SECONDS = 120.0
# The engine itself may take so many times as long as slots: on a busy machine that is normal, but it is reported.
_LONG_START = 4


def end_reason(
    ended: Sequence[Outcome],
    *,
    has_end: bool,
    stopping: bool,
    reconfiguring: bool,
    over_budget: bool,
    others_wait: bool,
    all_idle: bool,
) -> EndReason | None:
    """Why the remaining slots should end, or ``None``; *ended* are the outcomes of the others.

    *has_end* says that they are shares of a plan with an end, *all_idle* that all of them follow their shares and have had
    nothing for a while. *stopping* is also true for a connector that has failed.

    When a slot finishes a share with an end, the others continue, because each has its own share. Other slots that have
    ended, such as an idle polled one, must be run again, even if their siblings are never idle. A connector may often ask
    for new tasks or a new plan: shares with an end are not interrupted for it where that would waste what they have read.
    """
    if stopping:
        return EndReason.STOP
    if any(each in _CUT_SHORT for each in ended):
        return EndReason.SIBLING
    if reconfiguring:
        return EndReason.BUDGET if has_end else EndReason.RECONFIGURATION
    if all_idle:
        return EndReason.IDLE
    if over_budget and (others_wait or (ended and not has_end)):
        return EndReason.BUDGET
    return None


class BatchRun:
    """Watches one job: reports its progress, asks it to end when it should, and gives up on silent slots.

    Used by one connector's thread. The capacity was taken by the caller and is given back when the engine has
    returned, which may be after the end of :meth:`run`. An error of the engine that is not retriable is put into
    *failures*, where the next micro-batch finds it.
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
            is_refused=run_context.statuses.is_refused,
        )
        self._clock = clock
        self._started_at = self._startable_at = clock()
        self._asked: EndReason | None = None
        self._asked_at: float | None = None
        self._lost_because: RetriableError | None = None
        self._lost_membership = False
        self._failures = failures
        self._engine_thread: threading.Thread | None = None

    @property
    def has_started(self) -> bool:
        """Whether the engine was called; from then on its thread gives back the slots that were taken."""
        return self._engine_thread is not None

    def run(self) -> BatchResult:
        """Run the job and return when none of its slots may write any more.

        Raises the first of *failures*.
        """
        tickets = self._services.channel.open(self._batch)
        self._engine_thread = threading.Thread(
            target=in_log_context(self._run_engine),
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
        self._progress.report()
        if self._failures:
            raise self._failures.popleft()
        return self._result(lost)

    def _run_engine(self, tickets: Sequence[SlotTicket]) -> None:
        try:
            self._services.engine.run(tickets, self._spec.sql_stage)
        except OtherVersionError as error:
            self._refuse(error)
        except RetriableError as error:
            self._lost_because = error
        except Exception as error:  # noqa: BLE001 (raised again on the connector's thread)
            self._failures.append(error)
        finally:
            self._services.capacity.give_back(len(tickets))
            self._batch.wake()

    def _refuse(self, error: OtherVersionError) -> None:
        """End the slots that could not even ask for their work; those that have asked were refused then."""
        for number, (host, version) in error.found.items():
            reason = self._services.channel.versions.refusal(host, version)
            report = SlotReport(outcome=Outcome.REFUSED, reason=reason)
            self._batch.refuse(self._batch.slots[number].token, report)

    def _watch(self) -> str | None:
        while not self._batch.all_reported():
            if not self._engine_is_running():
                return self._why_engine_ended()
            silent = self._batch.silent(self._services.timing.lease)
            if silent:
                return f"Task {silent[0].work.task} has not sent a heartbeat within its lease."
            if self._is_ending() and self._batch.first_claim_at is None:
                return "The micro-batch was stopped before its slots had started."
            if self._overdue():
                return "Slots did not end within the grace period."
            try:
                self._ownership.prove_if_due()
            except (ConnectorFencedError, RetriableError) as error:
                # The next round raises it, after the tokens are withdrawn.
                self._lost_membership = isinstance(error, MembershipError)
                return str(error)
            self._ask_to_end_if_due()
            self._batch.wait(_LOOK_SECONDS)
            self._progress.report()
            self._report_late_start()
        return None

    def _await_reason(self) -> None:
        """After a repeated loss, let Spark retry a lost slot: when its last attempt fails, Spark reports the reason."""
        until = self._clock() + _REASON_SECONDS
        while self._batch.may_learn_why() and self._engine_is_running():
            if self._is_ending() or self._clock() > until:
                return
            self._batch.wait(_LOOK_SECONDS)
            self._progress.report()

    def _engine_is_running(self) -> bool:
        return self._engine_thread is not None and self._engine_thread.is_alive()

    def _why_engine_ended(self) -> str | None:
        if self._batch.all_reported():
            return None
        return str(self._lost_because or "A slot's process ended without a report.")

    def _ask_to_end_if_due(self) -> None:
        has_end = self._batch.slots[0].work.has_end
        reason = end_reason(
            self._batch.outcomes(),
            has_end=has_end,
            stopping=self._is_ending(),
            reconfiguring=self._context.wants_reconfiguration,
            over_budget=self._past(self._services.timing.batch_budget),
            others_wait=self._services.capacity.others_wait(),
            all_idle=self._all_idle(),
        )
        if reason is None or self._asked not in (None, EndReason.BUDGET) or reason is self._asked:
            return
        self._batch.ask_to_end(reason)
        self._asked = reason
        # A share with an end may be read on to where resuming later is cheap; others may not.
        if reason is not EndReason.BUDGET:
            self._asked_at = self._clock()
        elif not has_end:
            self._asked_at = self._clock() + self._seconds_to_boundary()

    def _all_idle(self) -> bool:
        """Whether no slot has had anything for the linger time; only those that follow their shares are left to that."""
        if not self._batch.slots[0].work.followed:
            return False
        idle = self._batch.idle_seconds()
        return idle is not None and idle >= self._services.timing.linger

    def _seconds_to_boundary(self) -> float:
        """How long a slot without an end may continue to the end of a transaction that only its connector may end."""
        work = self._batch.slots[0].work
        return work.transaction_seconds if work.spec.boundary is BoundaryKind.CONNECTOR else 0.0

    def _is_ending(self) -> bool:
        return self._stopping.is_set() or self._context.has_failed

    def _past(self, seconds: float, *, since: float = 0.0) -> bool:
        """Whether *seconds* have passed since *since* and since the first claim; never while Spark is starting."""
        began = self._batch.first_claim_at
        return began is not None and self._clock() > max(began, since) + seconds

    def _report_late_start(self) -> None:
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
        """Wait for the job to return, so that its slots are free for the next one; report if it does not."""
        if self._batch.first_claim_at is None and self._is_ending():
            # Its slots will find their tokens withdrawn, and no next micro-batch needs them.
            return
        if self._engine_thread is not None:
            self._engine_thread.join(_REPORT_SECONDS)
        if self._engine_is_running():
            self._progress.slots_still_taken()

    def _end_processes(self, unconfirmed: Sequence[SlotState]) -> None:
        # A slot ends by itself within a beat; one that hangs would keep Spark's slot forever.
        processes = self._services.processes
        deadline = self._clock() + _REPORT_SECONDS
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
            lost_membership=self._lost_membership,
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
        """Wait for free slots and run *works*; ``None`` when the run ends before there are enough.

        Raises ``TaskFailedError`` when a task has failed, and what the engine raises.
        """
        if not self._take_slots(len(works)):
            return None
        services = self._run_context.services
        ownership = self._run_context.ownership
        run = self._batch_run(
            MicroBatch(
                works,
                offsets.known(),
                run=services.run_id,
                check_write=partial(ownership.check_write, planned_from=offsets),
                readers=self._run_context.spec.sql_stage is not None,
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
        self._evaluate(result, has_more=has_more)
        return result

    def _batch_run(self, batch: MicroBatch) -> BatchRun:
        return BatchRun(self._run_context, batch, waits=self._waits, failures=self._failures)

    def _take_slots(self, count: int) -> bool:
        capacity = self._run_context.services.capacity
        if capacity.take(count, give_up=lambda: True):
            return True
        self._emit(Queued(connector=self._name, slots=count))
        return capacity.take(count, give_up=self._run_context.is_ending)

    def _evaluate(self, result: BatchResult, *, has_more: bool) -> None:
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
        if self._run_context.services.once:
            # It is to end, and no one looks at its health.
            failed += result.refused()
        if failed:
            self._fail(failed)
        if result.committed_records:
            self._run_context.backoff.reset()
        reason = result.wants_new_plan()
        if reason and not self._run_context.is_ending():
            is_shared = result.lost_membership
            self._emit(Replanned(connector=self._name, reason=reason, is_shared=is_shared))
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
