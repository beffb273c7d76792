"""D11: a source is told which of its objects are done, after the commit that says so, until it has taken it."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

from headrace.connect.connector import SourceConnector
from headrace.testing.task_runs import Stored
from sources.shelf import (
    PROPS,
    PlannedShelfConnector,
    Shelf,
    ShelfConnector,
    ShelfSource,
    ShelfTask,
    partition_of,
    played,
    run,
)

TOLD: list[tuple[str, str | None]] = []
FAILING: list[Exception] = []


@pytest.fixture(autouse=True)
def told() -> list[tuple[str, str | None]]:
    """What was acknowledged."""
    TOLD.clear()
    FAILING.clear()
    return TOLD


class Lending(ShelfSource):
    """Takes books away when they are done."""

    def acknowledge(self, read: Mapping[str, str | None]) -> None:
        """Notes them."""
        if FAILING:
            raise FAILING.pop()
        TOLD.extend(read.items())


class LendingTask(ShelfTask):
    """Reads it."""

    def source(self, config: object) -> Lending:
        """The shelf."""
        return Lending()


class LendingConnector(ShelfConnector):
    """The shelf, acknowledged."""

    task_class = LendingTask
    source_class = Lending


class PlannedLendingConnector(PlannedShelfConnector):
    """The same, planned."""

    task_class = LendingTask
    source_class = Lending


both = pytest.mark.parametrize("kind", [LendingConnector, PlannedLendingConnector])
Kind = Callable[[], SourceConnector]


def test_only_what_is_done_is_acknowledged(shelf: Shelf):
    """D11: with the version that was read; an object of which records are missing in Kafka is not."""
    shelf.objects, shelf.versions = {"a": b"1\n", "b": b"2\n3\n4\n"}, {"a": "v1"}
    stored: Stored = {}

    played(LendingTask(), PROPS, stored=stored, killed_at=3)

    assert [("a", "v1")] == TOLD
    assert {"recordCount": 2}.items() <= stored[partition_of("b")].items()
    assert "done" not in stored[partition_of("b")]


def test_nothing_is_acknowledged_before_its_commit(shelf: Shelf):
    """D11: what was returned may still be lost."""
    shelf.objects = {"a": b"1\n"}
    task = LendingTask()

    class NoCommitError(Exception):
        """The commit fails."""

    def update_offsets(offsets: object) -> None:
        raise NoCommitError

    task.update_offsets = update_offsets  # type: ignore[method-assign]
    with pytest.raises(RuntimeError, match="NoCommitError"):
        played(task, PROPS)

    assert [] == TOLD


@both
def test_every_object_is_acknowledged_at_least_once(shelf: Shelf, kind: Kind):
    """D11: an empty one, too."""
    shelf.objects = {"a": b"1\n", "b": b"", "c": b"2\n3\n"}

    run({}, kind=kind)

    assert {"a", "b", "c"} == {key for key, _ in TOLD}


@both
def test_a_crash_between_the_commit_and_the_acknowledgement_loses_none(shelf: Shelf, kind: Kind):
    """D11: whatever a listing still shows is told again."""
    shelf.objects = {"a": b"1\n", "b": b"2\n"}
    stored: Stored = {}
    run(stored)

    run(stored, kind=kind)

    assert ["a", "b"] == sorted(key for key, _ in TOLD)


@both
def test_a_source_that_does_not_take_it_now_is_told_again(shelf: Shelf, kind: Kind):
    """D11: and reading goes on."""
    shelf.objects = {"a": b"1\n", "b": b"2\n"}
    FAILING.append(ConnectionError("away"))
    stored: Stored = {}

    assert ["1", "2"] == run(stored, kind=kind)

    assert {"a", "b"} == {key for key, _ in TOLD}


def test_an_overwritten_object_is_not_acknowledged(shelf: Shelf):
    """D11: a source that removes it then would lose what no one has read."""
    shelf.objects, shelf.versions = {"a": b"1\n"}, {"a": "v1"}
    stored: Stored = {}
    run(stored)
    shelf.versions = {"a": "v2"}

    run(stored, kind=LendingConnector, native_changed="ignore")
    run(stored, kind=PlannedLendingConnector, native_changed="ignore")

    assert [] == TOLD


def test_a_running_task_tells_it_again_itself(shelf: Shelf):
    """D11: with one of its next commits, and not only after a restart."""
    shelf.objects = {"a": b"1\n", "b": b"2\n"}
    FAILING.append(ConnectionError("away"))

    played(LendingTask(), PROPS)

    assert {"a", "b"} == {key for key, _ in TOLD}
