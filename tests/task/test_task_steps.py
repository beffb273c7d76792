"""The steps of a slot's task before its first record and after its last (KIP-618)."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import ClassVar

import pytest

from doubles.memory_sender import MemorySender
from doubles.puppets import numbered
from headrace.connect.errors import TaskFailedError
from headrace.connect.task import Polled, SourceTask, TaskContext
from headrace.task.connector_spec import BoundaryKind, Delivery
from headrace.task.slot_report import Outcome, Progress
from headrace.task.slot_work import SlotWork
from headrace.task.transaction_boundary import BoundaryRequests
from headrace.task.worker_task import WorkerTask
from task.loop import HeldLease
from task.test_worker_task import WORK, with_settings

STEPS: list[str] = []


class Stepping(SourceTask):
    """Notes its steps; fails in the one that *fails_in* names."""

    fails_in: ClassVar[str] = ""
    polls: ClassVar[list[Polled]] = []

    def initialize(self, context: TaskContext) -> None:
        """A step."""
        super().initialize(context)
        step("initialize")

    def start(self, config: Mapping[str, str]) -> None:
        """A step."""
        step("start")

    def poll(self) -> Polled:
        """A step."""
        step("poll")
        return self.polls.pop(0) if self.polls else None

    def commit(self) -> None:
        """A step."""
        step("commit")

    def stop(self) -> None:
        """A step."""
        step("stop")


def step(name: str) -> None:
    """Note it; fail if it is the one."""
    STEPS.append(name)
    if name == Stepping.fails_in:
        raise TaskFailedError(f"{name} fails.")


class SteppingSender(MemorySender):
    """Notes what is asked of it."""

    def open(self) -> None:
        """A step."""
        step("init transactions")

    def begin(self) -> None:
        """A step."""
        step("begin")
        super().begin()

    def close(self) -> None:
        """A step."""
        step("close")


class Driver:
    """Says that the token counts."""

    def ask(self, verb: str) -> dict[str, bool]:
        """A step."""
        step(f"ask {verb}")
        return {verb: True}


def run(work: SlotWork = WORK, **settings: object) -> WorkerTask:
    """A slot that has nothing after it, of a connector with these *settings*."""
    STEPS.clear()
    Stepping.polls = [numbered("t", 0, 1)]
    work = with_settings(dataclasses.replace(work, task_class=f"{__name__}:Stepping"), **settings)
    return WorkerTask(
        work,
        Driver(),  # type: ignore[arg-type]
        HeldLease(),  # type: ignore[arg-type]
        Progress(),
        make_sender=lambda *_, **__: SteppingSender(),
    )


def test_a_task_starts_behind_the_fence_and_begins_with_its_first_record(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Nothing of the task runs before its slot owns the id, and no transaction is open before a record."""
    monkeypatch.setattr(Stepping, "fails_in", "")
    slot = run()

    assert Outcome.FINISHED is slot.run()
    assert slot.close()
    before = ["init transactions", "ask valid", "initialize", "start", "poll", "begin"]
    assert [*before, "poll", "commit", "stop", "close"] == STEPS


@pytest.mark.parametrize(
    ("fails_in", "behind"),
    [
        ("init transactions", ["close"]),
        ("initialize", ["stop", "close"]),
        ("start", ["stop", "close"]),
        ("poll", ["commit", "stop", "close"]),
    ],
)
def test_whatever_fails_what_was_begun_is_ended(
    monkeypatch: pytest.MonkeyPatch, fails_in: str, behind: list[str]
) -> None:
    """A task is stopped if there is one, the producer is closed, and no transaction is left open."""
    monkeypatch.setattr(Stepping, "fails_in", fails_in)
    slot = run()

    with pytest.raises(TaskFailedError, match=f"{fails_in} fails"):
        slot.run()

    assert slot.close()
    assert [fails_in, *behind] == STEPS[STEPS.index(fails_in) :]
    assert "begin" not in STEPS


@pytest.mark.parametrize(
    ("delivery", "boundary", "has_one"),
    [
        (Delivery.EXACTLY_ONCE, BoundaryKind.CONNECTOR, True),
        (Delivery.EXACTLY_ONCE, BoundaryKind.POLL, False),
        (Delivery.EXACTLY_ONCE, BoundaryKind.INTERVAL, False),
        (Delivery.AT_LEAST_ONCE, BoundaryKind.INTERVAL, False),
    ],
)
def test_a_transaction_context_is_there_when_the_connector_places_the_ends(
    delivery: Delivery, boundary: BoundaryKind, *, has_one: bool
) -> None:
    """Otherwise it is None, so that a task can tell."""
    slot = run(delivery=delivery, boundary=boundary)
    Stepping.polls = []

    slot.run()

    assert slot._task is not None
    assert has_one is isinstance(slot._task.context.transaction, BoundaryRequests)


def test_a_transaction_that_is_left_open_at_the_end_of_a_run_is_told(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Nothing of it is there, and nothing of it counts as read."""
    slot = run(
        dataclasses.replace(WORK, planned=False, once=True, linger_seconds=0.0),
        boundary=BoundaryKind.CONNECTOR,
    )

    assert Outcome.IDLE is slot.run()
    assert slot.close()
    assert "read again by the next run" in caplog.text
    assert "commit" not in STEPS
