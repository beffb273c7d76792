"""What the status store says of a connector's tasks once it has ended, as in Kafka Connect."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from headrace.connect.connector import Plan, PlanRequest
from headrace.connect.partition import SourcePartition
from headrace.connect.task import Split
from headrace.slot.work import Outcome, SlotReport, SlotTicket
from headrace.storage.memory import MemoryStatusStore
from headrace.storage.protocols import Status
from headrace.testing.waiting import until
from runtime.desk import Desk

FINISHED = SlotReport(outcome=Outcome.FINISHED)
FAILED = SlotReport(outcome=Outcome.FAILED, reason="bad line", trace="it\nbroke")


def two_shares(jobs: int) -> Callable[[PlanRequest], Plan]:
    """Work for two tasks, for so many plans."""
    left = [jobs]

    def plan(_: PlanRequest) -> Plan:
        left[0] -= 1
        shares = [[Split(partition=SourcePartition(n=n))] for n in (0, 1)]
        return Plan(shares=shares) if left[0] >= 0 else Plan()

    return plan


Opened = Callable[..., Desk]


@pytest.fixture
def opened() -> Iterator[Opened]:
    """Makes desks and closes them."""
    made: list[Desk] = []

    def open_desk(
        *, plays: Callable[[SlotTicket, int], SlotReport | None], once: bool = True
    ) -> Desk:
        made.append(Desk(plays, two_shares(1), once=once))
        return made[-1]

    yield open_desk
    for each in made:
        each.channel.close()


def states(statuses: MemoryStatusStore) -> dict[int | None, str]:
    """The state of the connector, under ``None``, and of its tasks."""
    return {task: status.state for task, status in statuses.statuses("c").items()}


def test_an_end_leaves_no_task_running(opened: Opened) -> None:
    """Each task that ran is unassigned, and so is the connector."""
    desk = opened(plays=lambda *_: FINISHED)
    desk.run()

    assert {None: "UNASSIGNED", 0: "UNASSIGNED", 1: "UNASSIGNED"} == states(desk.statuses)


def test_a_stop_leaves_no_task_running(opened: Opened) -> None:
    """They show as running until then, and those of an earlier run are none the less nobody's."""
    desk = opened(plays=lambda *_: FINISHED, once=False)
    desk.statuses.put("c", 7, Status(state="FAILED", worker_id="w", trace="of last week"))
    run = desk.start()
    until(lambda: "RUNNING" == states(desk.statuses).get(1))
    run.ask_to_stop()
    assert run.join(20.0)

    everybody = {None: "UNASSIGNED", 0: "UNASSIGNED", 1: "UNASSIGNED", 7: "UNASSIGNED"}
    assert everybody == states(desk.statuses)


def test_only_the_task_that_failed_shows_as_failed(opened: Opened) -> None:
    """It keeps its trace; its sibling runs no more, but has done nothing wrong."""
    desk = opened(plays=lambda _, index: FAILED if index else FINISHED)
    desk.run()

    assert {None: "FAILED", 0: "UNASSIGNED", 1: "FAILED"} == states(desk.statuses)
    assert "it\nbroke" == desk.statuses.statuses("c")[1].trace
