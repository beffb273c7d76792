"""What the driver does about bad records: it makes their topic, and tells how many there were."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from headrace.connect.connector import Plan, PlanRequest
from headrace.connect.errors import RetriableError, TaskFailedError
from headrace.connect.partition import SourcePartition
from headrace.connect.task import Split
from headrace.observe.events import (
    Amounts,
    ConnectorStarted,
    MicroBatchEnded,
    SlotProgress,
    Waiting,
)
from headrace.runtime.services import RunSpec
from headrace.task.slot_report import Outcome, Progress, SlotReport
from headrace.task.slot_work import SlotTicket
from runtime.desk import Desk


def report(_: SlotTicket, number: int) -> SlotReport:
    """A slot that has passed over some records."""
    progress = Progress(committed_records=10, dead_lettered=number + 1, skipped=2, quarantined=1)
    progress.polled_records = 12
    progress.polls.add(0.5)
    return SlotReport(outcome=Outcome.FINISHED, progress=progress.as_message())


@pytest.fixture
def desk() -> Iterator[Desk]:
    """A run with two slots' work, once."""
    planned = list[bool]()

    def plan(_: PlanRequest) -> Plan:
        if planned:
            return Plan()
        planned.append(True)
        splits = [[Split(partition=SourcePartition(source=name))] for name in "ab"]
        return Plan(shares=splits)

    made = Desk(report, plan)
    yield made
    made.channel.close()


def test_what_the_slots_passed_over_is_told_together(desk: Desk) -> None:
    """While they work, and when they have ended."""
    desk.run()

    (ended,) = desk.heard(MicroBatchEnded)
    assert isinstance(ended, MicroBatchEnded)
    assert ended.skipped == 4
    assert ended.quarantined == 2
    assert ended.dead_lettered
    progress = desk.heard(SlotProgress)[-1]
    assert isinstance(progress, SlotProgress)
    assert (progress.dead_lettered, progress.skipped) == (ended.dead_lettered, 4)
    assert progress.quarantined == 2


def test_what_each_slot_did_is_told_by_its_task(desk: Desk) -> None:
    """With the numbers of its own report."""
    desk.run()

    progress = desk.heard(SlotProgress)[-1]
    assert isinstance(progress, SlotProgress)
    counts = {
        each.task: (each.polled_records, each.committed_records, each.skipped)
        for each in progress.tasks
    }
    assert {0: (12, 10, 2), 1: (12, 10, 2)} == counts
    assert {Amounts(count=1, total=0.5, least=0.5, most=0.5)} == {
        each.polls for each in progress.tasks
    }


def test_what_the_connector_needs_is_there_before_it_starts(desk: Desk) -> None:
    """A broker that is away is waited for."""
    asked = list[str]()

    def prepare(spec: RunSpec) -> None:
        asked.append(spec.name)
        assert not desk.heard(ConnectorStarted)
        if len(asked) == 1:
            raise RetriableError("The broker is away.")

    desk.prepare = prepare

    run = desk.run()

    assert (["c", "c"], None) == (asked, run.failure)
    assert ["The broker is away."] == [
        each.reason for each in desk.heard(Waiting) if isinstance(each, Waiting)
    ]


def test_a_topic_that_cannot_be_made_fails_the_connector(desk: Desk) -> None:
    """Nothing is read before it is there."""

    def prepare(_: RunSpec) -> None:
        raise TaskFailedError("It cannot be made.")

    desk.prepare = prepare

    run = desk.run()

    assert "It cannot be made." == str(run.failure)
    assert not desk.heard(ConnectorStarted)
