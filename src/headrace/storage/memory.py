"""All three stores in memory, for tests and trials: gone when the process ends."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from types import MappingProxyType

from headrace.connect.partition import SourceOffset, SourcePartition
from headrace.connect.task import Offsets
from headrace.kafka.sender import OffsetEntry
from headrace.storage.offset_index import LogPosition, OffsetIndex
from headrace.storage.protocols import Status, StoredConnector, TaskCount


class MemoryOffsetStore:
    """An :class:`~headrace.storage.protocols.OffsetStore`; keeps the bytes that Kafka would keep."""

    def __init__(self) -> None:
        self._index = OffsetIndex()
        self._pending: list[tuple[bytes, bytes | None]] = []
        self._written = 0

    def refresh(self) -> None:
        """See everything committed before this call."""
        for key, value in self._pending:
            self._written += 1
            self._index.apply(
                key, value, LogPosition(partition=0, offset=self._written, timestamp=0)
            )
        self._pending.clear()
        self._index.replayed(topic_partitions=1)

    def known(self, connector: str) -> Mapping[SourcePartition, SourceOffset]:
        """All offsets of *connector* as of the last ``refresh``; a snapshot that does not change."""
        return self._index.known(connector)

    def foreign(self, connector: str) -> Mapping[SourcePartition, SourceOffset]:
        """Those of ``known`` that are stored under other bytes than ours, alone or beside ours."""
        return self._index.foreign(connector)

    def entries_for(self, connector: str, offsets: Offsets) -> list[OffsetEntry]:
        """The records that ``put`` would write, as of the last ``refresh``."""
        return self._index.entries_for(connector, offsets)

    def put(self, connector: str, offsets: Offsets) -> None:
        """Commit *offsets* atomically; ``None`` removes."""
        self._pending += self._index.entries_for(connector, offsets)

    def close(self) -> None:
        """Nothing to release."""


class MemoryConfigStore:
    """A :class:`~headrace.storage.protocols.ConfigStore`."""

    def __init__(self) -> None:
        self._connectors: dict[str, StoredConnector] = {}
        self._counts: dict[str, TaskCount] = {}
        self._settings: dict[str, str] = {}

    def connectors(self) -> Mapping[str, StoredConnector]:
        """Every stored connector by name."""
        return MappingProxyType(dict(self._connectors))

    def put_connector(self, connector: StoredConnector) -> None:
        """Store or replace a connector."""
        self._connectors[connector.name] = connector

    def delete_connector(self, name: str) -> None:
        """Forget a connector's configuration; its offsets and task count stay."""
        self._connectors.pop(name, None)

    def task_count(self, connector: str) -> TaskCount | None:
        """What was last stored by ``put_task_count``."""
        return self._counts.get(connector)

    def put_task_count(self, connector: str, count: TaskCount) -> None:
        """Store the slot count of a generation."""
        self._counts[connector] = count

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

    def forget(self, connector: str) -> None:
        """Remove all statuses of *connector*."""
        self._statuses.pop(connector, None)
