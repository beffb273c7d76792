"""Totals of connectors in one run, for the program that has run them: a listener of events."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from headrace.observe import events
from headrace.observe.events import Event


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectorSummary:
    """What one connector has done in a run.

    *records* and *bytes* were committed; the bytes are those of the records' keys and values as they were sent.
    *files* are the files or objects that were begun, among them those put in quarantine; 0 of a connector that is
    polled. *seconds* went by from its start to its end. *dead_lettered* and *skipped* count bad records that were
    passed over.
    """

    records: int = 0
    bytes: int = 0
    files: int = 0
    seconds: float = 0.0
    dead_lettered: int = 0
    skipped: int = 0


class Summaries:
    """Sums up events by connector. Any thread may call."""

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._connectors = dict[str, _Sums]()

    def __call__(self, event: Event) -> None:
        """Add *event*, if it is relevant."""
        with self._lock:
            match event:
                case events.ConnectorStarted():
                    self._connectors[event.connector] = _Sums(started_at=self._clock())
                case events.MicroBatchStarted():
                    self._connectors[event.connector].begin(event)
                case events.SlotProgress():
                    self._connectors[event.connector].now = event
                case events.ConnectorStopped() | events.ConnectorFailed():
                    # A connector that could not be started has no totals.
                    if event.connector in self._connectors:
                        self._connectors[event.connector].ended_at = self._clock()
                case _:
                    pass

    def by_connector(self) -> Mapping[str, ConnectorSummary]:
        """The sums so far, of each connector that was started."""
        with self._lock:
            now = self._clock()
            return {name: each.summary(now) for name, each in self._connectors.items()}


@dataclass(slots=True, kw_only=True)
class _Sums:
    """The totals of one connector: *before* its current or last micro-batch, and *now* in it."""

    started_at: float
    ended_at: float | None = None
    objects: set[str] = field(default_factory=set[str])
    before: ConnectorSummary = ConnectorSummary()
    now: events.SlotProgress | None = None

    def begin(self, event: events.MicroBatchStarted) -> None:
        self.before, self.now = self._total(), None
        # A set: a file that is planned again, or continued in the next micro-batch, counts once.
        self.objects.update(event.objects)

    def summary(self, now: float) -> ConnectorSummary:
        ended_at = now if self.ended_at is None else self.ended_at
        return replace(self._total(), files=len(self.objects), seconds=ended_at - self.started_at)

    def _total(self) -> ConnectorSummary:
        if self.now is None:
            return self.before
        return ConnectorSummary(
            records=self.before.records + self.now.committed_records,
            bytes=self.before.bytes + self.now.committed_bytes,
            dead_lettered=self.before.dead_lettered + self.now.dead_lettered,
            skipped=self.before.skipped + self.now.skipped,
        )
