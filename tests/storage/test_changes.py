"""The stores of changes keep their contract; the file keeps them across restarts and from older versions."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from headrace.connect.errors import RetriableError
from headrace.connect.partition import SourcePartition
from headrace.offsets.codec import encoded_entries
from headrace.storage.memory import MemoryChangeStore, MemoryConfigStore, MemoryOffsetStore
from headrace.storage.protocols import (
    Retention,
    StoredConnector,
)
from headrace.storage.sqlite import SqliteStorage
from headrace.storage.sqlite_file import _SCHEMAS
from headrace.testing.change_suites import PARTITION, ChangeStorage, ChangeStoreSuite, intent


class TestMemoryChanges(ChangeStoreSuite):
    """Changes in memory."""

    @pytest.fixture
    def storage(self) -> ChangeStorage:
        """Empty stores."""
        offsets, configs = MemoryOffsetStore(), MemoryConfigStore()
        changes = MemoryChangeStore(offsets, configs)
        return ChangeStorage(changes=changes, offsets=offsets, configs=configs)


@pytest.fixture
def sqlite_storage(tmp_path: Path) -> Iterator[SqliteStorage]:
    """A new storage, closed with the test."""
    storage = SqliteStorage(tmp_path / "state.db")
    yield storage
    storage.close()


class TestSqliteChanges(ChangeStoreSuite):
    """Changes in SQLite."""

    @pytest.fixture
    def storage(self, sqlite_storage: SqliteStorage) -> ChangeStorage:
        """Empty stores in one file."""
        return ChangeStorage(
            changes=sqlite_storage.changes,
            offsets=sqlite_storage.offsets,
            configs=sqlite_storage.configs,
        )


def test_intents_survive_a_restart(tmp_path: Path) -> None:
    """A second storage on the file finds what the first one left unfinished, and numbers on."""
    first = SqliteStorage(tmp_path / "state.db")
    begun = first.changes.begin(intent(after={"position": 1}), Retention())
    first.close()
    second = SqliteStorage(tmp_path / "state.db")

    assert [begun] == list(second.changes.open_intents())
    assert second.changes.begin(intent(), Retention()).entry.id == begun.entry.id + 1
    second.close()


def test_a_change_is_finished_as_a_whole_or_not(
    sqlite_storage: SqliteStorage, tmp_path: Path
) -> None:
    """When the disk refuses the last statement, neither offsets nor configuration are stored."""
    storage = sqlite_storage
    begun = storage.changes.begin(intent(stored=StoredConnector(name="c", config={})), Retention())
    refusal = "create trigger refuse before delete on intents begin select raise(abort, 'no'); end"
    with sqlite3.connect(tmp_path / "state.db") as other:
        other.execute(refusal)
    other.close()

    with pytest.raises(RetriableError):
        storage.changes.finish(begun, encoded_entries("c", {PARTITION: {"position": 7}}))

    storage.offsets.refresh()
    assert storage.offsets.known("c") == {}
    assert storage.configs.connectors() == {}
    assert [False] == [each.done for each in storage.changes.entries("c")]


def test_a_file_of_the_first_version_opens(tmp_path: Path) -> None:
    """What it holds stays, and changes can be kept in it from now on."""
    path = tmp_path / "state.db"
    old = sqlite3.connect(path)
    old.executescript(f"begin; {_SCHEMAS[0]} pragma user_version=1; commit;")
    old.execute("insert into settings values ('group.id', 'g')")
    key, value = encoded_entries("c", {PARTITION: {"position": 1}})[0]
    old.execute("insert into offsets values (?, ?)", (key, value))
    old.commit()
    old.close()

    storage = SqliteStorage(path)
    storage.offsets.refresh()
    begun = storage.changes.begin(intent(), Retention())
    storage.changes.finish(begun)

    assert storage.settings.setting("group.id") == "g"
    assert {PARTITION: {"position": 1}} == storage.offsets.known("c")
    assert [begun.entry.id] == [each.id for each in storage.changes.entries("c")]
    storage.close()
    SqliteStorage(path).close()


def test_offsets_written_before_the_first_look_are_seen(sqlite_storage: SqliteStorage) -> None:
    """A change may be finished before anybody has read the offsets of the file."""
    begun = sqlite_storage.changes.begin(intent(), Retention())
    sqlite_storage.changes.finish(begun, encoded_entries("c", {PARTITION: {"position": 7}}))
    sqlite_storage.offsets.put("c", {SourcePartition(filename="b"): {"position": 1}})
    sqlite_storage.offsets.refresh()

    assert len(sqlite_storage.offsets.known("c")) == 2
