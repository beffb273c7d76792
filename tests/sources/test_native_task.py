"""A native source that is polled: nothing twice and nothing lost, wherever it ends and whatever comes late."""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import pytest

from headrace.connect.connector import SourceConnector
from headrace.connect.errors import ConfigError, RetriableError, TaskFailedError
from headrace.connect.partition import SourceOffset, SourcePartition
from headrace.sources import (
    Context,
    EvolvingRecord,
    NativeConnector,
    NativeItem,
    NativeSource,
    NativeSourceTask,
    PlannedNativeConnector,
    SourceConfig,
    TextKeys,
)
from headrace.testing.task_runs import (
    LocalContext,
    LocalRun,
    Stored,
    StoredOffsets,
    batches_of,
)


@dataclass
class Shelf:
    """Objects by name; *broken* makes the next opening of an object fail after so many bytes."""

    objects: dict[str, bytes] = field(default_factory=dict[str, bytes])
    broken: dict[str, int] = field(default_factory=dict[str, int])
    opened: list[str] = field(default_factory=list[str])
    listed_from: list[str | None] = field(default_factory=list[str | None])
    streams: list[io.BytesIO] = field(default_factory=list[io.BytesIO])


SHELF = Shelf()


@pytest.fixture(autouse=True)
def shelf() -> Shelf:
    """An empty shelf, which the connector reads."""
    SHELF.__init__()
    return SHELF


class Breaking(io.BytesIO):
    """A stream whose connection is cut behind *after* bytes."""

    def __init__(self, content: bytes, after: int) -> None:
        super().__init__(content)
        self._after = after

    def readinto(self, target: object) -> int:
        """Reads until the connection is cut."""
        view = memoryview(target)[: max(0, self._after - self.tell())]  # pyright: ignore[reportArgumentType]
        if not view:
            raise ConnectionResetError("cut")
        return super().readinto(view)


class Book(NativeItem[str]):
    """One object of the shelf."""

    def __init__(self, name: str) -> None:
        self._name = name

    def context(self) -> Context[str]:
        """Its name is its key."""
        return Context(native_key=self._name)

    def open(self) -> io.BytesIO:
        """Its content, once with a cut."""
        SHELF.opened.append(self._name)
        content = SHELF.objects[self._name]
        after = SHELF.broken.pop(self._name, None)
        SHELF.streams.append(io.BytesIO(content) if after is None else Breaking(content, after))
        return SHELF.streams[-1]


class ShelfSource(NativeSource[str]):
    """Lists the shelf."""

    name = "shelf"
    item_class = Book

    def items(self, start_from: str | None) -> Iterator[Book]:
        """By name."""
        SHELF.listed_from.append(start_from)
        return iter([Book(name) for name in sorted(SHELF.objects) if name >= (start_from or "")])

    def item(self, native_key: str) -> Book:
        """By its name, wherever it was listed."""
        return Book(native_key)

    def key_codec(self) -> TextKeys:
        """Names are text."""
        return TextKeys()


class ShelfTask(NativeSourceTask):
    """Reads the shelf."""

    def source(self, config: SourceConfig) -> ShelfSource:
        """The one shelf there is."""
        return ShelfSource()


class ShelfConnector(NativeConnector):
    """The shelf as a connector."""

    config_class = SourceConfig
    task_class = ShelfTask
    source_class = ShelfSource


class PlannedShelfConnector(PlannedNativeConnector):
    """The shelf, listed on the driver."""

    config_class = SourceConfig
    task_class = ShelfTask
    source_class = ShelfSource


KINDS = [ShelfConnector, PlannedShelfConnector]
PROPS = {"topic": "books", "extractor.class": "lines", "max.poll.records": "2"}


def run(
    stored: Stored,
    stop_after: int | None = None,
    *,
    kind: Callable[[], SourceConnector] = ShelfConnector,
    slots: int = 1,
    **more: str,
) -> list[object]:
    """The values that a run delivers, which ends after so many records as if killed."""
    props = {**PROPS, **{key.replace("_", "."): value for key, value in more.items()}}
    made = LocalRun(kind(), props, stored, slots=slots, stop_after=stop_after)
    return [each.value for each in made.until_idle()]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("size", ["0", "1", "2", "1000"])
@pytest.mark.parametrize("stop_after", range(1, 8))
def test_each_record_comes_once_wherever_it_is_killed(
    shelf: Shelf, kind: Callable[[], SourceConnector], size: str, stop_after: int
):
    """D1, D2, D3: whatever the look-back is, also 0, and with a single object."""
    shelf.objects = {"a": b"1\n2\n3\n", "b": b"", "c": b"4\n", "d": b"5\n6\n7\n"}
    stored = dict[SourcePartition, SourceOffset]()

    first = run(stored, stop_after, ring_buffer_size=size, kind=kind, slots=2)
    rest = run(stored, ring_buffer_size=size, kind=kind, slots=2)
    again = run(stored, ring_buffer_size=size, kind=kind, slots=2)

    assert Counter(str(number) for number in range(1, 8)) == Counter(map(str, first + rest))
    assert [] == again


def test_a_late_object_before_the_newest_is_found(shelf: Shelf):
    """D4: within the look-back, across a restart, and only from its key on is listed."""
    shelf.objects = {name: name.encode() + b"\n" for name in "bdfh"}
    stored = dict[SourcePartition, SourceOffset]()
    assert ["b", "d", "f", "h"] == run(stored, ring_buffer_size="2")

    shelf.objects["g"] = b"late\n"

    shelf.listed_from.clear()
    assert ["late"] == run(stored, ring_buffer_size="2")
    assert "f" == shelf.listed_from[0]


