"""What is new about the slots of an open micro-batch, as events."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
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


class SourceWaits:
    """What was told of tasks that cannot read their source, of one connector across its micro-batches.

    A task is told of once, until it has delivered records again: a source that answers now and then with
    nothing, or with another sentence each time, is one piece of news. Used by the connector's thread.
    """

    def __init__(self) -> None:
        self._records_when_told: dict[int, int] = {}

    def begin(self) -> None:
        """Get ready for another micro-batch, whose slots count their records from 0."""
        self._records_when_told = dict.fromkeys(self._records_when_told, 0)

    def news(self, slots: Sequence[SlotState]) -> list[tuple[int, str]]:
        """The tasks that could not be polled when they were last heard, and why, unless told before."""
        return [(slot.work.task, away) for slot in slots if (away := self._news(slot))]

    def _news(self, slot: SlotState) -> str | None:
        task, records = slot.work.task, slot.progress.get("records", 0)
        if records > self._records_when_told.get(task, records):
            del self._records_when_told[task]
        away = slot.done().get("source_away")
        if not away or slot.report is not None or task in self._records_when_told:
            return None
        self._records_when_told[task] = records
        return away


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
    ) -> None:
        self._connector = connector
        self._batch = batch
        self._emit = emit
        self._waits = waits
        self._has_begun = has_begun
        self._announced: set[str] = set()
        self._topics = frozenset[str]()
        self._late_told = self._start_told = False
        self._committed_before: int | None = None
        waits.begin()

    def progress(self) -> None:
        """Tell of claims, of what is done so far, and of what slots wait for; called at each look."""
        self._tell_claims()
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
            self._wait(waiting_for)
        self._tell_resumed(waits=waiting_for is not None)
        for task, reason in self._waits.news(self._batch.slots):
            self._wait(
                f"Task {self._connector}-{task} cannot read its source and tries again: {reason}"
            )

    def late_start(self, waited_seconds: float) -> None:
        """Tell, once, that the engine itself has not started in *waited_seconds*."""
        if not self._start_told:
            self._start_told = True
            self._wait(
                f"Spark has been starting for {waited_seconds:.0f} s. It is ready when its first job is done, "
                "which needs a free core. Look whether Spark's master answers and has executors, and whether "
                "this machine is busy."
            )

    def late_slots(self, waited_seconds: float, *, worker_slots: int) -> None:
        """Tell, once, of slots that have not started in *waited_seconds*; they may come all the same."""
        missing = self._batch.not_started()
        if self._late_told or not missing:
            return
        self._late_told = True
        self._wait(
            f"{missing} of {len(self._batch.slots)} slots have not started in {waited_seconds:.0f} s; "
            "they do when Spark has a free core for each. Look whether Spark's master has executors, "
            "whether something else keeps their cores, and whether they have as many cores as "
            f"headrace.slots says ({worker_slots})."
        )

    def slots_still_taken(self) -> None:
        """Tell of a job that was given up and has not returned."""
        left: Sequence[str] = [
            f"task {slot.work.task} on {slot.host}" if slot.claimed else f"task {slot.work.task}"
            for slot in self._batch.slots
            if not slot.gone
        ]
        if left:
            self._wait(f"The slots of a job that was given up are still taken ({', '.join(left)}).")
        else:
            self._wait(
                "All slots of a job that was given up have ended, but Spark has not returned from it: their "
                "places are free when it has."
            )

    def _tell_resumed(self, *, waits: bool) -> None:
        # A slot that gave up does not wait either; only a commit shows that Kafka is back.
        committed = self._batch.total("committed_records")
        if waits:
            if self._committed_before is None:
                self._committed_before = committed
        elif self._committed_before is not None and committed > self._committed_before:
            self._committed_before = None
            self._emit(Resumed(connector=self._connector))

    def _tell_claims(self) -> None:
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

    def _wait(self, reason: str) -> None:
        self._emit(Waiting(connector=self._connector, reason=reason))


def _counts(task: int, done: Mapping[str, Any]) -> TaskCounts:
    return TaskCounts(
        task=task,
        polled=done.get("polled_records", 0),
        committed=done.get("committed_records", 0),
        dead_lettered=done.get("dead_lettered", 0),
        skipped=done.get("skipped", 0),
        moved_offsets=done.get("moved_offsets", 0),
        record_errors=done.get("record_errors", 0),
        retries=done.get("retries", 0),
        errors_logged=done.get("errors_logged", 0),
        letters_refused=done.get("letters_refused", 0),
        polls=_amounts(done, "polls"),
        batches=_amounts(done, "batches"),
        commits=_amounts(done, "commits"),
        transaction_sizes=_amounts(done, "transaction_sizes"),
    )


def _amounts(done: Mapping[str, Any], name: str) -> Amounts:
    return Amounts(**done.get(name, {}))
