"""The stores in one SQLite file keep the contracts of stores, across restarts and beside intruders."""

from __future__ import annotations

import fcntl
import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from headrace.connect.errors import ConfigError
from headrace.connect.partition import SourcePartition
from headrace.offsets.codec import encoded_key, encoded_value
from headrace.offsets.store import OffsetRecordStore
from headrace.storage.protocols import (
    ConfigStore,
    SettingStore,
    StatusStore,
    StoredConnector,
    TopicStore,
)
from headrace.storage.sqlite import SqliteStorage
from headrace.testing.storage_suites import (
    ConfigStoreSuite,
    OffsetRecordStoreSuite,
    SettingStoreSuite,
    StatusStoreSuite,
    TopicStoreSuite,
)

PARTITION = SourcePartition(filename="a")


@pytest.fixture
def sqlite_path(tmp_path: Path) -> Path:
    """Where the file will be; the name has spaces."""
    return tmp_path / "state of worker.db"


@pytest.fixture
def sqlite_storage(sqlite_path: Path) -> Iterator[SqliteStorage]:
    """A new storage, closed with the test."""
    storage = SqliteStorage(sqlite_path)
    yield storage
    storage.close()


class TestSqliteOffsets(OffsetRecordStoreSuite):
    """Offsets in SQLite."""

    @pytest.fixture
    def store(self, sqlite_storage: SqliteStorage) -> OffsetRecordStore:
        """An empty store."""
        return sqlite_storage.offsets


class TestSqliteConfigs(ConfigStoreSuite):
    """Configs in SQLite."""

    @pytest.fixture
    def store(self, sqlite_storage: SqliteStorage) -> ConfigStore:
        """An empty store."""
        return sqlite_storage.configs


class TestSqliteSettings(SettingStoreSuite):
    """Facts about a worker in SQLite."""

    @pytest.fixture
    def store(self, sqlite_storage: SqliteStorage) -> SettingStore:
        """An empty store."""
        return sqlite_storage.settings


class TestSqliteStatuses(StatusStoreSuite):
    """Statuses in SQLite."""

    @pytest.fixture
    def store(self, sqlite_storage: SqliteStorage) -> StatusStore:
        """An empty store."""
        return sqlite_storage.statuses


class TestSqliteTopics(TopicStoreSuite):
    """Topics in SQLite."""

    @pytest.fixture
    def store(self, sqlite_storage: SqliteStorage) -> TopicStore:
        """An empty store."""
        return sqlite_storage.topics


def _written(path: Path) -> None:
    """Make a state file that is kept: something is in it."""
    with closing(SqliteStorage(path)) as storage:
        storage.settings.put_setting("a", "b")


def test_a_new_file_in_which_nothing_was_written_is_removed(sqlite_path: Path) -> None:
    """With all that lies beside it; one that was there before stays, whatever is done to it."""
    SqliteStorage(sqlite_path).close()
    assert [] == list(sqlite_path.parent.iterdir())

    _written(sqlite_path)
    SqliteStorage(sqlite_path).close()
    assert sqlite_path.exists()


def test_a_lock_on_a_removed_file_does_not_count(sqlite_path: Path) -> None:
    """Whoever has opened the lock just before its removal takes the next one, as everybody else does."""
    first = SqliteStorage(sqlite_path)
    real_flock = fcntl.flock

    def late(file: int, how: int) -> None:
        # The lock file is open by now; its holder ends, and removes it.
        first.close()
        real_flock(file, how)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fcntl, "flock", late)
        second = SqliteStorage(sqlite_path)
    with closing(second), pytest.raises(ConfigError, match="is in use by the process"):
        SqliteStorage(sqlite_path)


def test_everything_survives_a_restart(sqlite_path: Path) -> None:
    """A second storage on the file sees what the first one stored."""
    first = SqliteStorage(sqlite_path)
    first.offsets.put("c", {PARTITION: {"position": 1}})
    first.configs.put_connector(StoredConnector(name="c", config={"a": "1"}))
    first.close()
    second = SqliteStorage(sqlite_path)
    second.offsets.refresh()

    assert {PARTITION: {"position": 1}} == second.offsets.known("c")
    assert {"a": "1"} == second.configs.connectors()["c"].config
    second.close()


