"""A plan that always has work although nothing comes of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest

from doubles.puppets import SOURCE
from headrace.connect.connector import Plan, PlanRequest
from headrace.connect.partition import SourceOffset, SourcePartition
from headrace.connect.task import Split
from headrace.observe.events import Waiting
from headrace.offsets.store import OffsetSnapshot
from headrace.runtime.backoff import NoProgressGuard
from headrace.runtime.micro_batch import BatchResult
from headrace.task.slot_report import Outcome, SlotReport
from runtime.desk import Desk
from waiting import until

FINISHED = SlotReport(outcome=Outcome.FINISHED)
WORK = Plan(shares=[[Split(partition=SOURCE)]])
OTHER = SourcePartition(source="other")


def offsets(at: int) -> OffsetSnapshot:
    """What is committed."""
    stored: dict[SourcePartition, SourceOffset] = {SOURCE: {"next": at}}
    return OffsetSnapshot(stored)


def ended(records: int = 0, *, clean: bool = True, lost: str | None = None) -> BatchResult:
    """How a micro-batch ended."""
    return BatchResult(reports=[FINISHED], clean=clean, lost=lost, committed_records=records)


def test_work_that_changed_nothing_is_waited_for_once_before_it_is_done_again() -> None:
    """And reported once, however long it lasts."""
    guard = NoProgressGuard()
    seen: list[tuple[bool, bool]] = []
    for _ in range(2):
        guard.ended(ended(), offsets(1))
        seen.append((guard.must_wait(offsets(1)), guard.is_unreported()))

    assert [(True, True), (True, False)] == seen
    assert not guard.must_wait(offsets(1))


@pytest.mark.parametrize(("records", "now"), [(1, 1), (0, 2)])
def test_a_record_or_an_offset_is_progress(records: int, now: int) -> None:
    """After it, a standstill is news again."""
    guard = NoProgressGuard()
    guard.ended(ended(), offsets(1))
    assert (True, True) == (guard.must_wait(offsets(1)), guard.is_unreported())
    guard.ended(ended(records), offsets(1))

    assert not guard.must_wait(offsets(now))
    guard.ended(ended(), offsets(now))
    assert (True, True) == (guard.must_wait(offsets(now)), guard.is_unreported())


@pytest.mark.parametrize("result", [None, ended(clean=False), ended(lost="killed")])
def test_a_micro_batch_that_was_cut_short_says_nothing_of_the_plan(
    result: BatchResult | None,
) -> None:
    """It is planned again for another reason, which has been reported."""
    guard = NoProgressGuard()
    guard.ended(result, offsets(1))

    assert not guard.must_wait(offsets(1))


def followed(*outcomes: Outcome) -> BatchResult:
    """How a micro-batch ended that brought nothing, although its slots followed their shares."""
    reports = [SlotReport(outcome=each) for each in outcomes]
    return BatchResult(reports=reports, clean=True, lost=None, committed_records=0)


IDLE = (Outcome.IDLE, Outcome.IDLE)
ASKED = (Outcome.IDLE, Outcome.ASKED)


@pytest.mark.parametrize(
    ("ends", "at", "waits"),
    [
        ((IDLE,), (1,), False),
        ((IDLE, IDLE), (1, 1), True),
        ((IDLE, IDLE), (1, 2), False),
        ((ASKED, ASKED, ASKED), (1, 1, 1), False),
        ((IDLE, ASKED, IDLE), (1, 1, 1), True),
        (((Outcome.FINISHED,), (Outcome.FINISHED,)), (1, 1), True),
    ],
)
def test_followed_shares_that_end_are_no_standstill_before_they_were_idle_in_vain_twice(
    ends: Sequence[Sequence[Outcome]], at: Sequence[int], *, waits: bool
) -> None:
    """What comes next may be there a moment after their end; who is asked to end has had no time to find it."""
    guard = NoProgressGuard()
    seen = [False]
    for outcomes, offset in zip(ends, at, strict=True):
        guard.ended(followed(*outcomes), offsets(offset), followed=True)
        seen.append(guard.must_wait(offsets(offset)))

    assert [False] * (len(seen) - 1) == seen[:-1]
    assert waits == seen[-1]


# ------------------------------------------------------------------ in a run


@pytest.fixture
def desk() -> Iterator[Desk]:
    """A connector that always plans the same, and whose slots are done without anything committed."""
    made = Desk(lambda *_: FINISHED, lambda _: WORK, once=False)
    yield made
    made.channel.close()


def reasons(desk: Desk) -> list[str]:
    """Why the connector had to wait."""
    return [each.reason for each in desk.events if isinstance(each, Waiting)]


def test_a_plan_without_progress_backs_off_and_is_told_once(desk: Desk) -> None:
    """It would else start hundreds of Spark jobs a second without a word."""
    run = desk.start()
    until(lambda: len(desk.engine.tickets) > 2)
    run.ask_to_stop()
    assert run.join(20.0)

    assert 3 == len(desk.engine.tickets)
    (reason,) = reasons(desk)
    assert "without committing a record or an offset" in reason


def test_work_that_needs_no_second_try_is_not_waited_for(desk: Desk) -> None:
    """A file may be empty or gone: the next plan leaves it out, or has other work."""
    plans = iter([WORK, Plan(offsets={OTHER: {"next": 1}}), WORK])
    desk.plan = lambda _: next(plans, Plan())
    desk.once = True
    desk.run()

    assert 2 == len(desk.engine.tickets)
    assert [] == reasons(desk)


def test_tasks_see_the_offsets_that_their_plan_has_changed(desk: Desk) -> None:
    """They are committed before the work begins, so an older snapshot would contradict the store."""
    plans = iter([Plan(shares=WORK.shares, offsets={OTHER: {"next": 5}})])
    seen: list[object] = []

    def plan(request: PlanRequest) -> Plan:
        seen.append(dict(request.offsets.known()))
        return next(plans, Plan())

    def plays(_: object, __: int) -> SlotReport:
        (batch,) = set(desk.channel._batches.values())
        seen.append(dict(batch.offsets))
        return FINISHED

    desk.plan, desk.once = plan, True
    desk.engine._plays = plays
    desk.run()

    committed = {OTHER: {"next": 5}}
    assert [{}, committed, committed] == seen
