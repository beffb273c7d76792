"""A commit in the middle of a poll: the task is after the whole poll already, and what it says of itself must wait."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace

import pytest

from headrace.connect.batch import SourceBatch
from headrace.connect.errors import RecordError
from headrace.connect.partition import SourcePartition
from headrace.connect.record import SourceRecord
from headrace.task.connector_spec import BoundaryKind
from task.loop import FILE, Loop, ScriptedTask, batch, both_modes, record

OTHER = SourcePartition(filename="g")


def always_due(task: ScriptedTask, *, transactional: bool = True) -> Loop:
    """A commit is due wherever one may be."""
    return Loop(task, kind=BoundaryKind.INTERVAL, interval=0.0, transactional=transactional)


def batch_of_other() -> SourceBatch:
    """One row of another source partition."""
    return replace(batch("b", end=1), source_partition=OTHER)


@both_modes
def test_a_task_that_tells_its_own_position_loses_nothing(*, transactional: bool) -> None:
    """The rest of the poll is not sent, so the position stays before it."""
    task = ScriptedTask([batch("a", end=1), batch("b", end=2), batch("bad", end=3)])
    task.update = lambda _: {FILE: {"position": 3}}
    loop = always_due(task, transactional=transactional)
    loop.sender.refuses.add(b"bad")

    with pytest.raises(RecordError):
        loop.run()

    assert (["a", "b"], 2, []) == (loop.values(), loop.position(), task.shown)


@both_modes
def test_a_poll_that_raises_is_no_moment_to_ask(*, transactional: bool) -> None:
    """The task may have continued after records that it did not return."""
    task = ScriptedTask(batch("a", end=1), ValueError("torn"))
    task.update = lambda _: {FILE: {"position": 9}}
    loop = Loop(task, kind=BoundaryKind.INTERVAL, transactional=transactional)

    with pytest.raises(ValueError, match="torn"):
        loop.run()

    assert (["a"], 1, []) == (loop.values(), loop.position(), task.shown)


def test_its_turn_comes_at_the_end_of_the_poll() -> None:
    """And it is shown what was committed on the way."""
    task = ScriptedTask([batch("a", end=1), batch_of_other(), batch("c", end=3)])
    loop = always_due(task)
    loop.run()

    assert {FILE: {"position": 3}, OTHER: {"position": 1}} == task.shown[0]
    assert 3 == loop.sender.commits


def test_polls_that_are_longer_than_the_interval_do_not_put_it_off_for_ever() -> None:
    """The interval begins again in the middle of each of them, and is never over at their ends."""
    polls = [[batch("a", end=at), batch("b", end=at + 1)] for at in (1, 3, 5)]
    task = ScriptedTask(*polls)
    # Asked for the time once between the two batches, when it is over, and then never again.
    ticks = itertools.cycle([1.0, 0.0, 0.0, 0.0])
    times = itertools.accumulate(ticks)
    loop = Loop(task, kind=BoundaryKind.INTERVAL, interval=0.9, times=times)

    loop.run()

    assert [2, 4, 6] == [shown[FILE]["position"] for shown in task.shown[:3]]


def test_a_poll_of_one_batch_is_one_transaction() -> None:
    """Its commit is at the end of the poll, where the task is asked."""
    loop = always_due(ScriptedTask(batch("a", end=1), batch("b", end=2)))

    loop.run()

    assert 2 == loop.sender.commits
    assert [{FILE: {"position": 1}}, {FILE: {"position": 2}}] == loop.task.shown[:2]  # type: ignore[attr-defined]


@pytest.mark.parametrize(("cut_at", "asked"), [(0, []), (1, [{FILE: {"position": 2}}])])
@pytest.mark.parametrize("aborts", [False, True], ids=["commit", "abort"])
def test_a_request_by_record_asks_only_behind_the_last_one(
    *, cut_at: int, asked: list[object], aborts: bool
) -> None:
    """What a connector ends in the middle of a poll has records after it that are not sent."""
    records = [record("a", 1), record("b", 2)]
    task = ScriptedTask()
    loop = Loop(task, kind=BoundaryKind.CONNECTOR)

    def cut() -> Sequence[SourceRecord]:
        requests = loop.requests
        (requests.abort_transaction if aborts else requests.commit_transaction)(records[cut_at])
        return records

    task.script = [cut]
    loop.run()

    assert asked == task.shown
    assert cut_at + 1 == loop.position()


def test_what_a_request_by_record_committed_is_shown_at_the_next_request_for_all() -> None:
    """A task that follows its commits through the hook misses none."""
    task = ScriptedTask()
    loop = Loop(task, kind=BoundaryKind.CONNECTOR)

    def cut() -> Sequence[SourceRecord]:
        records = [record("a", 1), record("b", 2)]
        loop.requests.commit_transaction(records[0])
        return records

    task.script = [cut, lambda: loop.requests.commit_transaction() or [record("c", 3)]]
    loop.run()

    assert [{FILE: {"position": 3}}] == task.shown
