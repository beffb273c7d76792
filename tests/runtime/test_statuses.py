"""What the status store says of a connector's tasks once it has ended, as in Kafka Connect."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack

import pytest

from headrace import __version__
from headrace.connect.connector import Plan, PlanRequest
from headrace.connect.partition import SourcePartition
from headrace.connect.task import Split
from headrace.observe.events import ConnectorIdle
from headrace.storage.memory import MemoryStatusStore
from headrace.storage.protocols import Status
from headrace.task.channel import ChannelClient
from headrace.task.slot_report import Outcome, SlotReport
from headrace.task.slot_work import SlotTicket
from headrace.task.sql.step import SqlStage
from runtime.desk import Desk, FakeEngine
from waiting import until

FINISHED = SlotReport(outcome=Outcome.FINISHED)
FAILED = SlotReport(outcome=Outcome.FAILED, reason="bad line", trace="it\nbroke")


def work(jobs: int, shares: int) -> Callable[[PlanRequest], Plan]:
    """Work for so many tasks, for so many plans."""
    left = [jobs]

    def plan(_: PlanRequest) -> Plan:
        left[0] -= 1
        splits = [[Split(partition=SourcePartition(n=n))] for n in range(shares)]
        return Plan(shares=splits) if left[0] >= 0 else Plan()

    return plan


Opened = Callable[..., Desk]


@pytest.fixture
def opened() -> Iterator[Opened]:
    """Makes desks and closes them."""
    made: list[Desk] = []

    def open_desk(
        *,
        plays: Callable[[SlotTicket, int], SlotReport | None],
        once: bool = True,
        jobs: int = 1,
        shares: int = 2,
    ) -> Desk:
        made.append(Desk(plays, work(jobs, shares), once=once))
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
    """They show as running until then, and those of an earlier run are none the less no one's."""
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


class LateEngine(FakeEngine):
    """Starts for as long as a test wants, and then claims one slot after the other."""

    def __init__(self) -> None:
        super().__init__(lambda *_: None)
        self.may_claim = [threading.Event(), threading.Event()]
        self.ending = threading.Event()

    def run(self, tickets: Sequence[SlotTicket], sql_stage: SqlStage | None = None) -> None:
        """Claim each ticket when it may be, and end all of them at last."""
        with ExitStack() as open_clients:
            clients = [open_clients.enter_context(ChannelClient(each)) for each in tickets]
            for client, may_claim in zip(clients, self.may_claim, strict=False):
                may_claim.wait(20)
                client.ask("claim", pid=1, host="nowhere", version=__version__)
            self.ending.wait(20)
            for client in clients:
                client.ask("end", report=FINISHED.as_message())


@pytest.mark.parametrize(
    ("shares", "seen"),
    [
        (2, ["UNASSIGNED UNASSIGNED", "RUNNING UNASSIGNED", "RUNNING RUNNING"]),
        (1, ["UNASSIGNED UNASSIGNED", "RUNNING RUNNING"]),
    ],
    ids=["both tasks have work", "one has none"],
)
def test_a_task_is_unassigned_until_its_slot_has_begun(
    opened: Opened, shares: int, seen: list[str]
) -> None:
    """Spark may take half a minute to start; whoever looks sees that nothing runs yet."""
    desk = opened(plays=lambda *_: FINISHED, once=False, shares=shares)
    engine = desk.engine = LateEngine()
    run = desk.start()

    def are(wanted: str) -> Callable[[], bool]:
        shown = dict(enumerate(wanted.split()))
        return lambda: {None: "RUNNING", **shown} == states(desk.statuses)

    for wanted, step in zip(seen, [*engine.may_claim, engine.ending], strict=False):
        until(are(wanted))
        step.set()
    engine.ending.set()
    until(lambda: desk.heard(ConnectorIdle))
    assert are("RUNNING RUNNING")()
    run.ask_to_stop()
    assert run.join(20.0)


def test_the_tasks_of_a_connector_with_nothing_to_do_run(opened: Opened) -> None:
    """No slot has to begin for that, and there is no Spark to wait for."""
    desk = opened(plays=lambda *_: FINISHED, once=False, jobs=0)
    run = desk.start()
    until(lambda: {None: "RUNNING", 0: "RUNNING", 1: "RUNNING"} == states(desk.statuses))
    run.ask_to_stop()
    assert run.join(20.0)
