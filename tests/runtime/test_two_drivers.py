"""Two drivers of one connector, in every order of their steps: each record is committed once, and one driver survives."""

from __future__ import annotations

import re

import pytest

from runtime.two_drivers_model import (
    BrokenPromiseError,
    Layout,
    Order,
    Protocol,
    Scene,
    explored,
)

THREE = (1, 1, 1)
LAYOUTS = {
    "one task each": Layout(tasks=(1, 1), records=(3,)),
    "two tasks each": Layout(tasks=(2, 2)),
    "two tasks each, with different shares": Layout(tasks=(2, 2), turned=(False, True)),
    "one and two": Layout(tasks=(1, 2)),
    "two and one": Layout(tasks=(2, 1), records=(2, 1)),
    "three and one": Layout(tasks=(3, 1), records=THREE),
    "slots left alone": Layout(tasks=(1, 1), records=(2,), impatient=(True, False)),
    "slots left alone, others have more": Layout(tasks=(2, 1), impatient=(False, True)),
    "offsets written by both drivers": Layout(tasks=(1, 1), rewrites=(True, True)),
    "offsets written by one with more tasks": Layout(tasks=(2, 1), rewrites=(True, False)),
    "a reset": Layout(tasks=(1, 1), resets=(False, True)),
    "a reset with fewer tasks": Layout(tasks=(2, 1), resets=(False, True)),
    "copies": Layout(tasks=(1, 1), copies=True),
    "a reset with copies": Layout(tasks=(1, 1), records=(2,), copies=True, resets=(False, True)),
}
WRONG = {
    "slots initialise late": (
        Protocol(order=Order.INITIALISE, has_guard=False),
        Layout(tasks=(1, 1), records=(1,)),
    ),
    "all slots initialise, then the driver reads again": (
        Protocol(order=Order.ALL_INITIALISE_READ_AGAIN, has_guard=False),
        Layout(tasks=(2, 2), turned=(False, True)),
    ),
    "the driver initialises all ids, then reads": (
        Protocol(order=Order.DRIVER_INITIALISES, has_guard=False),
        Layout(tasks=(2, 2), turned=(False, True)),
    ),
    "a guard, but no list of ids": (Protocol(lists_ids=False), Layout(tasks=(1, 2))),
    "the guard is proven before the id is initialised": (
        Protocol(order=Order.ASK_INITIALISE),
        Layout(tasks=(1, 1), records=(1,)),
    ),
    "the guard is not proven for what the driver writes itself": (
        Protocol(proves_own_writes=False),
        Layout(tasks=(1, 1), records=(1,), rewrites=(True, False)),
    ),
}
"""Each with a layout in which it breaks the promise."""


@pytest.mark.parametrize("order", [Order.INITIALISE_ASK, Order.DRIVER_INITIALISES_ASK])
@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
def test_whatever_the_order_one_driver_survives_and_each_record_is_sent_once(
    layout: Layout, order: Order
) -> None:
    """The other one has failed, or had ended before; the two do not fence each other forever."""
    scene = Scene(Protocol(order=order), layout)
    found = explored(scene)

    assert found.ends
    assert not found.has_cycle
    assert [] == [each for each in found.ends if not scene.is_complete(each)]
    assert [] == [each for each in found.ends if not each.survivors()]


@pytest.mark.parametrize(("protocol", "layout"), WRONG.values(), ids=WRONG)
def test_what_looks_right_as_well_breaks_the_promise(protocol: Protocol, layout: Layout) -> None:
    """The model finds it, with one plan of each driver or two."""
    with pytest.raises(BrokenPromiseError, match=r"is sent twice|the offsets say"):
        explored(Scene(protocol, layout, rounds=2))


def test_a_late_copy_of_an_unfenced_driver_brings_back_an_offset_that_was_removed() -> None:
    """And the records before it would be lost."""
    scene = Scene(Protocol(fences_secondary=False), LAYOUTS["a reset with copies"])

    with pytest.raises(BrokenPromiseError, match=re.escape("(0,) records are sent, but")):
        explored(scene)


def test_drivers_that_take_the_guard_again_may_never_end() -> None:
    """So whoever has lost it fails, and stays failed."""
    scene = Scene(Protocol(takes_guard_again=True), Layout(tasks=(1, 1), records=(1,)))

    assert explored(scene).has_cycle
