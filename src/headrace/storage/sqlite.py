"""All stores of a standalone worker in one SQLite file."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, replace
from datetime import timedelta
from pathlib import Path
from types import MappingProxyType
from typing import cast

from headrace.connect.partition import SourceOffset, SourcePartition
from headrace.connect.task import Offsets
from headrace.kafka.sender import OffsetEntry
from headrace.offsets.index import OffsetIndex
from headrace.storage.offsets_json import offsets_of_text, offsets_text
from headrace.storage.protocols import (
    HistoryEntry,
    Intent,
    Operation,
    Phase,
    Retention,
    Status,
    StoredConnector,
    TaskCount,
)
from headrace.storage.sqlite_file import SELECT_OFFSETS, SELECT_SETTING, SqliteFile, Statement

_ENTRY = "id, connector, operation, who, at_ms, before, after, done, undoes"
_CONNECTOR = "select name, config, target_state from connectors"
_PUT_CONNECTOR = "insert or replace into connectors values (?, ?, ?)"
# The newest entries of the connector are kept; an open change is kept, however old it is.
_FORGET = """
delete from changes where id not in (select change from intents) and (
    at_ms < ? or connector = ? and id not in (
        select id from changes where connector = ? order by id desc limit ?))
"""
# SQLite's keys are never equal to null, so the connector itself needs a number.
_CONNECTOR_ITSELF = -1


class SqliteOffsetStore:
    """An :class:`~headrace.offsets.store.OffsetRecordStore`; rows hold the bytes that Kafka would hold."""

    def __init__(self, file: SqliteFile) -> None:
        self._file = file
        self._index = OffsetIndex()
        self._unseen: list[OffsetEntry] | None = None

    def refresh(self) -> None:
        """See everything committed before this call."""
        # The file has one writer, this process: after the first time only its own writes are new.
        self._index.follow(self._stored() if self._unseen is None else self._unseen)
        self._unseen = []
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
        """Commit *offsets* atomically; ``None`` removes. Durable on return."""
        if self._unseen is None:
            self.refresh()
        entries = self._index.entries_for(connector, offsets)
        self._file.write(*(offset_statement(key, value) for key, value in entries))
        self.written(entries)

    def written(self, entries: Sequence[OffsetEntry]) -> None:
        """Note records that have been written to the file; also called by its other writers."""
        # Before the first refresh there is nothing to add to: the whole file will be read.
        if self._unseen is not None:
            self._unseen = [*self._unseen, *entries]

    def close(self) -> None:
        """The file belongs to the storage, which closes it."""

    def _stored(self) -> list[OffsetEntry]:
        return cast("list[OffsetEntry]", self._file.rows(SELECT_OFFSETS))


def offset_statement(key: bytes, value: bytes | None) -> Statement:
    """The statement that stores a record of an offsets topic in the file, or removes it for a tombstone."""
    if value is None:
        return "delete from offsets where key = ?", (key,)
    return "insert or replace into offsets values (?, ?)", (key, value)


class SqliteTopicStore:
    """A :class:`~headrace.storage.protocols.TopicStore`."""

    def __init__(self, file: SqliteFile) -> None:
        self._file = file

    def topics(self, connector: str) -> Sequence[str]:
        """The topics, sorted."""
        query = "select topic from topics where connector = ? order by topic"
        return [str(topic) for (topic,) in self._file.rows(query, (connector,))]

    def put(self, connector: str, topics: Sequence[str]) -> None:
        """Add *topics*; durable on return."""
        statement = "insert or ignore into topics values (?, ?)"
        self._file.write(*((statement, (connector, topic)) for topic in topics))

    def forget(self, connector: str) -> None:
        """Remove all of them."""
        self._file.write(("delete from topics where connector = ?", (connector,)))


class SqliteChangeStore:
    """A :class:`~headrace.storage.protocols.ChangeStore`; *offsets* are those in the same file."""

    def __init__(self, file: SqliteFile, offsets: SqliteOffsetStore) -> None:
        self._file = file
        self._offsets = offsets
        # Held from reading the last number until the next one is stored.
        self._numbering = threading.Lock()

    def entries(self, connector: str) -> Sequence[HistoryEntry]:
        """The changes of *connector*, the newest first."""
        query = f"select {_ENTRY}, of_deleted from changes where connector = ? order by id desc"  # noqa: S608 (a constant)
        return [_entry(row) for row in self._file.rows(query, (connector,))]

    def open_intents(self) -> Sequence[Intent]:
        """The open changes, the oldest first."""
        query = (
            f"select {_ENTRY}, of_deleted, phase, config, target_state "  # noqa: S608 (a constant)
            "from changes join intents on change = id order by id"
        )
        return [_intent(row) for row in self._file.rows(query)]

    def begin(self, intent: Intent, keep: Retention) -> Intent:
        """Store *intent* and its entry, which gets its number, and delete entries that *keep* excludes."""
        with self._numbering:
            entry = replace(intent.entry, id=self._last_number() + 1)
            numbered = replace(intent, entry=entry)
            oldest = entry.at_ms - keep.max_age // timedelta(milliseconds=1)
            self._file.write(
                (f"insert into changes ({_ENTRY}) values (?, ?, ?, ?, ?, ?, ?, 0, ?)", _row(entry)),  # noqa: S608 (a constant)
                ("insert into intents values (?, ?, ?, ?)", _intent_row(numbered)),
                (_FORGET, (oldest, entry.connector, entry.connector, keep.entries)),
            )
        return numbered

    def move(self, intent: Intent, phase: Phase) -> Intent:
        """Store the intent's new phase."""
        self._file.write(
            ("update intents set phase = ? where change = ?", (str(phase), intent.entry.id))
        )
        return replace(intent, phase=phase)

    def finish(self, intent: Intent, entries: Sequence[OffsetEntry] = ()) -> None:
        """In one transaction: mark the change done, store its connector, end the intent, store *entries*."""
        number = (intent.entry.id,)
        self._file.write(
            *(offset_statement(key, value) for key, value in entries),
            *_connector_statements(intent.stored),
            ("update changes set done = 1 where id = ?", number),
            ("delete from intents where change = ?", number),
        )
        self._offsets.written(entries)

    def abandon(self, intent: Intent) -> None:
        """End the intent; its entry stays as one that was not done."""
        self._file.write(("delete from intents where change = ?", (intent.entry.id,)))

    def _last_number(self) -> int:
        rows = self._file.rows("select seq from sqlite_sequence where name = 'changes'")
        return cast("int", rows[0][0]) if rows else 0


