"""When the slots of an open micro-batch are asked to end."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from headrace.runtime.batch_runner import end_reason
from headrace.task.slot_report import Outcome
from headrace.task.slot_work import EndReason


def reason(
    *ended: Outcome,
    planned: bool = True,
    stopping: bool = False,
    reconfiguring: bool = False,
    over_budget: bool = False,
    others_wait: bool = False,
) -> EndReason | None:
    """The decision, with nothing the matter unless said."""
    return end_reason(
        ended,
        planned=planned,
        stopping=stopping,
        reconfiguring=reconfiguring,
        over_budget=over_budget,
        others_wait=others_wait,
    )


def test_a_stop_comes_first() -> None:
    """Whatever else is the matter."""
    assert EndReason.STOP is reason(stopping=True, over_budget=True, others_wait=True)


@pytest.mark.parametrize(
    ("planned", "expected"), [(False, EndReason.RECONFIGURATION), (True, EndReason.BUDGET)]
)
def test_new_tasks_end_polled_ones_at_once_and_planned_ones_where_it_is_cheap(
    *, planned: bool, expected: EndReason
) -> None:
    """A connector that asks for a plan at each new file would else unpack an old one again and again."""
    assert expected is reason(planned=planned, reconfiguring=True)
    assert EndReason.STOP is reason(planned=planned, reconfiguring=True, stopping=True)


@pytest.mark.parametrize("outcome", [Outcome.FAILED, Outcome.REPLAN])
def test_a_slot_that_was_cut_short_ends_its_siblings(outcome: Outcome) -> None:
    """Its work is waiting for the next plan."""
    assert EndReason.SIBLING is reason(outcome)


@pytest.mark.parametrize(("over_budget", "others_wait"), [(True, False), (False, True)])
def test_a_budget_counts_only_while_others_wait(*, over_budget: bool, others_wait: bool) -> None:
    """Both have to be true."""
    assert reason(over_budget=over_budget, others_wait=others_wait) is None
    assert EndReason.BUDGET is reason(over_budget=True, others_wait=True)


@pytest.mark.parametrize(
    ("planned", "ended", "expected"),
    [
        (True, [Outcome.FINISHED], None),
        (False, [Outcome.IDLE], EndReason.BUDGET),
        (False, [], None),
    ],
)
def test_an_idle_polled_task_gets_another_turn(
    *, planned: bool, ended: Sequence[Outcome], expected: EndReason | None
) -> None:
    """Its siblings may never be idle; the shares of a plan are another matter."""
    assert expected is reason(*ended, planned=planned, over_budget=True)
