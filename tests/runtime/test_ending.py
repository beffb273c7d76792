"""When the slots of an open micro-batch are asked to end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from headrace.runtime.batch_runner import end_reason
from headrace.task.slot_report import Outcome
from headrace.task.slot_work import EndReason


def reason(
    *ended: Outcome,
    has_end: bool = True,
    stopping: bool = False,
    reconfiguring: bool = False,
    over_budget: bool = False,
    others_wait: bool = False,
    all_idle: bool = False,
) -> EndReason | None:
    """The decision, with nothing the matter unless said."""
    return end_reason(
        ended,
        has_end=has_end,
        stopping=stopping,
        reconfiguring=reconfiguring,
        over_budget=over_budget,
        others_wait=others_wait,
        all_idle=all_idle,
    )


def test_a_stop_comes_first() -> None:
    """Whatever else is the matter."""
    assert EndReason.STOP is reason(stopping=True, over_budget=True, others_wait=True)


@pytest.mark.parametrize(
    ("has_end", "expected"), [(False, EndReason.RECONFIGURATION), (True, EndReason.BUDGET)]
)
def test_new_tasks_end_shares_with_an_end_where_it_is_cheap_and_others_at_once(
    *, has_end: bool, expected: EndReason
) -> None:
    """A connector that asks for a plan at each new file would else unpack an old one again and again."""
    assert expected is reason(has_end=has_end, reconfiguring=True)
    assert EndReason.STOP is reason(has_end=has_end, reconfiguring=True, stopping=True)


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
    ("has_end", "ended", "expected"),
    [
        (True, [Outcome.FINISHED], None),
        (False, [Outcome.IDLE], EndReason.BUDGET),
        (False, [], None),
    ],
)
def test_a_slot_that_ends_without_having_an_end_gets_another_turn(
    *, has_end: bool, ended: Sequence[Outcome], expected: EndReason | None
) -> None:
    """Its siblings may never be idle; shares that can be finished are another matter."""
    assert expected is reason(*ended, has_end=has_end, over_budget=True)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, EndReason.IDLE),
        ({"over_budget": True, "others_wait": True}, EndReason.IDLE),
        ({"reconfiguring": True}, EndReason.RECONFIGURATION),
        ({"stopping": True}, EndReason.STOP),
    ],
)
def test_followed_shares_end_when_all_are_idle(
    given: Mapping[str, bool], expected: EndReason
) -> None:
    """Each reason ends them at once, so that the order matters only to who reads it."""
    assert expected is reason(Outcome.FINISHED, has_end=False, all_idle=True, **given)


def test_followed_shares_go_on_past_any_budget() -> None:
    """However long there is something for one of them, and as long as no one else needs the slots."""
    assert reason(has_end=False, over_budget=True) is None
    assert EndReason.BUDGET is reason(has_end=False, over_budget=True, others_wait=True)
