"""Runs one micro-batch from its tickets to the point where nothing of it can write any more."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from headrace.connect.errors import RetriableError
from headrace.runtime.running.batch_telling import BatchTelling
from headrace.runtime.running.ending import end_reason
from headrace.runtime.running.micro_batch import MicroBatch, SlotState
from headrace.runtime.running.run_parts import RunParts
from headrace.runtime.running.source_waits import SourceWaits
from headrace.slot.work import BoundaryKind, EndReason, Outcome, SlotReport, SlotTicket

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
        parts: RunParts,
        batch: MicroBatch,
        *,
        waits: SourceWaits,
        failures: deque[Exception],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._spec = parts.spec
        self._services = parts.services
        self._batch = batch
        self._stopping = parts.stopping
        self._context = parts.context
        self._telling = BatchTelling(self._spec.name, batch, self._services.tell, waits=waits)
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
        self._telling.progress()
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
            self._ask_to_end_if_due()
            self._batch.wait(_LOOK_SECONDS)
            self._telling.progress()
            self._tell_late_slots()
        return None

    def _await_reason(self) -> None:
        """Let Spark try a lost slot again where that was of no use before: when its last attempt fails, it says why."""
        until = self._clock() + _REASON_SECONDS
        while self._batch.may_tell_why() and self._engine_is_running():
            if self._is_ending() or self._clock() > until:
                return
            self._batch.wait(_LOOK_SECONDS)
            self._telling.progress()

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
        return work.transaction_seconds if work.boundary is BoundaryKind.CONNECTOR else 0.0

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
                self._telling.late_start(_LONG_START * patience)
        elif now > self._startable_at + patience:
            self._telling.late_slots(patience, worker_slots=self._services.capacity.slots)

    def _overdue(self) -> bool:
        grace = self._services.timing.grace
        if self._batch.hung(grace):
            return True
        return self._asked_at is not None and self._past(grace, since=self._asked_at)

    def _await_engine(self) -> None:
        """Let the job return, so that its slots are free for the next one; tell when they are not."""
        if self._batch.first_claim_at is None and self._is_ending():
            # Its slots will find their tokens withdrawn, and nobody needs their places.
            return
        if self._engine_thread is not None:
            self._engine_thread.join(_LAST_WORD_SECONDS)
        if self._engine_is_running():
            self._telling.slots_still_taken()

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
