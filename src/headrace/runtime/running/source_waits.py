"""Which tasks' sources are away, told once each."""

from __future__ import annotations

from collections.abc import Sequence

from headrace.runtime.running.micro_batch import SlotState


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
