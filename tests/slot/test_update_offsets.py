"""Offsets that the task moves at a commit."""

from __future__ import annotations

import pytest

from headrace.connect.errors import RecordError
from headrace.connect.task import Offsets
from slot.loop import FILE, Loop, ScriptedTask, batch


def test_update_offsets_sees_what_is_about_to_be_committed_and_cannot_change_it() -> None:
    """Its argument is read-only."""
    task = ScriptedTask(batch("a", end=1))
    failures: list[Exception] = []

    def attempt(offsets: Offsets) -> None:
        try:
            offsets[FILE] = None  # type: ignore[index]
        except TypeError as error:
            failures.append(error)

    task.update = attempt
    loop = Loop(task)
    loop.run()

    assert {FILE: {"position": 1}} == task.shown[0]
    assert failures
    assert 1 == loop.position()


def test_update_offsets_sees_only_what_is_acknowledged_at_least_once() -> None:
    """It may tell upstream at once: the broker has every record that the offsets cover."""
    seen: list[tuple[Offsets, list[str]]] = []
    task = ScriptedTask(batch("a", "b", end=2))
    task.update = lambda offsets: seen.append((offsets, loop.values()))
    loop = Loop(task, transactional=False)
    loop.run()

    assert ({FILE: {"position": 2}}, ["a", "b"]) == seen[0]


def test_update_offsets_does_not_see_what_the_broker_has_refused() -> None:
    """Nothing of it is acknowledged."""
    task = ScriptedTask(batch("a", "bad", end=2))
    loop = Loop(task, transactional=False)
    loop.sender.refuses_late.add(b"bad")

    with pytest.raises(RecordError):
        loop.run()

    assert [] == task.shown


def test_a_failing_update_offsets_fails_an_exactly_once_task() -> None:
    """Nothing of the transaction is committed."""
    task = ScriptedTask(batch("a", end=1))
    task.update = lambda _: 1 / 0  # type: ignore[assignment,return-value]
    loop = Loop(task)

    with pytest.raises(ZeroDivisionError):
        loop.run()

    assert [] == loop.values()


def test_a_failing_update_offsets_is_only_logged_at_least_once() -> None:
    """The old offsets are committed."""
    task = ScriptedTask(batch("a", end=1))
    task.update = lambda _: 1 / 0  # type: ignore[assignment,return-value]
    loop = Loop(task, transactional=False)

    loop.run()

    assert 1 == loop.position()
