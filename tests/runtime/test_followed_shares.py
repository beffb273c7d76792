"""A plan whose shares are followed: its slots stay until all are idle, others wait, or the connector has another plan."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import pytest

from doubles.puppets import Puppet, puppet
from doubles.run_watcher import NoRunWatcher
from headrace import __version__
from headrace.connect.connector import ConnectorContext, Plan
from headrace.connect.partition import SourcePartition
from headrace.connect.task import Split
from headrace.observe.events import ConnectorIdle, MicroBatchStarted, Replanned, Waiting
from headrace.runtime.connector_run import ConnectorRun
from headrace.runtime.engine import Capacity
from headrace.runtime.services import Timing
from headrace.task.channel import ChannelClient
from headrace.task.slot_report import Outcome, Progress, SlotReport
from headrace.task.slot_work import EndReason, SlotTicket, SlotWork
from headrace.task.sql.step import SqlStage
from runtime.desk import SPEC, Desk, FakeEngine
from waiting import until

SHARES = [[Split(partition=SourcePartition(n=number))] for number in range(2)]
FOLLOWED = Plan(shares=SHARES, followed=True)
LINGER_SECONDS = 5.0
TIMING = Timing(idle_poll=0.01, grace=20.0, linger=LINGER_SECONDS, batch_budget=0.1)


@dataclass
class FollowingEngine(FakeEngine):
    """Plays two slots that report to be *idle* for as long as the test says, until they are asked to end.

    Those that are deaf go on, but for a lost token.
    """

    idle: list[float | None] = field(default_factory=lambda: [None, None])
    reasons: list[EndReason] = field(default_factory=list[EndReason])
    works: list[SlotWork] = field(default_factory=list[SlotWork])
    jobs: int = 0
    is_deaf: bool = False
    beats: int = 0
    threads: list[threading.Thread] = field(default_factory=list[threading.Thread])

    def __post_init__(self) -> None:
        super().__init__(lambda *_: None)

    def run(self, tickets: Sequence[SlotTicket], sql_stage: SqlStage | None = None) -> None:
        """Run the slots, each in a thread."""
        self.jobs += 1
        slots = [threading.Thread(target=self._slot, args=each) for each in enumerate(tickets)]
        self.threads += slots
        for each in slots:
            each.start()
        for each in slots:
            each.join()

    def _slot(self, number: int, ticket: SlotTicket) -> None:
        ticks = threading.Event()
        with ChannelClient(ticket) as client:
            claim = client.ask("claim", pid=1, host="nowhere", version=__version__)
            if not claim["granted"]:
                # The run was stopped before.
                return
            self.works.append(SlotWork.from_message(claim["work"]))
            reason, valid = None, True
            while valid and (reason is None or self.is_deaf):
                progress = Progress(idle_seconds=self.idle[number]).as_message()
                answer = client.ask("beat", progress=progress)
                reason, valid = answer.get("end", reason), answer["valid"]
                self.beats += 1
                ticks.wait(0.01)
            self.reasons.append(EndReason(reason))
            outcome = Outcome.IDLE if reason == EndReason.IDLE else Outcome.ASKED
            client.ask("end", report=SlotReport(outcome=outcome).as_message())


@dataclass
class Following:
    """A run of a connector that follows what it plans."""

    desk: Desk
    engine: FollowingEngine
    run: ConnectorRun
    context: ConnectorContext
    capacity: Capacity

    def stop(self) -> None:
        """Ask it to stop, and wait for that."""
        self.run.ask_to_stop()
        assert self.run.join(10.0)
        assert self.run.failure is None

    def wait_for_a_slot(self) -> None:
        """Wait, as another connector, until one is free or the slots of this one were asked to end."""
        if self.capacity.take(1, give_up=lambda: bool(self.engine.reasons)):
            self.capacity.give_back(1)

    def goes_on(self) -> bool:
        """Whether no slot has been asked to end after some more heartbeats."""
        beats = self.engine.beats
        until(lambda: self.engine.beats > beats + 20)
        return not self.engine.reasons


Started = Callable[..., Following]


@pytest.fixture
def started() -> Iterator[Started]:
    """Starts a run that gets the given plans, one after the other, and then empty ones."""
    desks, engines = list[Desk](), list[FollowingEngine]()

    def start(*plans: Plan, once: bool = False, timing: Timing = TIMING) -> Following:
        left = iter(plans)
        desk = Desk(lambda *_: None, lambda _: next(left, Plan()), timing=timing, once=once)
        desks.append(desk)
        engine = desk.engine = FollowingEngine()
        engines.append(engine)
        contexts = list[ConnectorContext]()
        puppet("c", Puppet(plan=desk.plan, started=contexts.append))
        services = desk.services()
        run = ConnectorRun(SPEC, services, watcher=NoRunWatcher())
        run.start()
        until(lambda: engine.beats)
        return Following(desk, engine, run, contexts[0], services.capacity)

    yield start
    # One that begins while its run ends learns that from the channel.
    for slot in [slot for each in engines for slot in each.threads]:
        slot.join(10.0)
    for each in desks:
        each.channel.close()


def test_slots_stay_until_all_have_been_idle_for_the_linger_time(started: Started) -> None:
    """One that is idle for long waits for its sibling; then no job runs, and the connector is asked for plans."""
    it = started(FOLLOWED)
    it.engine.idle = [10 * LINGER_SECONDS, None]
    assert it.goes_on()
    it.engine.idle = [10 * LINGER_SECONDS, LINGER_SECONDS / 2]
    assert it.goes_on()
    it.engine.idle = [10 * LINGER_SECONDS, LINGER_SECONDS]
    until(lambda: len(it.desk.heard(ConnectorIdle)) > 10)

    assert ([EndReason.IDLE] * 2, 1) == (it.engine.reasons, it.engine.jobs)
    assert [] == it.desk.heard(Replanned)
    it.stop()


def test_the_work_of_a_slot_says_that_its_share_is_followed(started: Started) -> None:
    """So that it stays; an idle polled task ends by itself."""
    it = started(FOLLOWED)
    until(lambda: len(it.engine.works) == 2)
    it.stop()

    for work in it.engine.works:
        assert (True, True, False) == (work.planned, work.followed, work.has_end)
        assert work.linger_seconds is None


def test_a_plan_with_work_after_an_idle_end_is_begun_at_once(started: Started) -> None:
    """It is no lack of progress that nothing came for a while, and nothing is said of it."""
    it = started(FOLLOWED, FOLLOWED)
    it.engine.idle = [LINGER_SECONDS, LINGER_SECONDS]
    until(lambda: it.engine.jobs == 2)
    until(lambda: it.desk.heard(ConnectorIdle))
    it.stop()

    assert [] == it.desk.heard(Waiting)


def test_shares_that_are_followed_in_vain_again_and_again_are_told_of(started: Started) -> None:
    """A connector that plans work where there is none would else start one Spark job after the other."""
    it = started(*[FOLLOWED] * 3)
    it.engine.idle = [LINGER_SECONDS, LINGER_SECONDS]
    until(lambda: it.desk.heard(Waiting))
    it.stop()

    assert 2 <= it.engine.jobs <= 3


def test_a_new_plan_that_the_connector_requests_ends_followed_shares_at_once(
    started: Started,
) -> None:
    """Busy ones too: what was found must not wait for them, and they can be resumed anywhere."""
    other = replace(FOLLOWED, shares=SHARES[:1])
    it = started(FOLLOWED, other)
    it.context.request_task_reconfiguration()
    until(lambda: len(it.desk.heard(MicroBatchStarted)) == 2)
    assert [EndReason.RECONFIGURATION] * 2 == it.engine.reasons
    it.stop()

    assert [2, 1] == [each.slots for each in it.desk.heard(MicroBatchStarted)]  # type: ignore[attr-defined]
    assert [] == it.desk.heard(Waiting)


def test_busy_followed_shares_end_when_others_wait_and_the_budget_is_over(
    started: Started,
) -> None:
    """Not before, however long they are busy; afterwards their connector waits for its turn."""
    it = started(FOLLOWED, FOLLOWED)
    over = time.monotonic() + 3 * TIMING.batch_budget
    until(lambda: time.monotonic() > over)
    assert it.goes_on()
    it.wait_for_a_slot()
    until(lambda: it.engine.jobs == 2)
    it.stop()

    assert [EndReason.BUDGET] * 2 == it.engine.reasons[:2]


def test_a_run_with_once_ends_when_nothing_is_left_after_an_idle_end(started: Started) -> None:
    """An idle end alone is not the end: what came meanwhile is planned."""
    it = started(FOLLOWED, FOLLOWED, once=True)
    it.engine.idle = [LINGER_SECONDS, LINGER_SECONDS]

    assert it.run.join(10.0)
    assert it.run.failure is None
    assert 2 == it.engine.jobs


@pytest.mark.parametrize("reason", [EndReason.IDLE, EndReason.BUDGET])
def test_a_slot_that_does_not_end_when_it_is_asked_is_given_up(
    started: Started, reason: EndReason
) -> None:
    """After the grace time, for whatever reason it was asked: nothing has to be read to an end first."""
    it = started(FOLLOWED, timing=replace(TIMING, grace=0.3))
    it.engine.is_deaf = True
    if reason is EndReason.IDLE:
        it.engine.idle = [LINGER_SECONDS, LINGER_SECONDS]
    else:
        it.wait_for_a_slot()
    until(lambda: it.desk.heard(Replanned))
    it.stop()

    assert {reason} == set(it.engine.reasons)
    assert ["Slots did not end within the grace period."] == [
        each.reason  # type: ignore[attr-defined]
        for each in it.desk.heard(Replanned)
    ]
