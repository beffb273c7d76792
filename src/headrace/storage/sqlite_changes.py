"""Changes of offsets in the worker's SQLite file: the history, and what a kill left unfinished."""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from dataclasses import replace
from typing import cast

from headrace.kafka.sender import OffsetEntry
from headrace.storage.changes import HistoryEntry, Intent, Operation, Phase, Retention
from headrace.storage.offsets_text import offsets_of_text, offsets_text
from headrace.storage.protocols import StoredConnector
from headrace.storage.sqlite_file import SqliteFile, Statement
from headrace.storage.sqlite_offsets import SqliteOffsetStore, offset_statement

_ENTRY = "id, connector, operation, who, at_ms, before, after, done, undoes"
_STORE_CONNECTOR = "insert or replace into connectors values (?, ?, ?)"
# Kept ones are the newest of the connector; what is not over stays, however old it is.
_FORGET = """
delete from changes where id not in (select change from intents) and (
    at_ms < ? or connector = ? and id not in (
        select id from changes where connector = ? order by id desc limit ?))
"""


class SqliteChangeStore:
    """A :class:`~headrace.storage.changes.ChangeStore`; *offsets* are those in the same file."""

    def __init__(self, file: SqliteFile, offsets: SqliteOffsetStore) -> None:
        self._file = file
        self._offsets = offsets
        # Between looking for the last number and taking the next one.
        self._numbering = threading.Lock()

    def entries(self, connector: str) -> Sequence[HistoryEntry]:
        """The changes of *connector*, the newest first."""
        query = f"select {_ENTRY}, of_deleted from changes where connector = ? order by id desc"  # noqa: S608 (a constant)
        return [_entry(row) for row in self._file.rows(query, (connector,))]

    def open_intents(self) -> Sequence[Intent]:
        """Those that are not over, the oldest first."""
        query = (
            f"select {_ENTRY}, of_deleted, phase, config, target_state "  # noqa: S608 (a constant)
            "from changes join intents on change = id order by id"
        )
        return [_intent(row) for row in self._file.rows(query)]

    def begin(self, intent: Intent, keep: Retention) -> Intent:
        """Store *intent* and its entry, which gets its number, and forget what *keep* does not keep."""
        with self._numbering:
            entry = replace(intent.entry, id=self._last_number() + 1)
            numbered = replace(intent, entry=entry)
            oldest = keep.oldest_ms(entry.at_ms)
            self._file.write(
                (f"insert into changes ({_ENTRY}) values (?, ?, ?, ?, ?, ?, ?, 0, ?)", _row(entry)),  # noqa: S608 (a constant)
                ("insert into intents values (?, ?, ?, ?)", _intent_row(numbered)),
                (_FORGET, (oldest, entry.connector, entry.connector, keep.entries)),
            )
        return numbered

    def move(self, intent: Intent, phase: Phase) -> Intent:
        """Store what is to become of it."""
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
    row = (stored.name, json.dumps(dict(stored.config)), stored.target_state)
    return [(_STORE_CONNECTOR, row)]


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
