"""One connector's run, with a data plane that the test plays and everything else in memory."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import pytest

from headrace.connect.connector import Plan, PlanRequest
from headrace.connect.errors import RetriableError
from headrace.connect.task import Offsets, Split
from headrace.observe.events import (
    ConnectorFailed,
    ConnectorStopped,
    Replanned,
    TaskFailed,
    Waiting,
)
from headrace.runtime.services import RunSpec
from headrace.slot.channel import ChannelClient
from headrace.slot.work import (
    Outcome,
    SlotReport,
    SlotTicket,
)
from headrace.storage.protocols import TaskCount
from headrace.testing.puppets import SOURCE
from headrace.testing.waiting import until
from runtime.desk import Desk, FakeEngine

FINISHED = SlotReport(outcome=Outcome.FINISHED)


def work_for(jobs: int) -> Callable[[PlanRequest], Plan]:
    """One split, for so many plans."""
    left = [jobs]

    def plan(_: PlanRequest) -> Plan:
        left[0] -= 1
        return Plan(shares=[[Split(partition=SOURCE)]]) if left[0] >= 0 else Plan()

    return plan


@pytest.fixture
def desks() -> Iterator[list[Desk]]:
    """Closed at the end."""
    made: list[Desk] = []
    yield made
    for each in made:
        each.channel.close()


def test_the_tokens_of_a_lost_job_are_withdrawn_before_its_ids_are_fenced(
    desks: list[Desk],
) -> None:
    """A process that cannot be fenced yet must not begin after the fence."""
    plays = iter([None, FINISHED])
    desk = Desk(lambda *_: next(plays), work_for(2))
    desks.append(desk)
    valid: list[bool] = []

    def fence(_: RunSpec, ids: Sequence[str]) -> None:
        for ticket in desk.engine.tickets:
            with ChannelClient(ticket) as client:
                valid.append(client.ask("valid")["valid"])
        desk.done.append(list(ids))

    desk.fence = fence
    run = desk.run()

    assert run.failure is None
    assert [["g-c-0", "g-c-1"], ["g-c-0", "g-c-1"]] == desk.done
    assert [False] == valid


def test_the_slot_count_is_stored_before_the_first_slot_starts(desks: list[Desk]) -> None:
    """Whoever comes after a crash knows how many ids may be written with."""
    seen: list[TaskCount | None] = []

    def plays(_: SlotTicket, __: int) -> SlotReport:
        seen.append(desk.configs.task_count("c"))
        return FINISHED

    desk = Desk(plays, work_for(1))
    desks.append(desk)
    desk.run()

    assert [TaskCount(slots=2, clean=False)] == seen


def test_nothing_is_fenced_after_a_clean_end(desks: list[Desk]) -> None:
    """Every slot has confirmed its end."""
    first = Desk(lambda *_: FINISHED, work_for(1))
    first.run()
    second = Desk(lambda *_: FINISHED, work_for(1), configs=first.configs)
    desks += [first, second]
    second.run()

    assert TaskCount(slots=2, clean=True) == first.configs.task_count("c")
    assert [("fenced", [])] == second.done


def test_after_an_unclean_end_the_larger_generation_is_fenced(desks: list[Desk]) -> None:
    """Slots of the time when tasks.max was higher may still be writing."""
    desk = Desk(lambda *_: FINISHED, work_for(1), max_tasks=1)
    desks.append(desk)
    desk.configs.put_task_count("c", TaskCount(slots=3, clean=False))
    desk.run()

    assert [("fenced", ["g-c-0", "g-c-1", "g-c-2"])] == desk.done


def test_a_slot_that_left_its_transaction_open_is_fenced(desks: list[Desk]) -> None:
    """It says so in its last word."""
    reports = iter([replace(FINISHED, outcome=Outcome.REPLAN, clean=False, reason="x"), FINISHED])
    desk = Desk(lambda *_: next(reports), work_for(2))
    desks.append(desk)
    desk.run()

    assert 2 == len(desk.done)
    assert ["x"] == [each.reason for each in desk.heard(Replanned)]  # type: ignore[attr-defined]


def test_a_stop_that_cannot_fence_ends_all_the_same_and_leaves_it_to_the_next_start(
    desks: list[Desk],
) -> None:
    """The broker may be away; the process must not stay for that."""
    desk = Desk(lambda *_: None, work_for(99), once=False)
    desks.append(desk)
    stopping = threading.Event()

    def fence(_: RunSpec, __: Sequence[str]) -> None:
        if stopping.is_set():
            raise RetriableError("The broker is away.")

    desk.fence = fence
    run = desk.start()
    until(lambda: desk.heard(Replanned))
    stopping.set()
    run.ask_to_stop()

    assert run.join(10.0)
    assert run.failure is None
    assert TaskCount(slots=2, clean=False) == desk.configs.task_count("c")
    assert desk.heard(ConnectorStopped)


def test_an_outage_is_waited_out_and_told(desks: list[Desk]) -> None:
    """A running connector gives up for no outage."""
    desk = Desk(lambda *_: FINISHED, work_for(1))
    desks.append(desk)
    failures = iter([RetriableError("away"), RetriableError("away still")])

    def fence(_: RunSpec, __: Sequence[str]) -> None:
        failure = next(failures, None)
        if failure is not None:
            raise failure

    desk.fence = fence
    run = desk.run()

    assert run.failure is None
    assert ["away", "away still"] == [each.reason for each in desk.heard(Waiting)]  # type: ignore[attr-defined]


def test_offsets_whose_commit_failed_are_fenced_before_they_are_read(desks: list[Desk]) -> None:
    """The transaction may still be open, and hide what is behind it."""

    def plan(request: PlanRequest) -> Plan:
        known = request.offsets.known()
        return Plan() if known else Plan(offsets={SOURCE: {"next": 1}})

    desk = Desk(lambda *_: FINISHED, plan)
    desks.append(desk)
    failures = iter([RetriableError("lost the answer")])

    def commit(spec: RunSpec, offsets: Offsets) -> None:
        failure = next(failures, None)
        if failure is not None:
            raise failure
        desk.done.append("committed")
        desk.offsets.put(spec.name, offsets)

    desk.commit = commit
    desk.run()

    fenced = ("fenced", ["g-c-0", "g-c-1"])
    assert [fenced, fenced, "committed"] == desk.done


def test_a_slot_of_another_version_fails_the_connector_with_a_sentence(desks: list[Desk]) -> None:
    """Planning again would not help, and the executors' logs are far away."""
    desk = Desk(lambda *_: None, work_for(99))
    desks.append(desk)

    class OldEngine(FakeEngine):
        def run(self, tickets: Sequence[SlotTicket]) -> None:
            for ticket in tickets:
                with ChannelClient(ticket) as client:
                    client.ask("claim", pid=1, host="there", version="0.0.1")

    desk.engine = OldEngine(desk.plays)
    run = desk.run()

    assert "slot on there has headrace 0.0.1" in str(run.failure)
    assert "install the same version on the executors" in str(run.failure)


def test_a_failed_task_ends_the_connector_and_both_are_told(desks: list[Desk]) -> None:
    """With the task's own reason."""
    desk = Desk(lambda *_: SlotReport(outcome=Outcome.FAILED, reason="bad line"), work_for(9))
    desks.append(desk)
    desk.run()

    assert ["bad line"] == [each.reason for each in desk.heard(TaskFailed)]  # type: ignore[attr-defined]
    assert ["Task c-0 failed: bad line"] == [
        each.reason
        for each in desk.heard(ConnectorFailed)  # type: ignore[attr-defined]
    ]
