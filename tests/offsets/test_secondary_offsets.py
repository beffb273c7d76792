"""Copies of connectors' own offsets in the worker's store."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from headrace.connect.errors import ConnectorFencedError, RetriableError, TaskFailedError
from headrace.connect.partition import SourcePartition
from headrace.connect.task import Offsets
from headrace.offsets.secondary import SecondaryOffsetWriter
from waiting import until

A, B = SourcePartition(file="a"), SourcePartition(file="b")


class Store:
    """Notes what is written; fails as often as the test says, and waits at its gate."""

    def __init__(self) -> None:
        self.written: list[tuple[str, Offsets]] = []
        self.failures = 0
        self.gate = threading.Event()
        self.gate.set()
        self.entered = threading.Event()

    def put(self, connector: str, offsets: Offsets) -> None:
        """Write, or fail."""
        self.entered.set()
        assert self.gate.wait(20)
        if self.failures:
            self.failures -= 1
            raise RetriableError("the broker is away.")
        self.written.append((connector, dict(offsets)))


@pytest.fixture
def store() -> Store:
    """The worker's store."""
    return Store()


@pytest.fixture
def copies(store: Store) -> Iterator[SecondaryOffsetWriter]:
    """What is tested; tries again at once."""
    copies = SecondaryOffsetWriter(store.put, retry_seconds=0.01)
    yield copies
    store.gate.set()
    copies.close()


def test_handing_over_a_copy_does_not_wait(store: Store, copies: SecondaryOffsetWriter) -> None:
    """A commit must not be as slow as the worker's store."""
    store.gate.clear()
    copies.later("c", {A: {"at": 1}})

    assert [] == store.written
    assert not copies.settle("c", 0.01)


def test_only_the_last_of_what_waits_is_written(
    store: Store, copies: SecondaryOffsetWriter
) -> None:
    """And in the order in which it was handed over."""
    store.gate.clear()
    copies.later("c", {A: {"at": 1}})
    assert store.entered.wait(20)
    for at in (2, 3, 4):
        copies.later("c", {A: {"at": at}})
    store.gate.set()

    assert copies.settle("c", 20)
    assert [("c", {A: {"at": 1}}), ("c", {A: {"at": 4}})] == store.written


def test_a_copy_that_failed_is_reported_and_tried_again(
    store: Store, copies: SecondaryOffsetWriter, caplog: pytest.LogCaptureFixture
) -> None:
    """Once for an outage, with what is safe."""
    store.failures = 3
    copies.later("c", {A: {"at": 1}})

    assert copies.settle("c", 20)
    assert [("c", {A: {"at": 1}})] == store.written
    assert 1 == len([each for each in caplog.records if "could not be copied" in each.message])


def test_a_newer_offset_takes_the_place_of_one_that_failed(
    store: Store, copies: SecondaryOffsetWriter
) -> None:
    """What failed must not come back over it."""
    store.failures = 1
    store.gate.clear()
    copies.later("c", {A: {"at": 1}, B: {"at": 1}})
    assert store.entered.wait(20)
    copies.later("c", {A: {"at": 2}})
    store.gate.set()

    assert copies.settle("c", 20)
    assert [("c", {A: {"at": 2}, B: {"at": 1}})] == store.written


def test_a_removal_is_stored_on_return_and_nothing_older_follows_it(
    store: Store, copies: SecondaryOffsetWriter
) -> None:
    """A value that waits for the same partition is not written any more; others are."""
    store.failures = 1
    slow = SecondaryOffsetWriter(store.put, retry_seconds=20)
    slow.later("c", {A: {"at": 1}, B: {"at": 1}})
    until(lambda: not store.failures)
    slow.first("c", {A: None})

    assert [("c", {A: None})] == store.written
    slow.close()
    assert [("c", {A: None}), ("c", {B: {"at": 1}})] == store.written


def test_a_removal_that_failed_is_raised(store: Store, copies: SecondaryOffsetWriter) -> None:
    """Whoever removes must not go on: the value would be read again."""
    store.failures = 1

    with pytest.raises(RetriableError, match="away"):
        copies.first("c", {A: None})


def test_what_waits_is_written_at_the_end(store: Store) -> None:
    """A worker that stops leaves the worker's store as new as it can."""
    copies = SecondaryOffsetWriter(store.put)
    copies.later("c", {A: {"at": 1}})
    copies.close()

    assert [("c", {A: {"at": 1}})] == store.written


def test_what_waits_is_finished_before_newer_offsets(store: Store) -> None:
    """Of a connector that gave up its topic; otherwise the copy would set them back."""
    store.failures = 1
    slow = SecondaryOffsetWriter(store.put, retry_seconds=20)
    slow.later("c", {A: {"at": 100}})
    until(lambda: not store.failures)
    slow.finish("c")
    store.put("c", {A: {"at": 500}})
    slow.close()

    assert [("c", {A: {"at": 100}}), ("c", {A: {"at": 500}})] == store.written


