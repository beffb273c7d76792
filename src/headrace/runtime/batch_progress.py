"""Emits events about the progress of an open micro-batch and its slots."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from typing import Any

from headrace.observe.events import (
    Amounts,
    EventListener,
    Resumed,
    SlotClaimed,
    SlotProgress,
    TaskCounts,
    TopicsWritten,
    Waiting,
)
from headrace.runtime.micro_batch import MicroBatch, SlotState

_COUNTED = {each.name for each in fields(TaskCounts)}
_PARTS = {"copied_batches", "copied_bytes"}


class SourceWaits:
    """Which tasks of a connector were reported as unable to read their source, across its micro-batches.

    A task is reported once until it has delivered records again: a source that now and then answers with nothing,
    or with another message each time, is not reported again. Used by the connector's thread.
    """

    def __init__(self) -> None:
        self._records_when_reported: dict[int, int] = {}
        self._are_away = False

    def begin(self) -> None:
        """Prepare for another micro-batch, whose slots count their records from 0."""
        self._records_when_reported = dict.fromkeys(self._records_when_reported, 0)
        self._are_away = False

    def unreported(self, slots: Sequence[SlotState]) -> list[tuple[int, str]]:
        """The tasks that could not be polled at their last beat, and why; they count as reported from now on."""
        found = [(slot.work.task, away) for slot in slots if (away := self._unreported(slot))]
        self._are_away |= bool(found)
        return found

    def have_ended(self, slots: Sequence[SlotState]) -> bool:
        """Whether every task can read its source again, after one was reported; once."""
        if not self._are_away or any(_away(slot) for slot in slots):
            return False
        self._are_away = False
        return True

    def _unreported(self, slot: SlotState) -> str | None:
        task, records = slot.work.task, slot.progress.get("records", 0)
        if records > self._records_when_reported.get(task, records):
            del self._records_when_reported[task]
        away = _away(slot)
        if not away or task in self._records_when_reported:
            return None
        self._records_when_reported[task] = records
        return away


def _away(slot: SlotState) -> str | None:
    """Why a slot that runs could not be polled at its last beat."""
    return slot.done().get("source_away") if slot.report is None else None


class BatchProgress:
    """The events of one micro-batch while it is open. Used by the connector's thread."""

    def __init__(
        self,
        connector: str,
        batch: MicroBatch,
        emit: EventListener,
        *,
        waits: SourceWaits,
        has_begun: Callable[[int], None],
        is_refused: Callable[[int, str], None] = lambda *_: None,
    ) -> None:
        self._connector = connector
        self._batch = batch
        self._emit = emit
        self._waits = waits
        self._has_begun = has_begun
        self._is_refused = is_refused
        self._announced: set[str] = set()
        self._topics = frozenset[str]()
        self._late_slots_reported = self._late_start_reported = False
        self._committed_before: int | None = None
        waits.begin()

    def report(self) -> None:
        """Emit claims, the progress so far, and what slots wait for; called periodically."""
        self._emit_claims()
        for task, reason in self._batch.refused():
            self._is_refused(task, reason)
        self._emit(
            SlotProgress(
                connector=self._connector,
                records=self._batch.total("records"),
                bytes=self._batch.total("bytes"),
                committed_records=self._batch.total("committed_records"),
                committed_bytes=self._batch.total("committed_bytes"),
                dead_lettered=self._batch.total("dead_lettered"),
                skipped=self._batch.total("skipped"),
                quarantined=self._batch.total("quarantined"),
                tasks=tuple(_counts(task, done) for task, done in self._batch.done_by_tasks()),
            )
        )
        topics = self._batch.topics()
        if not topics <= self._topics:
            self._topics = topics
            self._emit(TopicsWritten(connector=self._connector, topics=tuple(sorted(topics))))
        waiting_for = self._batch.waiting_for()
        if waiting_for:
            self._emit_waiting(waiting_for)
        self._emit_resumed(waits=waiting_for is not None)
        for task, reason in self._waits.unreported(self._batch.slots):
            self._emit_waiting(
                f"Task {self._connector}-{task} cannot read its source and retries: {reason}"
            )
        if self._waits.have_ended(self._batch.slots):
            self._emit(Resumed(connector=self._connector))

    def late_start(self, waited_seconds: float) -> None:
        """Report, once, that the engine itself has not started in *waited_seconds*."""
        if not self._late_start_reported:
            self._late_start_reported = True
            self._emit_waiting(
                f"Spark has been starting for {waited_seconds:.0f} s. It is ready when its first job is done, "
                "which needs a free core. Check whether Spark's master answers and has executors, and whether "
                "this machine is busy."
            )

    def late_slots(self, waited_seconds: float, *, worker_slots: int) -> None:
        """Report, once, that slots have not started in *waited_seconds*; they may still start."""
        missing = self._batch.not_started()
        if self._late_slots_reported or not missing:
            return
        self._late_slots_reported = True
        self._emit_waiting(
            f"{missing} of {len(self._batch.slots)} slots have not started in {waited_seconds:.0f} s; "
            "each starts when Spark has a free core for it. Check whether Spark's master has executors, "
            "whether something else uses their cores, and whether they have as many cores as "
            f"headrace.slots says ({worker_slots})."
        )

    def slots_still_taken(self) -> None:
        """Report a job that was given up and has not returned."""
        left: Sequence[str] = [
            f"task {slot.work.task} on {slot.host}" if slot.claimed else f"task {slot.work.task}"
            for slot in self._batch.slots
            if not slot.gone
        ]
        if left:
            self._emit_waiting(
                f"The slots of a job that was given up are still occupied ({', '.join(left)})."
            )
        else:
            self._emit_waiting(
                "All slots of a job that was given up have ended, but the Spark job has not returned: the slots "
                "are free when it has."
            )

    def _emit_resumed(self, *, waits: bool) -> None:
        # A slot that gave up no longer waits either; only a commit shows that Kafka is available again.
        committed = self._batch.total("committed_records")
        if waits:
            if self._committed_before is None:
                self._committed_before = committed
        elif self._committed_before is not None and committed > self._committed_before:
            self._committed_before = None
            self._emit(Resumed(connector=self._connector))

    def _emit_claims(self) -> None:
        for slot in self._batch.slots:
            for part in slot.parts():
                if part.claimed and part.token not in self._announced:
                    self._announced.add(part.token)
                    self._has_begun(slot.work.task)
                    self._emit(
                        SlotClaimed(
                            connector=self._connector,
                            task=slot.work.task,
                            pid=part.pid or 0,
                            host=part.host or "",
                            reads=part is slot.reader,
                        )
                    )

    def _emit_waiting(self, reason: str) -> None:
        self._emit(Waiting(connector=self._connector, reason=reason))


def _counts(task: int, done: Mapping[str, Any]) -> TaskCounts:
    counts = {name: _count(name, value) for name, value in done.items() if name in _COUNTED}
    return TaskCounts(task=task, **counts)


def _count(name: str, value: Any) -> Any:  # noqa: ANN401 (JSON values, and fields of different types)
    if name in _PARTS:
        return Counter(value)
    return Amounts(**value) if isinstance(value, Mapping) else value
