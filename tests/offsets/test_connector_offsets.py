"""Offsets of a connector with a topic of its own: both stores as one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest

from headrace.connect.errors import RetriableError
from headrace.connect.partition import SourcePartition
from headrace.connect.task import Offsets
from headrace.kafka.sender import OffsetEntry
from headrace.offsets.group_codec import GroupChange
from headrace.offsets.secondary import ConnectorTopicOffsets, SecondaryOffsetWriter
from headrace.offsets.store import LockedOffsetStore
from headrace.storage.memory import MemoryOffsetStore

A, B = SourcePartition(file="a"), SourcePartition(file="b")


class Topic:
    """A topic of the connector's own, in memory."""

    def __init__(self) -> None:
        self.store = LockedOffsetStore(MemoryOffsetStore())
        self.is_there = True

    def existing(self) -> LockedOffsetStore | None:
        """The store, if it is there."""
        return self.store if self.is_there else None

    def ensured(self) -> LockedOffsetStore:
        """The store, there from now on."""
        self.is_there = True
        return self.store


class Both:
    """Both stores; *steps* is what is done to them, in order."""

    def __init__(self) -> None:
        self.worker = LockedOffsetStore(MemoryOffsetStore())
        self.topic = Topic()
        self.steps: list[tuple[str, Offsets]] = []
        self.fails = self.aborts = False
        self.copies = SecondaryOffsetWriter(self._copy, retry_seconds=0.01)
        self.offsets = ConnectorTopicOffsets(
            "c", self.topic, worker=self.worker, copies=self.copies
        )

    def _copy(self, connector: str, offsets: Offsets) -> None:
        if self.fails:
            raise RetriableError("away")
        self.steps.append(("worker", dict(offsets)))
        self.worker.put(connector, offsets)

    def commit_records(self, entries: Sequence[OffsetEntry]) -> None:
        """Commit in the connector's topic."""
        if self.aborts:
            raise RetriableError("aborted")
        self.steps.append(("own", {}))
        self.topic.store.put_entries(entries)

    def commit_group(self, change: GroupChange) -> None:
        """Nothing is in a group."""
        raise AssertionError(change)

    def known(self) -> Offsets:
        """What is read."""
        return dict(self.offsets.current().known())


@pytest.fixture
def both() -> Iterator[Both]:
    """Both stores."""
    both = Both()
    yield both
    both.fails = False
    both.copies.close()


def test_a_commit_goes_to_the_own_topic_and_then_to_the_worker_s(both: Both) -> None:
    """A copy that came first would stay when the commit is aborted."""
    both.offsets.commit({A: {"at": 1}}, both)

    assert both.offsets.settle(20)
    assert [("own", {}), ("worker", {A: {"at": 1}})] == both.steps


def test_a_removal_goes_to_the_worker_s_first(both: Both) -> None:
    """What is left there would count again when it is gone from the own topic."""
    both.offsets.commit({A: {"at": 1}, B: {"at": 1}}, both)
    assert both.offsets.settle(20)
    both.steps.clear()
    both.offsets.commit({A: None, B: {"at": 2}}, both)

    assert both.offsets.settle(20)
    assert [("worker", {A: None}), ("own", {}), ("worker", {B: {"at": 2}})] == both.steps
    assert {B: {"at": 2}} == both.known()


def test_a_removal_that_fails_in_the_worker_s_is_not_done_at_all(both: Both) -> None:
    """Nothing is half removed, and whoever asked hears of it."""
    both.offsets.commit({A: {"at": 1}}, both)
    assert both.offsets.settle(20)
    both.fails = True

    with pytest.raises(RetriableError):
        both.offsets.commit({A: None}, both)
    assert {A: {"at": 1}} == both.known()


def test_nothing_is_copied_of_a_commit_that_failed(both: Both) -> None:
    """Its records are read again."""
    both.aborts = True

    with pytest.raises(RetriableError):
        both.offsets.commit({A: {"at": 1}}, both)
    assert both.offsets.settle(20)
    assert {} == both.known()


def test_offsets_from_before_the_own_topic_count_until_there_are_own(both: Both) -> None:
    """A connector that gets a topic of its own goes on where it was, though the topic is not there yet."""
    both.worker.put("c", {A: {"at": 1}, B: {"at": 1}})
    both.topic.is_there = False
    before = both.known()
    both.offsets.put({B: {"at": 2}})

    assert {A: {"at": 1}, B: {"at": 1}} == before
    assert {A: {"at": 1}, B: {"at": 2}} == both.known()


def test_reading_does_not_make_the_topic(both: Both) -> None:
    """A look leaves no trace."""
    both.topic.is_there = False
    both.known()

    assert not both.topic.is_there


def test_what_was_committed_and_not_copied_is_caught_up(both: Both) -> None:
    """As after a kill between the two; what only the worker has stays as it is."""
    both.worker.put("c", {A: {"at": 1}, B: {"at": 1}})
    both.topic.store.put("c", {A: {"at": 2}})
    both.offsets.catch_up()

    assert both.offsets.settle(20)
    assert {A: {"at": 2}, B: {"at": 1}} == dict(both.worker.current("c").known())
    assert [("worker", {A: {"at": 2}})] == both.steps


def test_a_second_look_at_the_same_is_the_same(both: Both) -> None:
    """That is how an idle round sees that no one has committed."""
    both.worker.put("c", {A: {"at": 1}})
    both.topic.store.put("c", {B: {"at": 1}})

    assert both.offsets.current().known() is both.offsets.current().known()