def test_rows_hold_the_bytes_of_kafka(sqlite_storage: SqliteStorage, sqlite_path: Path) -> None:
    """Offsets can be moved to a topic byte by byte."""
    sqlite_storage.offsets.put("c", {PARTITION: {"position": 1}})

    rows = sqlite3.connect(sqlite_path).execute("select key, value from offsets").fetchall()

    assert [(encoded_key("c", PARTITION), encoded_value({"position": 1}))] == rows


def test_the_file_is_private(sqlite_storage: SqliteStorage, sqlite_path: Path) -> None:
    """Nobody else may read it or what SQLite puts beside it, because configurations hold passwords."""
    sqlite_storage.settings.put_setting("a", "b")

    modes = {file.name: file.stat().st_mode & 0o777 for file in sqlite_path.parent.iterdir()}

    assert set(modes.values()) == {0o600}
    assert len(modes) >= 3


def test_a_file_that_became_readable_is_made_private_again(sqlite_path: Path) -> None:
    """A copy made with an open mask does not stay open."""
    _written(sqlite_path)
    sqlite_path.chmod(0o644)
    SqliteStorage(sqlite_path).close()

    assert sqlite_path.stat().st_mode & 0o777 == 0o600


@pytest.mark.usefixtures("sqlite_storage")
def test_a_second_process_is_refused(sqlite_path: Path) -> None:
    """The refusal names the process that has the file."""
    code = f"from pathlib import Path; from headrace.storage.sqlite import SqliteStorage; SqliteStorage(Path({str(sqlite_path)!r}))"
    ran = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60
    )

    assert ran.returncode == 1
    assert f"is in use by the process {os.getpid()}." in ran.stderr


@pytest.mark.usefixtures("sqlite_storage")
def test_the_same_process_is_refused_too(sqlite_path: Path) -> None:
    """Two storages on one file would not see each other's writes."""
    with pytest.raises(ConfigError, match="is in use by the process"):
        SqliteStorage(sqlite_path)


def test_a_lock_ends_with_its_process(sqlite_path: Path) -> None:
    """A killed worker leaves nothing behind that must be cleaned up by hand."""
    code = (
        "import os, signal; from pathlib import Path; from headrace.storage.sqlite import SqliteStorage;"
        f"s = SqliteStorage(Path({str(sqlite_path)!r})); s.settings.put_setting('a', 'b');"
        "os.kill(os.getpid(), signal.SIGKILL)"
    )
    subprocess.run([sys.executable, "-c", code], check=False, timeout=60)
    storage = SqliteStorage(sqlite_path)

    assert storage.settings.setting("a") == "b"
    storage.close()


@pytest.mark.parametrize(
    "content", [b"not a database, and long enough to be looked at" * 100, b"x"]
)
def test_a_file_that_is_not_sqlite_is_refused(sqlite_path: Path, content: bytes) -> None:
    """The refusal says so, and the file is left as it was."""
    sqlite_path.write_bytes(content)

    with pytest.raises(ConfigError, match="is not a state file"):
        SqliteStorage(sqlite_path)

    assert content == sqlite_path.read_bytes()


def test_another_programs_database_is_refused(sqlite_path: Path) -> None:
    """Its tables are not touched."""
    with sqlite3.connect(sqlite_path) as other:
        other.execute("create table theirs (x)")
    other.close()

    with pytest.raises(ConfigError, match="another program's"):
        SqliteStorage(sqlite_path)


def test_a_newer_schema_is_refused(sqlite_path: Path) -> None:
    """An older headrace does not write what a newer one would not understand."""
    _written(sqlite_path)
    with sqlite3.connect(sqlite_path) as newer:
        newer.execute("pragma user_version=99")
    newer.close()

    with pytest.raises(ConfigError, match="newer version of headrace"):
        SqliteStorage(sqlite_path)


def test_a_damaged_file_is_refused(sqlite_path: Path) -> None:
    """Half a file is not read as if it were less."""
    storage = SqliteStorage(sqlite_path)
    for number in range(500):
        storage.settings.put_setting(f"key {number}", "x" * 100)
    storage.close()
    content = sqlite_path.read_bytes()
    sqlite_path.write_bytes(content[: len(content) // 2])

    with pytest.raises(ConfigError, match="damaged"):
        SqliteStorage(sqlite_path)


def test_a_folder_that_is_not_there_is_reported(tmp_path: Path) -> None:
    """The sentence names the path."""
    with pytest.raises(ConfigError, match=r"missing/state\.db: cannot be used"):
        SqliteStorage(tmp_path / "missing" / "state.db")
