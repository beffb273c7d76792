"""The offset store as several threads share it."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Generator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager

import pytest

from headrace.connect.errors import RetriableError
from headrace.connect.partition import SourcePartition
from headrace.offsets.store import (
    LockedOffsetStore,
    OffsetSnapshot,
)
from headrace.storage.memory import MemoryOffsetStore
from waiting import until

FILE = SourcePartition(filename="f")


class StoreInAnOutage(MemoryOffsetStore):
    """Its reads are late, each as soon as the test lets it be, until the store is back."""

    def __init__(self) -> None:
        super().__init__()
        self.reads = 0
        self.gives_up = threading.Event()
        self.is_back = False

    def refresh(self) -> None:
        """Give up as soon as the test lets it, or read."""
        self.reads += 1
        if not self.is_back:
            assert self.gives_up.wait(30)
            raise RetriableError("The broker is away.", delay_seconds=3)
        super().refresh()


class Clock:
    """Moves on whenever it is looked at."""

    def __init__(self) -> None:
        self._ticks = itertools.count(1)
        self.looks = 0

    def __call__(self) -> float:
        """What it shows."""
        self.looks = next(self._ticks)
        return float(self.looks)


@contextmanager
def reading(
    store: LockedOffsetStore, clock: Clock, readers: int
) -> Generator[list[Future[OffsetSnapshot]]]:
    """*readers* threads, each of which has asked *store* for offsets."""
    with ThreadPoolExecutor(readers) as threads:
        asked = [threads.submit(store.current, "c") for _ in range(readers)]
        until(lambda: clock.looks == readers)
        yield asked


def test_readers_that_wait_for_a_late_read_fail_with_it() -> None:
    """An outage costs each of many readers the time of one read, and not of all that came before."""
    store, clock = StoreInAnOutage(), Clock()

    with reading(LockedOffsetStore(store, clock=clock), clock, readers=3) as asked:
        store.gives_up.set()
        told = [each.exception() for each in asked]

    assert ["The broker is away."] * 3 == list(map(str, told))
    assert [3] * 3 == [each.delay_seconds for each in told if isinstance(each, RetriableError)]
    assert 1 == store.reads


def test_a_read_after_a_late_one_refreshes_the_store() -> None:
    """A broker that has come back is never taken for one that is away."""
    store = StoreInAnOutage()
    store.gives_up.set()
    locked = LockedOffsetStore(store, clock=Clock())
    with pytest.raises(RetriableError):
        locked.current("c")

    store.is_back = True
    store.put("c", {FILE: {"position": 1}})

    assert {"position": 1} == locked.current("c").offset(FILE)
