"""One micro-batch after the other: room for it, its run, and what its end means for the connector."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from headrace.connect.errors import TaskFailedError
from headrace.observe.events import (
    MicroBatchEnded,
    MicroBatchStarted,
    Queued,
    Replanned,
    TaskFailed,
)
from headrace.runtime.herder.states import State
from headrace.runtime.offset_desk import OffsetSnapshot
from headrace.runtime.running.batch_run import BatchResult, BatchRun
from headrace.runtime.running.micro_batch import MicroBatch
from headrace.runtime.running.run_parts import RunParts
from headrace.runtime.running.source_waits import SourceWaits
from headrace.slot.work import SlotReport, SlotWork


class BatchSupervisor:
    """Runs the micro-batches of one connector. Used by its thread."""

    def __init__(self, parts: RunParts) -> None:
        self._parts = parts
        self._name = parts.spec.name
        self._tell = parts.services.tell
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
    ) -> BatchResult | None:
        """Wait for room and run *works*; ``None`` when the run is ending before there is room.

        Raises ``TaskFailedError`` when a task has failed, and what the engine raises.
        """
        if not self._has_room(len(works)):
            return None
        services = self._parts.services
        run = self._batch_run(
            MicroBatch(
                works,
                offsets.known(),
                run=services.run_id,
                readers=self._parts.spec.between is not None,
                repeats=self._was_cut_short,
            )
        )
        try:
            self._tell(
                MicroBatchStarted(
                    connector=self._name,
                    slots=len(works),
                    total_bytes=total_bytes,
                    has_more=has_more or None,
                )
            )
            for work in works:
                self._parts.statuses.put(work.task, State.RUNNING)
            self._parts.ownership.dirty = True
            result = run.run()
        finally:
            if not run.has_started:
                services.capacity.give_back(len(works))
        self._parts.ownership.dirty = not result.clean
        self._was_cut_short = result.wants_new_plan() is not None
        self._judge(result, has_more=has_more)
        return result

    def _batch_run(self, batch: MicroBatch) -> BatchRun:
        return BatchRun(self._parts, batch, waits=self._waits, failures=self._failures)

    def _has_room(self, count: int) -> bool:
        capacity = self._parts.services.capacity
        if capacity.take(count, give_up=lambda: True):
            return True
        self._tell(Queued(connector=self._name, slots=count))
        return capacity.take(count, give_up=self._parts.is_ending)

    def _judge(self, result: BatchResult, *, has_more: bool) -> None:
        self._tell(
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
            self._parts.backoff.reset()
        reason = result.wants_new_plan()
        if reason and not self._parts.is_ending():
            self._tell(Replanned(connector=self._name, reason=reason))
            self._parts.backoff.pause()

    def _fail(self, failed: Sequence[tuple[int, SlotReport]]) -> None:
        for task, report in failed:
            self._parts.statuses.failed(task, report)
            self._tell(
                TaskFailed(
                    connector=self._name,
                    task=task,
                    reason=report.reason or "",
                    trace=report.trace if report.surprising else None,
                )
            )
        task, report = failed[0]
        raise TaskFailedError(f"Task {self._name}-{task} failed: {report.reason}")
