"""Offsets that a task returns from ``update_offsets`` although they are committed already."""

from __future__ import annotations

from headrace.connect.partition import SourcePartition
from headrace.testing.task_runs import StoredOffsets
from task.loop import FILE, Loop, ScriptedTask, batch, both_modes

OTHER = SourcePartition(filename="g")


def test_an_idle_task_that_tells_its_position_again_makes_no_transaction() -> None:
    """With boundary poll there would be one every 50 ms."""
    task = ScriptedTask(batch("a", end=1), (), (), ())
    task.update = lambda _: {FILE: {"position": 1}}
    loop = Loop(task)

    loop.run()

    assert (5, 1) == (len(task.shown), loop.sender.commits)


@both_modes
def test_what_was_stored_before_the_slot_began_is_not_stored_again(*, transactional: bool) -> None:
    """Nor is a removal of what is not there; a task is made again for each micro-batch."""
    task = ScriptedTask(())
    task.update = lambda _: {FILE: {"position": 4}, OTHER: None}
    stored = StoredOffsets({FILE: {"position": 4}})
    loop = Loop(task, transactional=transactional, stored=stored)

    loop.run()

    assert {} == loop.sender.offsets


def test_another_type_is_another_offset() -> None:
    """As it is in the offsets topic: 1 is not true there."""
    task = ScriptedTask(())
    task.update = lambda _: {FILE: {"position": True}}
    loop = Loop(task, stored=StoredOffsets({FILE: {"position": 1}}))

    loop.run()

    assert 1 == loop.sender.commits


def test_an_offset_that_records_have_moved_on_may_be_set_back() -> None:
    """What counts is what was committed last, not what was stored before the slot began."""
    task = ScriptedTask(batch("a", end=5), ())
    task.update = lambda shown: None if shown else {FILE: {"position": 4}}
    loop = Loop(task, stored=StoredOffsets({FILE: {"position": 4}}))

    loop.run()

    assert 4 == loop.position()


@both_modes
def test_offsets_that_are_committed_without_a_record_are_counted(*, transactional: bool) -> None:
    """Not those that take the place of a record's, and none twice."""
    task = ScriptedTask(batch("a", end=1), ())
    task.update = lambda _: {FILE: {"position": 1}, OTHER: {"position": 7}}
    loop = Loop(task, transactional=transactional)

    loop.run()

    assert 1 == loop.progress.moved_offsets
