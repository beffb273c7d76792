"""Kills the process of one running task, on purpose, and watches what headrace does about it."""

from __future__ import annotations

import logging
import os
import signal
import threading
from dataclasses import dataclass

from headrace.observe.events import Event, MicroBatchStarted, Replanned, SlotClaimed

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Victim:
    """A task that was killed."""

    connector: str
    task: int
    pid: int


class Killer:
    """Listens to the worker's events to know the tasks of *connector*; told from any thread."""

    def __init__(self, connector: str) -> None:
        self._connector = connector
        self._lock = threading.Lock()
        self._running: dict[int, int] = {}
        self.victim: Victim | None = None
        self.replanned = False

    def __call__(self, event: Event) -> None:
        """Remember which process runs which task, and whether the work was planned again."""
        if not isinstance(event, MicroBatchStarted | SlotClaimed | Replanned):
            return
        if event.connector != self._connector:
            return
        with self._lock:
            if isinstance(event, MicroBatchStarted):
                self._running.clear()
            elif isinstance(event, SlotClaimed):
                self._running[event.task] = event.pid
            else:
                self.replanned = self.victim is not None

    def kill(self) -> Victim | None:
        """SIGKILL the last of the tasks that run; None when none does."""
        with self._lock:
            if not self._running:
                return None
            task = max(self._running)
            pid = self._running.pop(task)
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                return None
            self.victim = Victim(connector=self._connector, task=task, pid=pid)
            _log.info("Killed %s", self.victim)
            return self.victim
