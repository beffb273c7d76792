"""Runs without Spark hide nothing that a worker would do."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from doubles.puppets import SOURCE, PlannedPuppet, Puppet, puppet, reading
from headrace.connect.connector import Plan, PlanRequest
from headrace.connect.errors import TaskFailedError
from headrace.connect.partition import SourcePartition
from headrace.connect.task import Offsets, Split
from headrace.testing.task_runs import Delivered, LocalRun, Stored

OTHER = SourcePartition(source="other")
WORK = Plan(shares=[[Split(partition=SOURCE)]])


def run(
    behaviour: Puppet, stored: Stored | None = None, *, stop_after: int | None = None
) -> list[Delivered]:
    """What a planned connector delivers that does as told."""
    puppet("local", behaviour)
    given: Stored = {} if stored is None else stored
    connector = PlannedPuppet()
    connector.start = started(connector, behaviour)  # type: ignore[method-assign]
    return LocalRun(connector, {"name": "local"}, given, stop_after=stop_after).until_idle()


def started(connector: PlannedPuppet, behaviour: Puppet) -> Callable[[object], None]:
    """A ``start`` without a context, which a run without a worker does not give."""

    def start(_: object) -> None:
        connector._puppet = behaviour

    return start


def test_a_plan_that_never_becomes_empty_is_reported() -> None:
    """A worker would start one micro-batch after the other for it, although nothing is delivered."""
    with pytest.raises(AssertionError, match="still something to do after 1000 rounds"):
        run(Puppet(plan=lambda _: WORK))


def test_work_without_an_offset_does_not_end_the_run() -> None:
    """What a later plan has is done as well."""
    plans = iter([WORK, WORK, Plan(offsets={OTHER: {"next": 1}}), WORK])
    left: list[Plan] = []

    def plan(_: PlanRequest) -> Plan:
        left.append(next(plans, Plan()))
        return left[-1]

    stored: Stored = {}
    run(Puppet(plan=plan), stored)

    assert 5 == len(left)
    assert {OTHER: {"next": 1}} == stored


def test_an_empty_plan_is_the_end() -> None:
    """All has been read by then."""
    assert 25 == len(run(reading("t", 25)))


def test_what_a_plan_could_not_give_fails_the_run_once_the_rest_is_done() -> None:
    """As a run of a worker that ends."""
    failure = TaskFailedError("of a part")
    plans = iter([replace(WORK, failure=failure), Plan(failure=failure)])

    with pytest.raises(TaskFailedError, match="of a part"):
        run(Puppet(plan=lambda _: next(plans)))
    assert [] == [*plans]


@pytest.mark.parametrize(
    ("stop_after", "next_number"), [(25, 1000), (20, 1000), (13, 13)], ids=["all", "a poll", "half"]
)
def test_a_task_is_not_asked_for_offsets_in_the_middle_of_a_poll(
    stop_after: int, next_number: int
) -> None:
    """It may tell its own position, which is ahead of the records that a dying process has committed."""
    stored: Stored = {}
    behaviour = reading("t", 25)
    polled = iter([{"next": 10}, {"next": 1000}, {"next": 1000}])
    behaviour.update = lambda _: {SOURCE: next(polled)}

    run(behaviour, stored, stop_after=stop_after)

    assert {SOURCE: {"next": next_number}} == stored


def test_a_task_is_shown_offsets_as_in_a_slot() -> None:
    """Read-only: what changes them in a test would not do so in a worker."""

    def attempt(offsets: Offsets) -> None:
        offsets[SOURCE] = {"next": 1}  # type: ignore[index]

    behaviour = reading("t", 25)
    behaviour.update = attempt

    with pytest.raises(TypeError, match="does not support item assignment"):
        run(behaviour)
