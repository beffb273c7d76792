"""An empty plan that wants to be asked again: nothing yet, and not the end of a run that ends."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from doubles.puppets import SOURCE
from headrace.connect.connector import Plan
from headrace.connect.task import Split
from headrace.observe.events import ConnectorIdle
from headrace.runtime.services import Timing
from headrace.task.slot_report import Outcome, SlotReport
from runtime.desk import Desk
from waiting import until

FINISHED = SlotReport(outcome=Outcome.FINISHED)
WORK = Plan(shares=[[Split(partition=SOURCE)]])
QUICK = Timing(idle_poll=0.01, grace=0.3, lease=5.0)


@pytest.fixture
def desk() -> Iterator[Callable[..., Desk]]:
    """Makes desks whose plans are given, and empty after that; closed at the end."""
    made: list[Desk] = []

    def make(*plans: Plan, idle_poll: float, once: bool = True) -> Desk:
        left = iter(plans)
        timing = replace(QUICK, idle_poll=idle_poll)
        made.append(
            Desk(lambda *_: FINISHED, lambda _: next(left, Plan()), timing=timing, once=once)
        )
        return made[-1]

    yield make
    for each in made:
        each.channel.close()


def test_a_run_that_ends_waits_as_long_as_the_connector_wants(desk: Callable[..., Desk]) -> None:
    """Not for the worker's idle poll, and then what was too young is read."""
    made = desk(Plan(ask_again_after=0.05), WORK, idle_poll=600.0)

    assert made.run().failure is None
    assert 1 == len(made.engine.tickets)


def test_a_long_wait_is_not_longer_than_the_idle_poll(desk: Callable[..., Desk]) -> None:
    """Something else may have come in the meantime."""
    made = desk(Plan(ask_again_after=600.0), WORK, idle_poll=0.01)

    assert made.run().failure is None
    assert 1 == len(made.engine.tickets)


def test_nothing_to_wait_for_is_the_end(desk: Callable[..., Desk]) -> None:
    """Without the wish, an empty plan says that all has been read."""
    made = desk(WORK, Plan(), WORK, idle_poll=600.0)

    assert made.run().failure is None
    assert 1 == len(made.engine.tickets)


@pytest.mark.parametrize("once", [True, False])
def test_a_stop_does_not_wait(desk: Callable[..., Desk], once: bool) -> None:  # noqa: FBT001
    """However long the connector wants to wait."""
    made = desk(Plan(ask_again_after=600.0), idle_poll=600.0, once=once)
    run = made.start()
    until(lambda: made.heard(ConnectorIdle))
    run.ask_to_stop()

    assert run.join(10.0)
    assert [] == made.engine.tickets


def test_a_wake_ends_the_wait(desk: Callable[..., Desk]) -> None:
    """The connector may learn of work earlier than it thought."""
    made = desk(Plan(ask_again_after=600.0), WORK, idle_poll=600.0)
    run = made.start()
    until(lambda: made.heard(ConnectorIdle))
    run._run_context.context.request_task_reconfiguration()

    assert run.join(20.0)
    assert 1 == len(made.engine.tickets)
