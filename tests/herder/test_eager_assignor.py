"""All work is dealt anew, as with ``connect.protocol=eager``."""

from __future__ import annotations

from headrace.herder.eager_assignor import dealt


def test_work_is_dealt_in_the_order_of_the_members_ids() -> None:
    """As Kafka Connect does it; the round goes on from one connector to the next."""
    given, unplaced = dealt(["a", "b", "c", "d", "e"], ["w2", "w1"], lambda _piece, _member: True)

    assert {"w1": ["a", "c", "e"], "w2": ["b", "d"]} == given
    assert not unplaced


def test_a_member_that_it_does_not_fit_is_passed_over() -> None:
    """It is the next one for what follows no later than it would have been."""
    slots = {"w1": 1, "w2": 4, "w3": 1}
    tasks = {"a": 2, "b": 1, "c": 1, "d": 9}
    given, unplaced = dealt(tasks, slots, lambda name, each: tasks[name] <= slots[each])

    assert {"w1": ["c"], "w2": ["a"], "w3": ["b"]} == given
    assert ["d"] == unplaced


def test_without_members_nothing_is_dealt() -> None:
    """It waits for one."""
    assert ({}, ["a"]) == dealt(["a"], [], lambda _piece, _member: True)
