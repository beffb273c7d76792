"""A worker that takes a standalone Java worker's place goes on where that one was."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path

import pytest

from headrace.connect.errors import ConfigError, RetriableError
from headrace.connect.partition import SourcePartition
from headrace.connect.task import Offsets
from headrace.plugins import checked_worker
from headrace.storage.memory import MemoryConfigStore, MemoryOffsetStore
from headrace.storage.protocols import OffsetStore
from headrace.storage.sqlite import SqliteStorage
from headrace.worker.services import import_java_offsets, offset_store

FILE = SourcePartition(filename="a")
BYTES = "757200025B42ACF317F8060854E00200007870"
HEAD = (
    bytes.fromhex("ACED000573720011")
    + b"java.util.HashMap"
    + bytes.fromhex("0507DAC1C31660D103000246000A")
    + b"loadFactor"
    + bytes.fromhex("490009")
    + b"threshold"
    + bytes.fromhex("78703F4000000000000C770800000010")
)


def java_file(folder: Path, positions: Mapping[str, int]) -> Path:
    """A Java worker's file with a position of each connector."""
    content, kind = HEAD + len(positions).to_bytes(4), bytes.fromhex(BYTES)
    for connector, position in positions.items():
        for text in (f'["{connector}",{{"filename":"a"}}]', f'{{"position":{position}}}'):
            content += kind + len(text).to_bytes(4) + text.encode()
            kind = bytes.fromhex("7571007E0002")
    path = folder / "connect.offsets"
    path.write_bytes(content + b"x")
    return path


def position(store: OffsetStore, connector: str) -> object:
    """Where *connector* is in the file."""
    store.refresh()
    return store.known(connector).get(FILE, {}).get("position")


class Dying(MemoryOffsetStore):
    """Refuses one connector, as when the process is killed before it."""

    def __init__(self, refused: str) -> None:
        super().__init__()
        self.refused: str | None = refused

    def put(self, connector: str, offsets: Offsets) -> None:
        """As told."""
        if connector == self.refused:
            raise RetriableError("killed")
        super().put(connector, offsets)


def test_an_empty_store_gets_the_offsets_of_all_connectors(tmp_path: Path):
    """As they were in the file."""
    store, settings = MemoryOffsetStore(), MemoryConfigStore()
    import_java_offsets(str(java_file(tmp_path, {"c": 7, "d": 8})), store, settings)

    assert (7, 8) == (position(store, "c"), position(store, "d"))


def test_what_was_taken_over_is_not_taken_again(tmp_path: Path):
    """Offsets that were reset since stay so."""
    store, settings = MemoryOffsetStore(), MemoryConfigStore()
    path = str(java_file(tmp_path, {"c": 7}))
    import_java_offsets(path, store, settings)
    store.put("c", {FILE: None})
    import_java_offsets(path, store, settings)

    assert position(store, "c") is None


def test_a_store_with_offsets_is_left_alone(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    """It is told once, and holds when these offsets are reset later."""
    store, settings = MemoryOffsetStore(), MemoryConfigStore()
    store.put("other", {FILE: {"position": 1}})
    path = str(java_file(tmp_path, {"c": 7}))
    with caplog.at_level(logging.INFO):
        import_java_offsets(path, store, settings)
        store.put("other", {FILE: None})
        import_java_offsets(path, store, settings)

    assert position(store, "c") is None
    assert 1 == caplog.text.count("are not imported: this worker already has offsets")


def test_an_import_that_died_half_way_is_done_again(tmp_path: Path):
    """The store is not empty then, and no connector is left behind."""
    store, settings = Dying("d"), MemoryConfigStore()
    path = str(java_file(tmp_path, {"c": 7, "d": 8}))
    with pytest.raises(RetriableError):
        import_java_offsets(path, store, settings)
    store.refused = None
    import_java_offsets(path, store, settings)

    assert (7, 8) == (position(store, "c"), position(store, "d"))


def test_a_file_that_comes_later_is_found_then(tmp_path: Path):
    """A missing file has no offsets, as in Kafka Connect."""
    store, settings = MemoryOffsetStore(), MemoryConfigStore()
    import_java_offsets(str(tmp_path / "connect.offsets"), store, settings)
    import_java_offsets(str(java_file(tmp_path, {"c": 7})), store, settings)

    assert 7 == position(store, "c")


def test_a_file_of_something_else_ends_the_start(tmp_path: Path):
    """The error names the key and the file."""
    path = tmp_path / "other"
    path.write_bytes(b"PK")
    with pytest.raises(
        ConfigError, match=f"offset.storage.file.filename: {path} cannot be read: The"
    ):
        import_java_offsets(str(path), MemoryOffsetStore(), MemoryConfigStore())


def test_a_workers_key_brings_the_offsets_into_its_state_file(tmp_path: Path):
    """With exactly-once off nothing else is asked of Kafka."""
    config = checked_worker(
        {
            "bootstrap.servers": "127.0.0.1:9",
            "key.converter": "string",
            "value.converter": "string",
            "exactly.once.source.support": "disabled",
            "offset.storage.file.filename": str(java_file(tmp_path, {"c": 7})),
        }
    )
    storage = SqliteStorage(tmp_path / "state.db")
    assert 7 == position(offset_store(config, "g", storage), "c")
    storage.close()
