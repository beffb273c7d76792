"""Many writes of one moment become one transaction."""

from __future__ import annotations

from pathlib import Path

import pytest

from headrace.plugins import checked_worker
from headrace.storage.protocols import (
    Status,
    StoredConnector,
)
from headrace.storage.sqlite import SqliteStorage
from headrace.storage.sqlite_file import SqliteFile
from headrace.worker import serving

PAUSED = Status(state="PAUSED", worker_id="w")


def test_what_is_written_together_is_there_afterwards(tmp_path: Path):
    """And is seen by the writer before that."""
    path = tmp_path / "state.db"
    storage = SqliteStorage(path)
    with storage.together():
        storage.statuses.put("c", None, PAUSED)
        storage.settings.put_setting("key", "value")
        assert ["c"] == storage.statuses.connectors()
    storage.close()

    again = SqliteStorage(path)
    assert ({None: PAUSED}, "value") == (
        again.statuses.statuses("c"),
        again.settings.setting("key"),
    )
    again.close()


def _put_and_fail(storage: SqliteStorage) -> None:
    with storage.together():
        storage.statuses.put("c", None, PAUSED)
        raise LookupError


def test_a_block_that_raises_writes_nothing(tmp_path: Path):
    """Later writes are transactions of their own again."""
    storage = SqliteStorage(tmp_path / "state.db")
    with pytest.raises(LookupError):
        _put_and_fail(storage)
    assert [] == storage.statuses.connectors()

    storage.statuses.put("d", None, PAUSED)
    assert ["d"] == storage.statuses.connectors()
    storage.close()


def test_a_worker_loads_its_connectors_in_one_transaction(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Nothing is answered before that, and each transaction waits for the disk."""
    path = tmp_path / "state.db"
    storage = SqliteStorage(path)
    for number in range(20):
        name = f"c{number}"
        storage.configs.put_connector(StoredConnector(name=name, config={}, target_state="PAUSED"))
    storage.close()
    alone = list[bool]()
    write = SqliteFile.write

    def spied(self: SqliteFile, *statements: tuple[str, tuple[object, ...]]) -> None:
        alone.append(not self._is_together)  # pyright: ignore[reportPrivateUsage]
        write(self, *statements)

    config = checked_worker(
        {"bootstrap.servers": "127.0.0.1:9", "key.converter": "string", "value.converter": "string"}
    )
    with serving(config, state_file=path, emit=lambda _: None) as herder:
        monkeypatch.setattr(SqliteFile, "write", spied)
        herder.start()
        assert 20 == len(herder.connectors())
    assert len(alone) >= 20
    assert not any(alone)
