"""The small pure decisions of the runtime: fencing, plans, capacity."""

from __future__ import annotations

import threading

import pytest

from headrace.connect.connector import Plan
from headrace.connect.errors import TaskFailedError
from headrace.connect.partition import SourcePartition
from headrace.connect.task import Split
from headrace.runtime.capacity import Capacity
from headrace.runtime.running.fencing import ids_to_fence
from headrace.runtime.running.planning import checked
from headrace.storage.protocols import TaskCount

A = Split(partition=SourcePartition(filename="a"))


def test_nothing_is_fenced_after_a_clean_end() -> None:
    """Every slot confirmed that it left nothing behind."""
    assert [] == ids_to_fence("g", "c", stored=TaskCount(slots=3, clean=True), current=5)


@pytest.mark.parametrize(("stored", "current", "last"), [(3, 1, 2), (1, 3, 2), (0, 1, 0)])
def test_the_larger_of_both_generations_is_fenced(stored: int, current: int, last: int) -> None:
    """An earlier generation may have had more slots than this one, or fewer."""
    ids = ids_to_fence("g", "c", stored=TaskCount(slots=stored, clean=False), current=current)

    assert [f"g-c-{task}" for task in range(last + 1)] == ids


def test_a_connector_that_was_never_seen_is_fenced_too() -> None:
    """Its state file may have been lost while its slots were not."""
    assert ["g-c-0"] == ids_to_fence("g", "c", stored=None, current=1)


def test_a_source_partition_has_one_owner() -> None:
    """A plan that gives it to two slots is refused, with both tasks named."""
    with pytest.raises(TaskFailedError, match=r"tasks 0 and 1"):
        checked(Plan(shares=[[A], [A]]), connector="c", slots=2)


def test_a_plan_does_not_change_the_offset_of_what_it_reads() -> None:
    """Its slot owns that; an offset of another source partition may be changed beside it."""
    other = SourcePartition(filename="b")
    good = Plan(shares=[[A]], offsets={other: None})

    assert good is checked(good, connector="c", slots=1)
    with pytest.raises(TaskFailedError, match=r"'filename': 'a'.* two owners"):
        checked(Plan(shares=[[A]], offsets={A.partition: None}), connector="c", slots=1)


def test_a_plan_has_no_more_tasks_than_slots() -> None:
    """tasks.max is kept."""
    with pytest.raises(TaskFailedError, match="at most 1"):
        checked(Plan(shares=[[A], []]), connector="c", slots=1)


@pytest.mark.parametrize("seconds", [0.0, -1.0, float("nan")])
def test_a_plan_waits_for_some_time_or_not_at_all(seconds: float) -> None:
    """A connector that miscounts must not be asked without a pause."""
    with pytest.raises(TaskFailedError, match="no time to wait"):
        checked(Plan(ask_again_after=seconds), connector="c", slots=1)


def test_slots_are_taken_all_at_once_or_not_at_all() -> None:
    """Two large micro-batches cannot hold half of what each needs."""
    capacity = Capacity(2)
    capacity.take(1, give_up=lambda: True)

    assert not capacity.take(2, give_up=lambda: True)
    assert capacity.take(1, give_up=lambda: True)


def test_more_slots_than_there_are_can_never_be_taken() -> None:
    """That is told at once, not waited for."""
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
