"""All three stores of a standalone worker in one SQLite file."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from types import MappingProxyType
from typing import cast

from headrace.connect.partition import SourceOffset, SourcePartition
from headrace.connect.task import Offsets
from headrace.kafka.sender import OffsetEntry
from headrace.storage.offset_index import LogPosition, OffsetIndex
from headrace.storage.protocols import Status, StoredConnector, TaskCount
from headrace.storage.sqlite_file import Parameters, SqliteFile

# SQLite's keys are never equal to null, so the connector itself needs a number.
_CONNECTOR_ITSELF = -1


class SqliteStorage:
    """The stores of one worker, in the file *path*; closing it closes all of them.

    See :class:`~headrace.storage.sqlite_file.SqliteFile` for what opening may raise.
    """

    def __init__(self, path: Path) -> None:
        self._file = SqliteFile(path)
        self.offsets = SqliteOffsetStore(self._file)
        self.configs = SqliteConfigStore(self._file)
        self.statuses = SqliteStatusStore(self._file)

    def close(self) -> None:
        """Close the file and let another process have it."""
        self._file.close()


class SqliteOffsetStore:
    """An :class:`~headrace.storage.protocols.OffsetStore`; rows hold the bytes that Kafka would hold."""

    def __init__(self, file: SqliteFile) -> None:
        self._file = file
        self._index = OffsetIndex()
        self._unseen: list[OffsetEntry] | None = None
        self._seen = 0

    def refresh(self) -> None:
        """See everything committed before this call."""
        # The file has one writer, this process: after the first time only its own writes are new.
        unseen = self._stored() if self._unseen is None else self._unseen
        for key, value in unseen:
            self._seen += 1
            self._index.apply(key, value, LogPosition(partition=0, offset=self._seen, timestamp=0))
        self._unseen = []
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
        """Commit *offsets* atomically; ``None`` removes. Durable on return."""
        if self._unseen is None:
            self.refresh()
        entries = self._index.entries_for(connector, offsets)
        self._file.write(*(_statement(key, value) for key, value in entries))
        self._unseen = [*(self._unseen or ()), *entries]

    def close(self) -> None:
        """The file belongs to the storage, which closes it."""

    def _stored(self) -> list[OffsetEntry]:
        rows = self._file.rows("select key, value from offsets order by rowid")
        return cast("list[OffsetEntry]", rows)


def _statement(key: bytes, value: bytes | None) -> tuple[str, Parameters]:
    if value is None:
        return "delete from offsets where key = ?", (key,)
    return "insert or replace into offsets values (?, ?)", (key, value)


class SqliteConfigStore:
    """A :class:`~headrace.storage.protocols.ConfigStore`."""

    def __init__(self, file: SqliteFile) -> None:
        self._file = file

    def connectors(self) -> Mapping[str, StoredConnector]:
        """Every stored connector by name."""
        rows = self._file.rows("select name, config, target_state from connectors order by name")
        stored = (
            StoredConnector(name=str(name), config=json.loads(str(config)), target_state=str(state))
            for name, config, state in rows
        )
        return MappingProxyType({one.name: one for one in stored})

    def put_connector(self, connector: StoredConnector) -> None:
        """Store or replace a connector."""
        row = (connector.name, json.dumps(dict(connector.config)), connector.target_state)
        self._file.write(("insert or replace into connectors values (?, ?, ?)", row))

    def delete_connector(self, name: str) -> None:
        """Forget a connector's configuration; its offsets and task count stay."""
        self._file.write(("delete from connectors where name = ?", (name,)))

    def task_count(self, connector: str) -> TaskCount | None:
        """What was last stored by ``put_task_count``."""
        query = "select slots, clean from task_counts where connector = ?"
        for slots, clean in self._file.rows(query, (connector,)):
            return TaskCount(slots=cast("int", slots), clean=bool(clean))
        return None

    def put_task_count(self, connector: str, count: TaskCount) -> None:
        """Store the slot count of a generation, before its first slot starts or after its clean end."""
        row = (connector, count.slots, int(count.clean))
        self._file.write(("insert or replace into task_counts values (?, ?, ?)", row))

    def setting(self, key: str) -> str | None:
        """A fact about this worker, such as its identity."""
        for (value,) in self._file.rows("select value from settings where key = ?", (key,)):
            return str(value)
        return None

    def put_setting(self, key: str, value: str) -> None:
        """Store a fact about this worker."""
        self._file.write(("insert or replace into settings values (?, ?)", (key, value)))


class SqliteStatusStore:
    """A :class:`~headrace.storage.protocols.StatusStore`."""

    def __init__(self, file: SqliteFile) -> None:
        self._file = file

    def put(self, connector: str, task: int | None, status: Status) -> None:
        """Store a status; durable on return."""
        number = _CONNECTOR_ITSELF if task is None else task
        row = (connector, number, json.dumps(asdict(status)))
        self._file.write(("insert or replace into statuses values (?, ?, ?)", row))

    def statuses(self, connector: str) -> Mapping[int | None, Status]:
        """The connector's own status under ``None``, and those of its tasks."""
        query = "select task, status from statuses where connector = ? order by task"
        rows = cast("list[tuple[int, str]]", self._file.rows(query, (connector,)))
        return MappingProxyType(
            {
                None if task == _CONNECTOR_ITSELF else task: Status(**json.loads(status))
                for task, status in rows
            }
        )

    def forget(self, connector: str) -> None:
        """Remove all statuses of *connector*."""
        self._file.write(("delete from statuses where connector = ?", (connector,)))
