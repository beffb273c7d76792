"""A worker that takes a standalone Java worker's place goes on where that one was."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from headrace.connect.connector import Plan
from headrace.connect.errors import ConfigError, ConnectorFencedError, RetriableError
from headrace.connect.partition import SourcePartition
from headrace.connect.task import Offsets
from headrace.offsets.java_import import import_java_offsets
from headrace.offsets.store import OffsetStore
from headrace.plugins import checked_worker
from headrace.runtime.services import RunSpec, Services
from headrace.storage.memory import MemoryOffsetStore, MemorySettingStore
from headrace.storage.sqlite import SqliteStorage
from headrace.worker import DataPlane
from headrace.worker.services import Opening, imported_offsets, opened_services
from runtime.desk import SPEC, Desk, FakeEngine

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


@pytest.fixture
def opened() -> Iterator[ExitStack]:
    """Closes what a test has opened."""
    with ExitStack() as opened:
        yield opened


class Importing:
    """A worker at its start, on *store*; *cluster* is the desk of another one with the same group.id."""

    def __init__(
        self, opened: ExitStack, store: MemoryOffsetStore | None = None, cluster: Desk | None = None
    ) -> None:
        self.desk = Desk(lambda *_: None, lambda _: Plan())
        self.settings = MemorySettingStore()
        opened.callback(self.desk.channel.close)
        if cluster is not None:
            self.desk.coordinator = cluster.coordinator
        if store is not None:
            self.desk.offsets = store

    def start(self, path: str) -> None:
        """Import the file."""
        self.import_with(path, self.desk.services())

    def import_with(self, path: str, services: Services) -> None:
        """Import the file with these *services*."""
        import_java_offsets(path, services, lambda name: replace(SPEC, name=name), self.settings)


def test_an_empty_store_gets_the_offsets_of_all_connectors(opened: ExitStack, tmp_path: Path):
    """As they were in the file."""
    store = MemoryOffsetStore()
    Importing(opened, store).start(str(java_file(tmp_path, {"c": 7, "d": 8})))

    assert (7, 8) == (position(store, "c"), position(store, "d"))


def test_what_was_taken_over_is_not_taken_again(opened: ExitStack, tmp_path: Path):
    """Offsets that were reset since stay so."""
    store = MemoryOffsetStore()
    worker, path = Importing(opened, store), str(java_file(tmp_path, {"c": 7}))
    worker.start(path)
    store.put("c", {FILE: None})
    worker.start(path)

    assert position(store, "c") is None


def test_a_store_with_offsets_is_left_alone(
    opened: ExitStack, tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    """It is told once, and holds when these offsets are reset later."""
    store = MemoryOffsetStore()
    store.put("other", {FILE: {"position": 1}})
    worker, path = Importing(opened, store), str(java_file(tmp_path, {"c": 7}))
    with caplog.at_level(logging.INFO):
        worker.start(path)
        store.put("other", {FILE: None})
        worker.start(path)

    assert position(store, "c") is None
    assert 1 == caplog.text.count("are not imported: this worker already has offsets")


def test_an_import_that_died_half_way_is_done_again(opened: ExitStack, tmp_path: Path):
    """The store is not empty then, and no connector is left behind."""
    store = Dying("d")
    worker, path = Importing(opened, store), str(java_file(tmp_path, {"c": 7, "d": 8}))
    with pytest.raises(RetriableError):
        worker.start(path)
    store.refused = None
    worker.start(path)

    assert (7, 8) == (position(store, "c"), position(store, "d"))


def test_what_was_delivered_since_an_import_died_is_not_set_back(opened: ExitStack, tmp_path: Path):
    """Another worker of the group has gone on; a connector that has all of its offsets stays with that worker."""
    store = Dying("d")
    worker, path = Importing(opened, store), str(java_file(tmp_path, {"c": 7, "d": 8}))
    with pytest.raises(RetriableError):
        worker.start(path)
    store.refused = None
    store.put("c", {FILE: {"position": 70}})
    worker.desk.coordinator.asked.clear()
    worker.start(path)

    assert (70, 8) == (position(store, "c"), position(store, "d"))
    assert "take g-c-driver" not in worker.desk.coordinator.asked


def test_a_stalled_import_writes_nothing_after_another_driver_has_taken_over(
    opened: ExitStack, tmp_path: Path
):
    """It found no offsets; the other worker has imported them, and delivered, before this one goes on."""
    store = MemoryOffsetStore()
    winner = Importing(opened, store)
    late = Importing(opened, store, winner.desk)
    path = str(java_file(tmp_path, {"c": 7}))
    services = late.desk.services()

    def stalls(spec: RunSpec, offsets: Offsets, still_ours: Callable[[], None]) -> None:
        winner.start(path)
        # What was imported is removed again, so that only the guard says who may write.
        store.put("c", {FILE: None})
        services.commit_offsets(spec, offsets, still_ours)

    with pytest.raises(ConnectorFencedError, match="taken over connector c"):
        late.import_with(path, replace(services, commit_offsets=stalls))
    assert position(store, "c") is None


def test_an_offset_that_appears_while_it_is_imported_stays(opened: ExitStack, tmp_path: Path):
    """A Java worker has no guard; partitions that still have no offset get theirs."""
    store, other = MemoryOffsetStore(), SourcePartition(filename="b")
    worker = Importing(opened, store)
    services = worker.desk.services()
    is_first = iter([True])

    def late(spec: RunSpec, offsets: Offsets, still_ours: Callable[[], None]) -> None:
        if next(is_first, False):
            store.put("c", {FILE: {"position": 70}, other: {"position": 1}})
        services.commit_offsets(spec, offsets, still_ours)

    path = str(java_file(tmp_path, {"c": 7, "d": 8}))
    worker.import_with(path, replace(services, commit_offsets=late))
    assert (70, 8) == (position(store, "c"), position(store, "d"))


def test_a_file_that_comes_later_is_found_then(opened: ExitStack, tmp_path: Path):
    """A missing file has no offsets, as in Kafka Connect."""
    store = MemoryOffsetStore()
    worker = Importing(opened, store)
    worker.start(str(tmp_path / "connect.offsets"))
    worker.start(str(java_file(tmp_path, {"c": 7})))

    assert 7 == position(store, "c")


def test_a_file_of_something_else_ends_the_start(opened: ExitStack, tmp_path: Path):
    """The error names the key and the file."""
    path = tmp_path / "other"
    path.write_bytes(b"PK")
    with pytest.raises(
        ConfigError, match=f"offset.storage.file.filename: {path} cannot be read: The"
    ):
        Importing(opened).start(str(path))


def test_a_workers_key_brings_the_offsets_into_its_state_file(opened: ExitStack, tmp_path: Path):
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
    opened.callback(storage.close)
    opening = Opening(
        config=config,
        group_id="g",
        worker_id="w",
        task_counts=storage.configs,
        statuses=storage.statuses,
        emit=lambda _: None,
        data_plane=DataPlane.of(FakeEngine(lambda *_: None)),
        close_later=opened.callback,
    )
    imported_offsets(opening, opened_services(opening, storage.offsets), storage.settings)
    assert 7 == position(storage.offsets, "c")
