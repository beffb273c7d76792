"""The small pure decisions of the runtime: fencing, plans, capacity."""

from __future__ import annotations

import threading

import pytest

from headrace.connect.connector import Plan
from headrace.connect.errors import TaskFailedError
from headrace.connect.partition import SourcePartition
from headrace.connect.task import Split
from headrace.runtime.assignment import checked_plan
from headrace.runtime.engine import Capacity
from headrace.runtime.fencing import tasks_ids

A = Split(partition=SourcePartition(filename="a"))


def test_an_id_is_a_task_s_as_a_whole() -> None:
    """Names of connectors may end like those of tasks, and hold what means something in patterns."""
    listed = ["g-a.b-0", "g-a.b-11", "g-a.b-1-0", "g-axb-0", "g-a.b-driver", "g-a.b-", "xg-a.b-0"]

    assert {"g-a.b-0", "g-a.b-11"} == tasks_ids(listed, "g", "a.b")


def test_a_source_partition_has_one_owner() -> None:
    """A plan that gives it to two slots is refused, with both tasks named."""
    with pytest.raises(TaskFailedError, match=r"tasks 0 and 1"):
        checked_plan(Plan(shares=[[A], [A]]), connector="c", slots=2)


def test_a_plan_does_not_change_the_offset_of_what_it_reads() -> None:
    """Its slot owns that; an offset of another source partition may be changed beside it."""
    other = SourcePartition(filename="b")
    good = Plan(shares=[[A]], offsets={other: None})

    assert good is checked_plan(good, connector="c", slots=1)
    with pytest.raises(TaskFailedError, match=r"'filename': 'a'.* only one of the two"):
        checked_plan(Plan(shares=[[A]], offsets={A.partition: None}), connector="c", slots=1)


def test_a_plan_has_no_more_tasks_than_slots() -> None:
    """tasks.max is kept."""
    with pytest.raises(TaskFailedError, match="at most 1"):
        checked_plan(Plan(shares=[[A], []]), connector="c", slots=1)


@pytest.mark.parametrize("seconds", [0.0, -1.0, float("nan")])
def test_a_plan_waits_for_some_time_or_not_at_all(seconds: float) -> None:
    """A connector that miscounts must not be asked without a pause."""
    with pytest.raises(TaskFailedError, match="return more than 0 seconds"):
        checked_plan(Plan(ask_again_after=seconds), connector="c", slots=1)


def test_slots_are_taken_all_at_once_or_not_at_all() -> None:
    """Two large micro-batches cannot hold half of what each needs."""
    capacity = Capacity(2)
    capacity.take(1, give_up=lambda: True)

    assert not capacity.take(2, give_up=lambda: True)
    assert capacity.take(1, give_up=lambda: True)


def test_more_slots_than_there_are_can_never_be_taken() -> None:
    """That is reported at once, not waited for."""
    with pytest.raises(ValueError, match="only 2"):
        Capacity(2).take(3, give_up=lambda: True)


def test_a_waiting_micro_batch_is_seen_and_served_first() -> None:
    """Whoever came first gets the slots, however many it needs."""
    capacity = Capacity(2)
    capacity.take(2, give_up=lambda: True)
    served = threading.Event()
    waiter = threading.Thread(
        target=lambda: capacity.take(2, give_up=lambda: False) and served.set()
    )
    waiter.start()
    while not capacity.others_wait():
        pass
    late = capacity.take(1, give_up=lambda: True)
    capacity.give_back(2)

    assert served.wait(5)
    assert not late
    waiter.join()