def _connector_statements(stored: StoredConnector | None) -> list[Statement]:
    if stored is None:
        return []
    return [_put_connector(stored)]


def _put_connector(connector: StoredConnector) -> Statement:
    row = (connector.name, json.dumps(dict(connector.config)), connector.target_state)
    return _PUT_CONNECTOR, row


def _row(entry: HistoryEntry) -> tuple[str | int | None, ...]:
    before, after = offsets_text(entry.before), offsets_text(entry.after)
    operation = str(entry.operation)
    return (
        entry.id,
        entry.connector,
        operation,
        entry.who,
        entry.at_ms,
        before,
        after,
        entry.undoes,
    )


def _intent_row(intent: Intent) -> tuple[str | int | None, ...]:
    stored = intent.stored
    if stored is None:
        return intent.entry.id, str(intent.phase), None, None
    return intent.entry.id, str(intent.phase), json.dumps(dict(stored.config)), stored.target_state


_EntryRow = tuple[int, str, str, str | None, int, str, str, int, int | None, int]
_IntentRow = tuple[
    int, str, str, str | None, int, str, str, int, int | None, int, str, str | None, str | None
]


def _entry(row: tuple[object, ...]) -> HistoryEntry:
    number, connector, operation, who, at_ms, before, after, done, undoes, of_deleted = cast(
        "_EntryRow", row
    )
    return HistoryEntry(
        id=number,
        connector=connector,
        operation=Operation(operation),
        who=who,
        at_ms=at_ms,
        before=offsets_of_text(before),
        after=offsets_of_text(after),
        done=bool(done),
        undoes=undoes,
        of_deleted=bool(of_deleted),
    )


def _intent(row: tuple[object, ...]) -> Intent:
    entry = _entry(row[:-3])
    *_, phase, config, target_state = cast("_IntentRow", row)
    stored = None
    if config is not None and target_state is not None:
        stored = StoredConnector(
            name=entry.connector, config=json.loads(config), target_state=target_state
        )
    return Intent(entry=entry, stored=stored, phase=Phase(phase))


class SqliteStorage:
    """The stores of one worker, in the file *path*; closing it closes all of them.

    See :class:`~headrace.storage.sqlite_file.SqliteFile` for what opening may raise.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = SqliteFile(path)
        self.offsets = SqliteOffsetStore(self._file)
        self.settings = SqliteSettingStore(self._file)
        self.configs = SqliteConfigStore(self._file)
        self.statuses = SqliteStatusStore(self._file)
        self.topics = SqliteTopicStore(self._file)
        self.changes = SqliteChangeStore(self._file, self.offsets)

    def together(self) -> AbstractContextManager[None]:
        """See :meth:`~headrace.storage.sqlite_file.SqliteFile.together`."""
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
        rows = self._file.rows(f"{_CONNECTOR} order by name")
        return MappingProxyType({str(row[0]): _stored(row) for row in rows})

    def connector(self, name: str) -> StoredConnector | None:
        """The stored connector of that name."""
        for row in self._file.rows(f"{_CONNECTOR} where name = ?", (name,)):
            return _stored(row)
        return None

    def put_connector(self, connector: StoredConnector) -> None:
        """Store or replace a connector."""
        self._file.write(_put_connector(connector))

    def put_target_state(self, name: str, target_state: str) -> None:
        """Change the target state alone."""
        self._file.write(
            ("update connectors set target_state = ? where name = ?", (target_state, name))
        )

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
        """Store a connector's tasks, in place of those that it had."""
        row = (connector, json.dumps([dict(each) for each in configs]))
        self._file.write(("insert or replace into task_configs values (?, ?)", row))

    def task_count(self, connector: str) -> TaskCount | None:
        """What was last stored by ``put_task_count``."""
        query = "select slots from task_counts where connector = ?"
        for (slots,) in self._file.rows(query, (connector,)):
            return TaskCount(slots=cast("int", slots))
        return None

    def put_task_count(self, connector: str, count: TaskCount) -> None:
        """Store the slot count of a generation, before its first slot starts."""
        # An older headrace that opens this file fences unless the last column says that it need not.
        row = (connector, count.slots)
        self._file.write(("insert or replace into task_counts values (?, ?, 0)", row))


class SqliteSettingStore:
    """A :class:`~headrace.storage.protocols.SettingStore`."""

    def __init__(self, file: SqliteFile) -> None:
        self._file = file

    def setting(self, key: str) -> str | None:
        """A fact about this worker, such as its identity."""
        for (value,) in self._file.rows(SELECT_SETTING, (key,)):
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
        """The names that have any status, sorted."""
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
