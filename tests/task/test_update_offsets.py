"""Offsets that the task moves at a commit."""

from __future__ import annotations

import pytest

from headrace.connect.errors import RecordError, RetriableError
from headrace.connect.task import Offsets
from task.loop import FILE, Loop, ScriptedTask, batch


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
    """It may acknowledge upstream at once: the broker has every record that the offsets cover."""
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


@pytest.mark.parametrize("planned", [True, False], ids=["planned", "polled"])
def test_an_update_offsets_that_raises_fails_an_exactly_once_task(*, planned: bool) -> None:
    """The message names the hook and the consequence, and nothing of the transaction is committed."""
    task = ScriptedTask(batch("a", end=1))
    task.update = lambda _: 1 / 0  # type: ignore[assignment,return-value]
    loop = Loop(task, planned=planned)

    with pytest.raises(RuntimeError) as raised:
        loop.run()

    assert (
        "update_offsets raised ZeroDivisionError: division by zero. With exactly-once its result is part "
        "of the commit, so nothing since the previous commit was stored; those records are read again after a restart."
    ) == str(raised.value)
    assert ([], 0) == (loop.values(), loop.sender.commits)


def test_a_retriable_error_of_update_offsets_stays_what_it_is() -> None:
    """The work is planned again, as after one of any other step of a commit."""
    task = ScriptedTask(batch("a", end=1))
    error = RetriableError("away")

    def raising(_: Offsets) -> None:
        raise error

    task.update = raising

    with pytest.raises(RetriableError) as raised:
        Loop(task).run()

    assert error is raised.value


@pytest.mark.parametrize("planned", [True, False], ids=["planned", "polled"])
def test_an_update_offsets_that_raises_is_asked_again_at_least_once(
    caplog: pytest.LogCaptureFixture, *, planned: bool
) -> None:
    """The offsets of the records are stored meanwhile, and the log has the error."""
    task = ScriptedTask(batch("a", end=1), batch("b", end=2))
    loop = Loop(task, transactional=False, planned=planned)

    def second_time(_: Offsets) -> Offsets:
        if len(task.shown) == 1:
            assert 1 / 0
        return {FILE: {"position": 9}}

    def stop() -> None:
        loop.lease.asked_to_end = "stop"

    positions = list[int]()
    task.update = second_time
    task.script.insert(1, lambda: positions.append(loop.position()))
    task.script.append(stop)

    loop.run()

    assert ([1], 9) == (positions, loop.position())
    assert "ZeroDivisionError: division by zero" in caplog.text
