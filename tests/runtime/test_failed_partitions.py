"""A source partition that a task cannot read on: the connector plans without it, and nothing else ends."""

from __future__ import annotations

from headrace.connect.connector import Plan, PlanRequest
from headrace.connect.errors import RetriableError, TaskFailedError
from headrace.connect.partition import SourceOffset, SourcePartition
from headrace.connect.task import Split
from headrace.observe.events import ConnectorFailedInPart, Replanned, TaskFailed, Waiting
from headrace.task.slot_report import Outcome, SlotReport
from runtime.desk import Desk

ONE, OTHER = SourcePartition(n=1), SourcePartition(n=2)
CORRUPT = "The batch at offset 3 is corrupt."
FINISHED = SlotReport(outcome=Outcome.FINISHED)
FAILED = SlotReport(
    outcome=Outcome.FAILED, reason=CORRUPT, partition={"n": 1}, source_offset={"at": 9}
)


def plan_of(*partitions: SourcePartition) -> Plan:
    """A plan that reads them, each in a slot."""
    return Plan(shares=[[Split(partition=each)] for each in partitions])


def told(request: PlanRequest) -> list[tuple[SourcePartition, str, SourceOffset | None]]:
    """The partitions that could not be read on, why, and the offset after what cannot be read."""
    return [(key, str(each), each.source_offset) for key, each in request.failed.items()]


def test_the_next_plan_is_told_of_it_once_and_the_others_are_read() -> None:
    """The connector is FAILED by its plan, and no task is; nothing is fenced, and nothing waited for."""
    asked = list[PlanRequest]()
    lost = TaskFailedError(CORRUPT)
    plans = iter(
        [
            plan_of(ONE, OTHER),
            Plan(shares=[[Split(partition=OTHER)]], failure=lost),
            Plan(failure=lost),
        ]
    )

    def plan(request: PlanRequest) -> Plan:
        asked.append(request)
        return next(plans)

    reports = iter([FAILED, FINISHED, FINISHED])
    desk = Desk(lambda *_: next(reports), plan)

    run = desk.run()

    assert [[], [(ONE, CORRUPT, {"at": 9})], []] == [told(each) for each in asked]
    assert CORRUPT == str(run.failure)
    assert 3 == len(desk.engine.tickets)
    assert 1 == len(desk.heard(ConnectorFailedInPart))
    assert [] == [*desk.heard(TaskFailed), *desk.heard(Replanned), *desk.heard(Waiting)]


def test_a_plan_that_raised_is_told_of_it_again() -> None:
    """The connector may not have taken note of it."""
    asked = list[PlanRequest]()
    lost = TaskFailedError(CORRUPT)
    plans = iter([plan_of(ONE), RetriableError("The source is away."), Plan(failure=lost)])

    def plan(request: PlanRequest) -> Plan:
        asked.append(request)
        made = next(plans)
        if isinstance(made, Exception):
            raise made
        return made

    run = Desk(lambda *_: FAILED, plan).run()

    once = [(ONE, CORRUPT, {"at": 9})]
    assert [[], once, once] == [told(each) for each in asked]
    assert CORRUPT == str(run.failure)


def test_a_plan_that_reads_it_again_at_once_fails_the_connector() -> None:
    """It would never end."""
    desk = Desk(lambda *_: FAILED, lambda _: plan_of(ONE))

    run = desk.run()

    assert CORRUPT == str(run.failure)
    assert 1 == len(desk.engine.tickets)


def test_a_task_that_fails_beside_it_fails_the_connector() -> None:
    """With its own reason."""
    reports = iter([FAILED, SlotReport(outcome=Outcome.FAILED, reason="All is lost.")])
    desk = Desk(lambda *_: next(reports), lambda _: plan_of(ONE, OTHER))

    run = desk.run()

    assert "Task c-1 failed: All is lost." == str(run.failure)
