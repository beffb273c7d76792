"""All stores of a standalone worker in one SQLite file."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict
from pathlib import Path
from types import MappingProxyType
from typing import cast

from headrace.storage.protocols import Status, StoredConnector, TaskCount
from headrace.storage.sqlite_changes import SqliteChangeStore
from headrace.storage.sqlite_file import SqliteFile
from headrace.storage.sqlite_offsets import SqliteOffsetStore
from headrace.storage.sqlite_topics import SqliteTopicStore

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
        self.topics = SqliteTopicStore(self._file)
        self.changes = SqliteChangeStore(self._file, self.offsets)

    def together(self) -> AbstractContextManager[None]:
        """See :meth:`~headrace.storage.sqlite_file.SqliteFile.together`; for many writes of one moment."""
        return self._file.together()

    def close(self) -> None:
        """Close the file and let another process have it."""
        self._file.close()


class SqliteConfigStore:
    """A :class:`~headrace.storage.protocols.ConfigStore`."""

    def __init__(self, file: SqliteFile) -> None:
        self._file = file

    def connectors(self) -> Mapping[str, StoredConnector]:
        """Every stored connector by name."""
        rows = self._file.rows("select name, config, target_state from connectors order by name")
        return MappingProxyType({str(row[0]): _stored(row) for row in rows})

    def connector(self, name: str) -> StoredConnector | None:
        """The stored connector of that name."""
        query = "select name, config, target_state from connectors where name = ?"
        for row in self._file.rows(query, (name,)):
            return _stored(row)
        return None

    def put_connector(self, connector: StoredConnector) -> None:
        """Store or replace a connector."""
        row = (connector.name, json.dumps(dict(connector.config)), connector.target_state)
        self._file.write(("insert or replace into connectors values (?, ?, ?)", row))

    def delete_connector(self, name: str) -> None:
        """Forget a connector's configuration and tasks; its offsets and task count stay."""
        self._file.write(
            ("delete from connectors where name = ?", (name,)),
            ("delete from task_configs where connector = ?", (name,)),
            ("update changes set of_deleted = 1 where connector = ?", (name,)),
        )

    def task_configs(self, connector: str) -> Sequence[Mapping[str, str]]:
        """What was last stored by ``put_task_configs``."""
        query = "select configs from task_configs where connector = ?"
        for (configs,) in self._file.rows(query, (connector,)):
            return cast("list[dict[str, str]]", json.loads(str(configs)))
        return ()

    def put_task_configs(self, connector: str, configs: Sequence[Mapping[str, str]]) -> None:
        """Store which tasks a connector has, in place of those that it had."""
        row = (connector, json.dumps([dict(each) for each in configs]))
        self._file.write(("insert or replace into task_configs values (?, ?)", row))

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

    def connectors(self) -> Sequence[str]:
        """The names of which there is any status, sorted."""
        rows = self._file.rows("select distinct connector from statuses order by connector")
        return [str(name) for (name,) in rows]

    def forget(self, connector: str, *, from_task: int | None = None) -> None:
        """Remove all statuses of *connector*, or those of its tasks from number *from_task* on."""
        first = _CONNECTOR_ITSELF if from_task is None else from_task
        statement = "delete from statuses where connector = ? and task >= ?"
        self._file.write((statement, (connector, first)))


def _stored(row: tuple[object, ...]) -> StoredConnector:
    name, config, state = map(str, row)
    return StoredConnector(name=name, config=json.loads(config), target_state=state)
