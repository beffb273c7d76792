"""Changes of offsets in memory, for tests and trials: gone when the process ends."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import replace

from headrace.kafka.sender import OffsetEntry
from headrace.storage.changes import HistoryEntry, Intent, Phase, Retention
from headrace.storage.memory import MemoryConfigStore, MemoryOffsetStore


class MemoryChangeStore:
    """A :class:`~headrace.storage.changes.ChangeStore` beside *offsets* and *configs*."""

    def __init__(self, offsets: MemoryOffsetStore, configs: MemoryConfigStore) -> None:
        self._offsets = offsets
        self._configs = configs
        # Around both of the mappings, and the numbering.
        self._lock = threading.Lock()
        self._last = 0
        self._entries: dict[int, HistoryEntry] = {}
        self._intents: dict[int, Intent] = {}
        # How often the name had been deleted when the change began.
        self._deletions: dict[int, int] = {}

    def entries(self, connector: str) -> Sequence[HistoryEntry]:
        """The changes of *connector*, the newest first."""
        with self._lock:
            deletions = self._configs.deletions(connector)
            return [
                replace(each, of_deleted=self._deletions[each.id] < deletions)
                for each in reversed(self._entries.values())
                if each.connector == connector
            ]

    def open_intents(self) -> Sequence[Intent]:
        """Those that are not over, the oldest first."""
        with self._lock:
            return list(self._intents.values())

    def begin(self, intent: Intent, keep: Retention) -> Intent:
        """Store *intent* and its entry, which gets its number, and forget what *keep* does not keep."""
        with self._lock:
            self._last += 1
            entry = replace(intent.entry, id=self._last)
            self._entries[entry.id] = entry
            self._deletions[entry.id] = self._configs.deletions(entry.connector)
            begun = self._intents[entry.id] = replace(intent, entry=entry)
            self._forget(entry, keep)
            return begun

    def move(self, intent: Intent, phase: Phase) -> Intent:
        """Store what is to become of it."""
        with self._lock:
            moved = self._intents[intent.entry.id] = replace(intent, phase=phase)
            return moved

    def finish(self, intent: Intent, entries: Sequence[OffsetEntry] = ()) -> None:
        """Mark the change done, store its connector, end the intent, store *entries*."""
        with self._lock:
            self._offsets.written(entries)
            if intent.stored is not None:
                self._configs.put_connector(intent.stored)
            self._entries[intent.entry.id] = replace(intent.entry, done=True)
            del self._intents[intent.entry.id]

    def abandon(self, intent: Intent) -> None:
        """End the intent; its entry stays as one that was not done."""
        with self._lock:
            del self._intents[intent.entry.id]

    def _forget(self, newest: HistoryEntry, keep: Retention) -> None:
        oldest = keep.oldest_ms(newest.at_ms)
        of_connector = [
            number for number, each in self._entries.items() if each.connector == newest.connector
        ]
        surplus = set(of_connector[: -keep.entries])
        for number, each in list(self._entries.items()):
            if number not in self._intents and (number in surplus or each.at_ms < oldest):
                del self._entries[number]
                del self._deletions[number]
