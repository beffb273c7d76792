"""What a connector that has ended leaves: nothing that can write, and a count to fence by."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from doubles.puppets import SOURCE, Puppet, puppet
from doubles.run_watcher import NoRunWatcher
from headrace.connect.connector import Plan
from headrace.connect.task import Offsets, Split
from headrace.observe.events import ConnectorFailed
from headrace.runtime.connector_run import ConnectorRun
from headrace.storage.memory import MemoryStatusStore
from headrace.storage.protocols import (
    Status,
    TaskCount,
)
from headrace.task.connector_spec import Delivery
from headrace.task.slot_report import Outcome, SlotReport
from runtime.desk import SPEC, Desk

FINISHED = SlotReport(outcome=Outcome.FINISHED)
FAILED = SlotReport(outcome=Outcome.FAILED, reason="bad line")
FENCED = ("fenced", ["g-c-0", "g-c-1"])
WORK = Plan(shares=[[Split(partition=SOURCE)]])


@pytest.fixture
def desks() -> Iterator[list[Desk]]:
    """Closed at the end."""
    made: list[Desk] = []
    yield made
    for each in made:
        each.channel.close()


def reasons(desk: Desk) -> list[str]:
    """Why the connector failed."""
    return [each.reason for each in desk.events if isinstance(each, ConnectorFailed)]


def test_a_failure_fences_what_was_left_open(desks: list[Desk]) -> None:
    """A slot that kept its transaction would block readers until the broker ends it."""
    desk = Desk(lambda *_: replace(FAILED, clean=False), lambda _: WORK)
    desks.append(desk)
    desk.run()

    assert [FENCED, FENCED] == desk.done


def test_a_failure_after_which_nothing_is_open_fences_nothing(desks: list[Desk]) -> None:
    """Every slot has confirmed that."""
    desk = Desk(lambda *_: FAILED, lambda _: WORK)
    desks.append(desk)
    desk.run()

    assert [FENCED] == desk.done


@pytest.mark.parametrize("clean", [False, True])
def test_what_is_committed_is_written_again_behind_what_was_aborted(
    desks: list[Desk], *, clean: bool
) -> None:
    """A worker of Kafka Connect may come next, and take an offset for the newest that was never committed."""
    written: list[Offsets] = []
    desk = Desk(lambda *_: replace(FAILED, clean=clean), lambda _: WORK)
    desks.append(desk)
    desk.offsets.put("c", {SOURCE: {"n": 7}})
    desk.commit = lambda _, offsets: written.append(offsets)
    desk.run()

    assert ([] if clean else [{SOURCE: {"n": 7}}]) == written


def test_a_fence_that_fails_hides_no_reason(desks: list[Desk]) -> None:
    """It is left to the next start."""
    desk = Desk(lambda *_: replace(FAILED, clean=False), lambda _: WORK)
    desks.append(desk)
    fences = iter([None])

    def fence(*_: object, **__: object) -> None:
        if next(fences, "again") is not None:
            raise ValueError("not allowed")

    desk.fence = fence
    run = desk.run()

    assert "Task c-0 failed: bad line" == str(run.failure)
    assert TaskCount(slots=2) == desk.configs.task_count("c")


def test_a_status_that_cannot_be_written_hides_no_reason(desks: list[Desk]) -> None:
    """The failure is reported before, and what is left open is fenced none the less."""
    reported: list[int] = []

    class FullDisk(MemoryStatusStore):
        def put(self, connector: str, task: int | None, status: Status) -> None:
            if status.state in ("FAILED", "UNASSIGNED") and task is None:
                reported.append(len(reasons(desk)))
                raise OSError("no space left")
            super().put(connector, task, status)

    desk = Desk(lambda *_: replace(FAILED, clean=False), lambda _: WORK, statuses=FullDisk())
    desks.append(desk)
    run = desk.run()

    assert "Task c-0 failed: bad line" == str(run.failure)
    assert ["Task c-0 failed: bad line"] == reasons(desk)
    assert [1] == reported
    assert [FENCED, FENCED] == desk.done


@pytest.mark.parametrize("report", [FINISHED, FAILED])
def test_at_least_once_leaves_what_fencing_needs_to_know(
    desks: list[Desk], report: SlotReport
) -> None:
    """It fences nothing; slots of an exactly-once run before it may still have to be."""
    plans = iter([WORK])
    desk = Desk(lambda *_: report, lambda _: next(plans, Plan()))
    desks.append(desk)
    left = TaskCount(slots=7)
    desk.configs.put_task_count("c", left)
    puppet("c", Puppet(plan=desk.plan))
    run = ConnectorRun(
        replace(SPEC, delivery=Delivery.AT_LEAST_ONCE), desk.services(), watcher=NoRunWatcher()
    )
    run.start()

    assert run.join(20.0)
    assert left == desk.configs.task_count("c")
    assert [] == desk.done