def test_what_cannot_be_finished_is_raised_and_still_waits(store: Store) -> None:
    """Whoever would write newer offsets must not."""
    store.failures = 2
    slow = SecondaryOffsetWriter(store.put, retry_seconds=20)
    slow.later("c", {A: {"at": 100}})
    until(lambda: store.failures == 1)

    with pytest.raises(RetriableError, match="away"):
        slow.finish("c")

    assert not slow.settle("c", 0)
    slow.close()
    assert [("c", {A: {"at": 100}})] == store.written


def test_a_store_that_is_away_is_asked_once_and_not_for_each_connector() -> None:
    """Whoever has something to remove waits for one write, and so does the end."""
    asked: list[str] = []

    def put(connector: str, _: Offsets) -> None:
        asked.append(connector)
        raise RetriableError("away.")

    copies = SecondaryOffsetWriter(put, retry_seconds=20)
    with copies._writing:
        for name in ("c", "d"):
            copies.later(name, {A: {"at": 1}})
    until(lambda: asked)
    copies.close()

    assert ["c", "d"] == asked


def test_a_copy_that_the_store_refuses_keeps_no_other_from_being_written() -> None:
    """What is wrong with one connector's is no news about the store."""
    written: list[str] = []

    def put(connector: str, _: Offsets) -> None:
        if connector == "bad":
            raise TaskFailedError("too large.")
        written.append(connector)

    copies = SecondaryOffsetWriter(put, retry_seconds=20)
    with copies._writing:
        for name in ("bad", "good"):
            copies.later(name, {A: {"at": 1}})
    assert copies.settle("good", 20)
    assert not copies.settle("bad", 0)
    copies.close()

    assert ["good"] == written


def test_a_copy_that_comes_after_a_refused_one_does_not_wait_for_its_next_try() -> None:
    """Which is long after the test."""
    refused = threading.Event()

    def put(connector: str, _: Offsets) -> None:
        if connector == "bad":
            refused.set()
            raise TaskFailedError("too large.")

    copies = SecondaryOffsetWriter(put, retry_seconds=600)
    copies.later("bad", {A: {"at": 1}})
    assert refused.wait(20)
    copies.later("good", {A: {"at": 1}})

    assert copies.settle("good", 20)
    copies.close()


def test_copies_of_a_connector_that_another_worker_runs_are_dropped(
    store: Store, copies: SecondaryOffsetWriter
) -> None:
    """That worker writes them; those of other connectors are written."""

    def fenced(_: str, __: Offsets) -> None:
        raise ConnectorFencedError("Another worker has taken over.")

    copies.write_with("c", fenced, keep=False)
    copies.later("c", {A: {"at": 1}})
    copies.later("d", {A: {"at": 2}})

    assert copies.settle("c", 20)
    assert copies.settle("d", 20)
    assert [("d", {A: {"at": 2}})] == store.written


def test_copies_of_an_ended_driver_delay_no_others(store: Store) -> None:
    """Its writer is closed; until the next start each attempt would look as if the store were away."""
    tried: list[Offsets] = []

    def closed(_: str, offsets: Offsets) -> None:
        tried.append(offsets)
        raise RetriableError("The driver of connector c has ended.")

    copies = SecondaryOffsetWriter(store.put, retry_seconds=600)
    copies.write_with("c", closed, keep=False)
    with copies._writing:
        copies.later("c", {A: {"at": 1}})
        copies.ended("c", closed)
        copies.later("d", {A: {"at": 2}})

    assert copies.settle("d", 20)
    copies.later("d", {A: {"at": 3}})
    assert copies.settle("d", 20)
    copies.close()
    assert [("d", {A: {"at": 2}}), ("d", {A: {"at": 3}})] == store.written
    assert len(tried) <= 1


@pytest.mark.parametrize("keep", [True, False])
def test_the_next_driver_says_what_becomes_of_copies_that_were_left(
    store: Store, copies: SecondaryOffsetWriter, *, keep: bool
) -> None:
    """It finds out itself what is missing, unless the connector has given up its topic."""

    def closed(*_: object) -> None:
        raise RetriableError("The driver of connector c has ended.")

    copies.write_with("c", closed, keep=False)
    copies.ended("c", closed)
    copies.later("c", {A: {"at": 1}})
    copies.write_with("c", store.put, keep=keep)

    assert copies.settle("c", 20)
    assert keep == bool(store.written)


def test_the_end_of_a_driver_that_was_replaced_stops_nothing(
    store: Store, copies: SecondaryOffsetWriter
) -> None:
    """Its successor in the same worker may have begun by then."""

    def old(*_: object) -> None:
        """Not called."""

    copies.write_with("c", old, keep=False)
    copies.write_with("c", store.put, keep=False)
    copies.ended("c", old)
    copies.later("c", {A: {"at": 1}})

    assert copies.settle("c", 20)
    assert [("c", {A: {"at": 1}})] == store.written