@pytest.mark.parametrize("kind", KINDS)
def test_an_object_without_records_is_done(shelf: Shelf, kind: Callable[[], SourceConnector]):
    """D8: it is opened once and never again, not after a restart either."""
    shelf.objects = {"a": b""}
    stored = dict[SourcePartition, SourceOffset]()

    run(stored, kind=kind)
    run(stored, kind=kind)

    assert ["a"] == shelf.opened


def test_a_cut_connection_is_opened_again_behind_what_was_read(shelf: Shelf):
    """A failing source is told, tried again, and never looks like the end of an object."""
    shelf.objects = {"a": b"1\n2\n3\n4\n"}
    shelf.broken["a"] = 5
    stored = dict[SourcePartition, SourceOffset]()
    made = LocalRun(ShelfConnector(), PROPS, stored)

    with pytest.raises(RetriableError, match="a cannot be read now: cut"):
        made.until_idle()

    delivered = [each.value for each in made.delivered]
    assert ["1", "2", "3", "4"] == delivered + run(stored)


class CountingOffsets(StoredOffsets):
    """Counts the exchanges with the store, and what was asked."""

    def __init__(self) -> None:
        super().__init__({})
        self.asked = list[int]()

    def offsets(
        self, partitions: Iterable[SourcePartition]
    ) -> Mapping[SourcePartition, SourceOffset | None]:
        """See :class:`~headrace.connect.partition.OffsetReader`."""
        asked = list(partitions)
        self.asked.append(len(asked))
        return super().offsets(asked)


def test_a_task_asks_only_for_its_own_objects_and_all_at_once(shelf: Shelf):
    """D7: one exchange with the store for a listing, and none for what was read before."""
    shelf.objects = {f"{number:02}": b"x\n" for number in range(30)}
    offsets = CountingOffsets()
    task = ShelfTask()
    task.initialize(LocalContext(offsets=offsets))
    task.start({**PROPS, "tasks.max": "3", "task.id": "1"})
    found = 0
    while (polled := task.poll()) is not None:
        found += len(batches_of(polled)[0]) if polled else 0
    task.stop()

    assert 0 < found < 30
    assert [found] == offsets.asked


def test_a_stop_in_the_middle_closes_the_stream(shelf: Shelf):
    """D9: whatever is queued is dropped, and nothing stays open."""
    shelf.objects = {"a": b"line\n" * 10_000}
    task = ShelfTask()
    task.initialize(LocalContext(offsets=StoredOffsets({})))
    task.start(PROPS)
    assert task.poll()
    task.stop()

    assert [True] == [stream.closed for stream in shelf.streams]


class Broken(ShelfSource):
    """Its listing is a mistake of its author."""

    def items(self, start_from: str | None) -> Iterator[Book]:
        """Fails."""
        raise ZeroDivisionError("a mistake")


class BrokenTask(ShelfTask):
    """Reads it."""

    def source(self, config: SourceConfig) -> Broken:
        """The broken one."""
        return Broken()


def test_what_ends_the_reading_thread_is_the_reason_of_the_task(shelf: Shelf):
    """D10: with its own traceback, not that a thread has died."""
    task = BrokenTask()
    task.initialize(LocalContext(offsets=StoredOffsets({})))
    task.start(PROPS)
    with pytest.raises(ZeroDivisionError, match="a mistake") as caught:
        task.poll()
    task.stop()

    assert "items" in [frame.name for frame in caught.traceback]


def test_nothing_tells_the_topic(shelf: Shelf):
    """The task fails with the object's name and what to do, not with a dead thread."""
    shelf.objects = {"a": b"1\n"}

    with pytest.raises(
        TaskFailedError, match=r"a: Nothing tells the topic of its records\. Set topic\."
    ):
        LocalRun(ShelfConnector(), {"extractor.class": "lines"}, {}).until_idle()


class Louder(ShelfTask):
    """Changes each record."""

    def last_evolution(self, record: EvolvingRecord) -> EvolvingRecord:
        """An exclamation mark, a key, and a property of the entry."""
        record.value = f"{record.value}!"
        record.key = record.context.native_key
        record.entry.set("said", record.value)
        return record


class LouderConnector(ShelfConnector):
    """The shelf, louder."""

    task_class = Louder


def test_the_last_evolution_sees_each_record_once(shelf: Shelf):
    """It may change value, key and entry; what it sets in the entry is stored with its record."""
    shelf.objects = {"a": b"1\n2\n3\n"}
    stored = dict[SourcePartition, SourceOffset]()

    records = LocalRun(LouderConnector(), PROPS, stored).until_idle()

    assert [("a", "1!"), ("a", "2!"), ("a", "3!")] == [(each.key, each.value) for each in records]
    assert {"said": "3!", "recordCount": 3, "done": True}.items() <= stored[
        SourcePartition(key="a")
    ].items()


class Thing(NativeItem[str]):
    """No stream."""

    def context(self) -> Context[str]:
        """Always the same."""
        return Context(native_key="thing")


class ThingSource(ShelfSource):
    """Items that are no streams."""

    item_class = Thing


class ThingConnector(ShelfConnector):
    """An extractor of streams on items that are none."""

    source_class = ThingSource


def test_an_extractor_of_streams_on_items_that_are_none_is_a_mistake_of_the_configuration():
    """It is found before anything runs."""
    with pytest.raises(ConfigError, match="The items of shelf are no streams of bytes"):
        ThingConnector().start(PROPS)
