"""Why Spark could not do a job, where it says so late, or only when it has tried a slot again."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import pytest

from doubles.puppets import SOURCE, Puppet, puppet
from doubles.run_watcher import NoRunWatcher
from headrace import __version__
from headrace.connect.connector import Plan
from headrace.connect.errors import TaskFailedError
from headrace.connect.task import Split
from headrace.observe.events import MicroBatchStarted, SlotProgress
from headrace.runtime.connector_run import ConnectorRun
from headrace.task.channel import ChannelClient
from headrace.task.slot_report import Outcome, SlotReport
from headrace.task.slot_work import SlotTicket
from headrace.task.sql.step import FrameTypes, SqlStage, SqlStep
from runtime.desk import SPEC, Desk, FakeEngine
from waiting import until

LOST = SlotReport(outcome=Outcome.REPLAN, clean=False, reason="lost")
BETWEEN = SqlStage(step=SqlStep(where="true"), types=FrameTypes())


class ScriptedEngine(FakeEngine):
    """Plays slots that are lost, and then calls *then* with the number of the job."""

    def __init__(self, then: Callable[[int, SlotTicket], None]) -> None:
        super().__init__(lambda *_: LOST)
        self._then = then
        self._jobs = 0

    def run(self, tickets: Sequence[SlotTicket], sql_stage: SqlStage | None = None) -> None:
        """Lose each slot, then call *then*."""
        self._jobs += 1
        job = self._jobs
        super().run(tickets, sql_stage)
        self._then(job, tickets[0])


@pytest.fixture
def desk() -> Iterator[Desk]:
    """A run that has always the same to do."""
    made = Desk(lambda *_: LOST, lambda _: Plan(shares=[[Split(partition=SOURCE)]]))
    yield made
    made.channel.close()


def granted(ticket: SlotTicket) -> bool:
    """Whether the work of *ticket*'s token is given to the caller now."""
    with ChannelClient(ticket) as client:
        return client.ask("claim", pid=2, host="nowhere", version=__version__)["granted"] is True


def test_an_error_that_comes_when_the_next_micro_batch_is_under_way_fails_the_connector(
    desk: Desk,
) -> None:
    """It is not only heard while its own job's slots are waited for."""
    second, has_raised = threading.Event(), threading.Event()

    def then(job: int, _: SlotTicket) -> None:
        if job == 1:
            assert second.wait(20.0)
            has_raised.set()
            raise TaskFailedError("Spark does not take it.")
        second.set()
        assert has_raised.wait(20.0)

    desk.engine = ScriptedEngine(then)
    run = desk.run()

    assert "Spark does not take it." == str(run.failure)


def test_a_slot_that_is_lost_again_is_given_up_when_spark_has_said_why(desk: Desk) -> None:
    """Until then its reader is granted to each attempt, and the job is waited for."""
    asked = list[bool]()

    def then(job: int, ticket: SlotTicket) -> None:
        if job == 1:
            return
        looks = len(desk.heard(SlotProgress))
        until(lambda: len(desk.heard(SlotProgress)) > looks + 1)
        asked.extend(granted(ticket.for_reading()) for _ in range(3))
        raise TaskFailedError("Spark does not take it.")

    desk.engine = ScriptedEngine(then)
    puppet("c", Puppet(plan=desk.plan))
    run = ConnectorRun(replace(SPEC, sql_stage=BETWEEN), desk.services(), watcher=NoRunWatcher())
    run.start()

    assert run.join(20.0)
    assert "Spark does not take it." == str(run.failure)
    assert [True, True, True] == asked
    assert 2 == len(desk.heard(MicroBatchStarted))
