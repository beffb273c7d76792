"""The stores of a worker in memory, for tests and experiments: gone when the process ends."""

from __future__ import annotations

import threading
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from types import MappingProxyType

from headrace.connect.partition import SourceOffset, SourcePartition
from headrace.connect.task import Offsets
from headrace.kafka.sender import OffsetEntry
from headrace.offsets.index import OffsetIndex
from headrace.storage.protocols import (
    HistoryEntry,
    Intent,
    Phase,
    Retention,
    Status,
    StoredConnector,
    TaskCount,
)


class MemoryOffsetStore:
    """An :class:`~headrace.offsets.store.OffsetRecordStore`; keeps the bytes that Kafka would keep."""

    def __init__(self) -> None:
        self._index = OffsetIndex()
        self._pending: list[OffsetEntry] = []

    def refresh(self) -> None:
        """See everything committed before this call."""
        self._index.follow(self._pending)
        self._pending.clear()
        self._index.replayed(topic_partitions=1)

    def known(self, connector: str) -> Mapping[SourcePartition, SourceOffset]:
        """All offsets of *connector* as of the last ``refresh``; a snapshot that does not change."""
        return self._index.known(connector)

    def is_empty(self) -> bool:
        """Whether no connector has an offset, as of the last ``refresh``."""
        return self._index.is_empty()

    def differently_encoded(self, connector: str) -> Mapping[SourcePartition, SourceOffset]:
        """Those of ``known`` that are stored under other bytes than ours, alone or beside ours."""
        return self._index.differently_encoded(connector)

    def entries_for(self, connector: str, offsets: Offsets) -> list[OffsetEntry]:
        """The records that ``put`` would write, as of the last ``refresh``."""
        return self._index.entries_for(connector, offsets)

    def put(self, connector: str, offsets: Offsets) -> None:
        """Commit *offsets* atomically; ``None`` removes."""
        self.written(self._index.entries_for(connector, offsets))

    def written(self, entries: Sequence[OffsetEntry]) -> None:
        """Take in records that another writer has made."""
        self._pending += entries

    def close(self) -> None:
        """Nothing to release."""


class MemoryConfigStore:
    """A :class:`~headrace.storage.protocols.ConfigStore`."""

    def __init__(self) -> None:
        self._connectors: dict[str, StoredConnector] = {}
        self._counts: dict[str, TaskCount] = {}
        self._tasks: dict[str, Sequence[Mapping[str, str]]] = {}
        self._deletions = Counter[str]()

    def connectors(self) -> Mapping[str, StoredConnector]:
        """Every stored connector by name."""
        return MappingProxyType(dict(self._connectors))

    def connector(self, name: str) -> StoredConnector | None:
        """The stored connector of that name."""
        return self._connectors.get(name)

    def put_connector(self, connector: StoredConnector) -> None:
        """Store or replace a connector."""
        self._connectors[connector.name] = connector

    def put_target_state(self, name: str, target_state: str) -> None:
        """Change the target state alone."""
        stored = self._connectors.get(name)
        if stored is not None:
            self._connectors[name] = replace(stored, target_state=target_state)

    def delete_connector(self, name: str) -> None:
        """Forget a connector's configuration and tasks; its offsets and task count stay."""
        self._connectors.pop(name, None)
        self._tasks.pop(name, None)
        self._deletions[name] += 1

    def deletions(self, name: str) -> int:
        """How often connectors of that name were deleted; for the history of their offsets."""
        return self._deletions[name]

    def task_configs(self, connector: str) -> Sequence[Mapping[str, str]]:
        """What was last stored by ``put_task_configs``."""
        return self._tasks.get(connector, ())

    def put_task_configs(self, connector: str, configs: Sequence[Mapping[str, str]]) -> None:
        """Store a connector's tasks, in place of those that it had."""
        self._tasks[connector] = [dict(each) for each in configs]

    def task_count(self, connector: str) -> TaskCount | None:
        """What was last stored by ``put_task_count``."""
        return self._counts.get(connector)

    def put_task_count(self, connector: str, count: TaskCount) -> None:
        """Store the slot count of a generation."""
        self._counts[connector] = count


class MemorySettingStore:
    """A :class:`~headrace.storage.protocols.SettingStore`."""

    def __init__(self) -> None:
        self._settings: dict[str, str] = {}

    def setting(self, key: str) -> str | None:
        """A fact about this worker."""
        return self._settings.get(key)

    def put_setting(self, key: str, value: str) -> None:
        """Store a fact about this worker."""
        self._settings[key] = value


class MemoryStatusStore:
    """A :class:`~headrace.storage.protocols.StatusStore`."""

    def __init__(self) -> None:
        self._statuses: dict[str, dict[int | None, Status]] = defaultdict(dict)

    def put(self, connector: str, task: int | None, status: Status) -> None:
        """Store a status."""
        self._statuses[connector][task] = status

    def statuses(self, connector: str) -> Mapping[int | None, Status]:
        """The connector's own status under ``None``, and those of its tasks."""
        return MappingProxyType(dict(self._statuses.get(connector, {})))

    def connectors(self) -> Sequence[str]:
        """The names that have any status, sorted."""
        return sorted(name for name, found in self._statuses.items() if found)

    def forget(self, connector: str, *, from_task: int | None = None) -> None:
        """Remove all statuses of *connector*, or those of its tasks from number *from_task* on."""
        kept = {
            task: status
            for task, status in self._statuses.pop(connector, {}).items()
            if from_task is not None and (task is None or task < from_task)
        }
        if kept:
            self._statuses[connector] = kept


class MemoryTopicStore:
    """A :class:`~headrace.storage.protocols.TopicStore`."""

    def __init__(self) -> None:
        self._topics: dict[str, set[str]] = defaultdict(set)

    def topics(self, connector: str) -> Sequence[str]:
        """The topics, sorted."""
        return sorted(self._topics.get(connector, ()))

    def put(self, connector: str, topics: Sequence[str]) -> None:
        """Add *topics*."""
        self._topics[connector].update(topics)

    def forget(self, connector: str) -> None:
        """Remove all of them."""
        self._topics.pop(connector, None)


class MemoryChangeStore:
    """A :class:`~headrace.storage.protocols.ChangeStore` beside *offsets* and *configs*."""

    def __init__(self, offsets: MemoryOffsetStore, configs: MemoryConfigStore) -> None:
        self._offsets = offsets
        self._configs = configs
        # Guards the mappings and the numbering.
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
        """The open changes, the oldest first."""
        with self._lock:
            return list(self._intents.values())

    def begin(self, intent: Intent, keep: Retention) -> Intent:
        """Store *intent* and its entry, which gets its number, and delete entries that *keep* excludes."""
        with self._lock:
            self._last += 1
            entry = replace(intent.entry, id=self._last)
            self._entries[entry.id] = entry
            self._deletions[entry.id] = self._configs.deletions(entry.connector)
            begun = self._intents[entry.id] = replace(intent, entry=entry)
            self._forget(entry, keep)
            return begun

    def move(self, intent: Intent, phase: Phase) -> Intent:
        """Store the intent's new phase."""
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
        oldest = newest.at_ms - keep.max_age // timedelta(milliseconds=1)
        of_connector = [
            number for number, each in self._entries.items() if each.connector == newest.connector
        ]
        surplus = set(of_connector[: -keep.entries])
        for number, each in list(self._entries.items()):
            if number not in self._intents and (number in surplus or each.at_ms < oldest):
                del self._entries[number]
                del self._deletions[number]
