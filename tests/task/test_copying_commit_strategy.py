"""When a slot tells the driver of offsets that it committed in the connector's own topic."""

from __future__ import annotations

import pytest

from headrace.connect.errors import RetriableError, StaleTokenError
from headrace.connect.partition import SourcePartition
from headrace.connect.task import Offsets
from headrace.task.transactions import CopyingCommitStrategy

A, B = SourcePartition(file="a"), SourcePartition(file="b")


class Driver:
    """Hears of copies, and of commits; *steps* are what it heard, in order."""

    update_must_succeed = True
    in_transactions = True

    def __init__(self) -> None:
        self.steps: list[tuple[str, Offsets]] = []
        self.failing: set[str] = set()
        self.refusal: Exception | None = None

    def _step(self, name: str, offsets: Offsets) -> None:
        if name in self.failing:
            raise self.refusal or RetriableError(f"{name} failed.")
        self.steps.append((name, dict(offsets)))

    def first(self, offsets: Offsets) -> None:
        """Remove."""
        self._step("first", offsets)

    def later(self, offsets: Offsets) -> None:
        """Copy."""
        self._step("later", offsets)

    def commit(self, offsets: Offsets) -> bool:
        """Commit."""
        self._step("commit", offsets)
        return bool(offsets)

    def before_records(self, topic: str) -> None:
        """Nothing."""

    def settle(self) -> None:
        """Nothing."""

    def abort(self) -> bool:
        """Note it."""
        self._step("abort", {})
        return True


@pytest.fixture
def driver() -> Driver:
    """Both sides."""
    return Driver()


@pytest.fixture
def commits(driver: Driver) -> CopyingCommitStrategy:
    """What is tested."""
    return CopyingCommitStrategy(driver, driver, connector="c")


def test_values_are_copied_after_the_commit_and_removals_before(
    driver: Driver, commits: CopyingCommitStrategy
) -> None:
    """What KIP-618 asks for."""
    commits.commit({A: {"at": 1}, B: None})

    assert [
        ("first", {B: None}),
        ("commit", {A: {"at": 1}, B: None}),
        ("later", {A: {"at": 1}}),
    ] == driver.steps


def test_a_removal_that_fails_keeps_the_commit_from_happening(
    driver: Driver, commits: CopyingCommitStrategy
) -> None:
    """It must succeed."""
    driver.failing = {"first"}

    with pytest.raises(RetriableError):
        commits.commit({B: None})
    assert [] == driver.steps


def test_a_copy_that_fails_goes_with_the_next(
    driver: Driver, commits: CopyingCommitStrategy
) -> None:
    """It is only logged: what counts is committed."""
    driver.failing = {"later"}
    assert commits.commit({A: {"at": 1}, B: {"at": 1}})
    driver.failing = set()
    commits.commit({A: {"at": 2}})

    assert ("later", {A: {"at": 2}, B: {"at": 1}}) == driver.steps[-1]


def test_a_copy_that_failed_does_not_follow_a_removal(
    driver: Driver, commits: CopyingCommitStrategy
) -> None:
    """The value would be there again."""
    driver.failing = {"later"}
    commits.commit({A: {"at": 1}})
    driver.failing = set()
    commits.commit({A: None})

    assert [("commit", {A: {"at": 1}}), ("first", {A: None}), ("commit", {A: None})] == driver.steps


def test_nothing_is_copied_of_a_commit_that_failed(
    driver: Driver, commits: CopyingCommitStrategy
) -> None:
    """Its records are read again."""
    driver.failing = {"commit"}

    with pytest.raises(RetriableError):
        commits.commit({A: {"at": 1}})
    driver.failing = set()
    commits.commit({B: {"at": 1}})
    assert [("commit", {B: {"at": 1}}), ("later", {B: {"at": 1}})] == driver.steps


def test_a_commit_stands_also_where_its_slot_has_been_given_up(driver: Driver) -> None:
    """The driver hears of no copy any more; hooks hear of the commit all the same."""
    driver.refusal = StaleTokenError("The token was withdrawn.")
    driver.failing.add("later")

    assert CopyingCommitStrategy(driver, driver, connector="c").commit({A: {"at": 1}})
