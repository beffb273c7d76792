"""A native source that is polled: nothing twice and nothing lost, wherever it ends and whatever comes late."""

from __future__ import annotations

import threading
import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping

import pytest

from headrace.connect.connector import SourceConnector
from headrace.connect.errors import ConfigError, RetriableError, TaskFailedError
from headrace.connect.partition import SourceOffset, SourcePartition
from headrace.sources import (
    Context,
    NativeItem,
    SourceConfig,
)
from headrace.sources import task as native_task
from headrace.testing.task_runs import LocalContext, LocalRun, StoredOffsets, batches_of
from sources.shelf import (
    KINDS,
    PROPS,
    Book,
    LouderConnector,
    Shelf,
    ShelfConnector,
    ShelfSource,
    ShelfTask,
    played,
    run,
)


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


class SlowTask(ShelfTask):
    """Its listing goes on when it may."""

    def __init__(self) -> None:
        self.may_list = threading.Event()

    def source(self, config: SourceConfig) -> ShelfSource:
        """One that waits before it lists."""
        may_list = self.may_list

        class Slow(ShelfSource):
            def items(self, start_from: str | None) -> Iterator[Book]:
                assert may_list.wait(30)
                return super().items(start_from)

        return Slow()


def test_a_task_is_idle_only_when_a_listing_has_shown_nothing_new(
    shelf: Shelf, monkeypatch: pytest.MonkeyPatch
):
    """A run that ends when there is nothing would leave out all that a slow listing finds."""
    monkeypatch.setattr(native_task, "_POLL_SECONDS", 0.01)
    shelf.objects = {"a": b"1\n"}
    task = SlowTask()
    task.initialize(LocalContext(offsets=StoredOffsets({})))
    task.start(PROPS)

    assert ((), False) == (task.poll(), task.is_idle())
    task.may_list.set()
    found = list[object]()
    while (polled := task.poll()) is not None:
        found += [each.values.to_pylist() for each in batches_of(polled)]
        assert not task.is_idle()
    idle = task.is_idle()
    task.stop()

    assert ([["1"]], True) == (found, idle)


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
    """D10: with its own traceback behind the method's name, not that a thread has died."""
    task = BrokenTask()
    task.initialize(LocalContext(offsets=StoredOffsets({})))
    task.start(PROPS)
    with pytest.raises(TaskFailedError, match="ZeroDivisionError: a mistake") as caught:
        task.poll()
    task.stop()

    cause = caught.value.__cause__
    assert cause is not None
    assert "items" in [frame.name for frame in traceback.extract_tb(cause.__traceback__)]


def test_nothing_tells_the_topic(shelf: Shelf):
    """The task fails with the object's name and what to do, not with a dead thread."""
    shelf.objects = {"a": b"1\n"}

    with pytest.raises(
        TaskFailedError, match=r"a: Nothing tells the topic of its records\. Set topic\."
    ):
        LocalRun(ShelfConnector(), {"extractor.class": "lines"}, {}).until_idle()


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


@pytest.mark.parametrize("size", ["0", "1", "1000"])
def test_a_single_object_is_sent_once_by_a_running_task(shelf: Shelf, size: str):
    """D1, D2: however often it is listed, while the task's view of the store is as old as itself."""
    shelf.objects = {"a": b"1\n"}

    loop = played(ShelfTask(), {**PROPS, "ring.buffer.size": size}, idles=3)

    assert ["1"] == loop.values()
    assert len(shelf.listed_from) > 3


def test_the_end_of_an_object_without_records_is_a_transaction_of_offsets_only(shelf: Shelf):
    """D8: nothing but the entry is written."""
    shelf.objects = {"a": b""}
    stored = dict[SourcePartition, SourceOffset]()

    loop = played(ShelfTask(), {**PROPS, "ring.buffer.size": "0"}, stored=stored)

    assert ([], 1) == (loop.sender.committed, loop.sender.commits)
    assert [True] == [offset["done"] for offset in stored.values()]


def test_the_end_of_an_object_is_no_poll_without_records(shelf: Shelf):
    """The task loop waits after such a poll, and ends a run that is to end when there is nothing more."""
    shelf.objects = {f"{number:02}": b"" if number % 3 else b"x\n" for number in range(30)}
    task = ShelfTask()
    task.initialize(LocalContext(offsets=StoredOffsets({})))
    task.start(PROPS)

    counts = list[int]()
    while (polled := task.poll()) is not None:
        counts += [len(each) for each in batches_of(polled)] or [0]
    task.stop()

    assert [1] * 10 == counts
