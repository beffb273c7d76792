"""One connector's run, with a data plane that the test plays and everything else in memory."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace

import pytest

from doubles.puppets import SOURCE, PolledPuppet, Puppet, puppet
from doubles.run_watcher import NoRunWatcher
from headrace import __version__
from headrace.connect.connector import ConnectorContext, Plan, PlanRequest
from headrace.connect.errors import RetriableError, TaskFailedError
from headrace.connect.partition import SourcePartition
from headrace.connect.task import Offsets, Split
from headrace.kafka.producer import Waiting as WaitingForKafka
from headrace.observe.events import (
    ConnectorFailed,
    ConnectorFailedInPart,
    ConnectorRecovered,
    ConnectorStopped,
    MicroBatchEnded,
    MicroBatchStarted,
    Queued,
    Replanned,
    Resumed,
    SlotProgress,
    TaskFailed,
    Waiting,
)
from headrace.observe.secret_masking import Secrets
from headrace.runtime.connector_run import ConnectorRun
from headrace.runtime.engine import Capacity, OtherVersionError
from headrace.runtime.services import MembershipError, RunSpec, Timing
from headrace.storage.protocols import TaskCount
from headrace.task.channel import ChannelClient
from headrace.task.connector_spec import BoundaryKind, SenderKind
from headrace.task.slot_report import Outcome, Progress, SlotReport
from headrace.task.slot_work import SlotTicket
from headrace.task.sql.step import SqlStage
from runtime.desk import SPEC, Desk, FakeEngine
from waiting import until

FINISHED = SlotReport(outcome=Outcome.FINISHED)


def work_for(jobs: int) -> Callable[[PlanRequest], Plan]:
    """One split, for so many plans."""
    left = [jobs]

    def plan(_: PlanRequest) -> Plan:
        left[0] -= 1
        return Plan(shares=[[Split(partition=SOURCE)]]) if left[0] >= 0 else Plan()

    return plan


def ask_until_refused(waiting: WaitingForKafka) -> None:
    """As a fencing that a broker does not answer."""
    while True:
        waiting("the fencing of 'g-c-0'")
        time.sleep(0.01)


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

    def fence(ids: Collection[str], _: WaitingForKafka) -> None:
        for ticket in desk.engine.tickets:
            with ChannelClient(ticket) as client:
                valid.append(client.ask("valid")["valid"])
        desk.done.append(list(ids))

    desk.fence = fence
    run = desk.run()

    assert run.failure is None
    assert [["g-c-0", "g-c-1"], ["g-c-0", "g-c-1"]] == desk.done
    assert [False] == valid


def test_what_sends_instead_of_the_wire_is_logged_once(
    desks: list[Desk], caplog: pytest.LogCaptureFixture
) -> None:
    """At the start of the connector, with the reason, and without a secret that is in it."""
    desk = Desk(lambda *_: FINISHED, work_for(2))
    desks.append(desk)
    desk.spec = replace(
        SPEC,
        not_by_wire="partitioner: hush-7391-hush is not supported here.",
        secrets=Secrets(values={"hush-7391-hush": "${file:a:b}"}),
    )
    with caplog.at_level(logging.INFO):
        assert desk.run().failure is None

    [told] = [each for each in caplog.messages if "the client library's producer sends" in each]
    assert told.startswith("Connector c: ")
    assert "partitioner: " in told
    assert "set headrace.sender to client" in told
    assert "hush" not in told
    assert "${file:a:b}" in told


def test_settings_that_a_groups_sender_cannot_have_are_warned_of(
    desks: list[Desk], caplog: pytest.LogCaptureFixture
) -> None:
    """There is no other sender that commits to a group."""
    desk = Desk(lambda *_: FINISHED, work_for(2))
    desks.append(desk)
    desk.spec = replace(SPEC, sender=SenderKind.WIRE, not_by_wire="retries: It can only be 3.")
    assert desk.run().failure is None

    [told] = [each for each in caplog.records if "have no effect" in each.getMessage()]
    assert logging.WARNING == told.levelno
    assert "retries: It can only be 3." in told.getMessage()


def test_the_slot_count_is_stored_before_the_first_slot_starts(desks: list[Desk]) -> None:
    """Whoever comes after a crash knows how many ids may be written with."""
    seen: list[TaskCount | None] = []

    def plays(_: SlotTicket, __: int) -> SlotReport:
        seen.append(desk.configs.task_count("c"))
        return FINISHED

    desk = Desk(plays, work_for(1))
    desks.append(desk)
    desk.run()

    assert [TaskCount(slots=2)] == seen


def test_a_start_fences_after_a_clean_end_too(desks: list[Desk]) -> None:
    """A state file knows of its own worker alone; another one may have left writers. Later rounds fence nothing."""
    first = Desk(lambda *_: FINISHED, work_for(1))
    first.run()
    second = Desk(lambda *_: FINISHED, work_for(3), configs=first.configs)
    desks += [first, second]
    second.run()

    assert [("fenced", ["g-c-0", "g-c-1"])] == second.done


def test_after_an_unclean_end_the_larger_generation_is_fenced(desks: list[Desk]) -> None:
    """Slots of the time when tasks.max was higher may still be writing."""
    desk = Desk(lambda *_: FINISHED, work_for(1), max_tasks=1)
    desks.append(desk)
    desk.configs.put_task_count("c", TaskCount(slots=3))
    desk.run()

    assert [("fenced", ["g-c-0", "g-c-1", "g-c-2"])] == desk.done


def test_a_slot_that_left_its_transaction_open_is_fenced(desks: list[Desk]) -> None:
    """It says so in its final report."""
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

    def fence(_: Collection[str], __: WaitingForKafka) -> None:
        if stopping.is_set():
            raise RetriableError("The broker is away.")

    desk.fence = fence
    run = desk.start()
    until(lambda: desk.heard(Replanned))
    stopping.set()
    run.ask_to_stop()

    assert run.join(10.0)
    assert run.failure is None
    assert TaskCount(slots=2) == desk.configs.task_count("c")
    assert desk.heard(ConnectorStopped)


def test_an_outage_is_waited_out_and_told(desks: list[Desk]) -> None:
    """A running connector gives up for no outage."""
    desk = Desk(lambda *_: FINISHED, work_for(1))
    desks.append(desk)
    failures = iter([RetriableError("away"), RetriableError("away still")])

    def fence(_: Collection[str], __: WaitingForKafka) -> None:
        failure = next(failures, None)
        if failure is not None:
            raise failure

    desk.fence = fence
    run = desk.run()

    assert run.failure is None
    assert ["away", "away still"] == [each.reason for each in desk.heard(Waiting)]  # type: ignore[attr-defined]


def test_offsets_whose_commit_failed_are_fenced_before_they_are_read(desks: list[Desk]) -> None:
    """The transaction may still be open, and hide what is after it."""

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
    # Once more at the end: what became of the first transaction is not known.
    assert [fenced, fenced, "committed", "committed"] == desk.done


class OldEngine(FakeEngine):
    """Slots there have another version, until a test installs the right one."""

    version = "0.0.1"

    def run(self, tickets: Sequence[SlotTicket], sql_stage: SqlStage | None = None) -> None:
        """Claim as such a slot does, and as others from then on."""
        if self.version == __version__:
            super().run(tickets)
            return
        for ticket in tickets:
            with ChannelClient(ticket) as client:
                client.ask("claim", pid=1, host="there", version=self.version)


def test_slots_of_another_version_are_waited_for(desks: list[Desk]) -> None:
    """In a rolling upgrade they will have the right one: the connector goes on then, and nothing has failed."""
    desk = Desk(lambda *_: FINISHED, work_for(99), once=False)
    desks.append(desk)
    desk.engine = old = OldEngine(desk.plays)
    run = desk.start()
    until(lambda: 1 < len(desk.heard(Replanned)))
    waiting, problem = desk.statuses.statuses("c")[0], desk.channel.versions.problem
    old.version = __version__
    until(lambda: "RUNNING" == desk.statuses.statuses("c")[0].state)
    begun, problem_then = desk.statuses.statuses("c")[0], desk.channel.versions.problem
    until(lambda: any(each.slots for each in desk.heard(MicroBatchStarted)))  # type: ignore[attr-defined]
    run.ask_to_stop()
    assert run.join(20.0)

    assert "UNASSIGNED" == waiting.state
    assert "Tasks on there have headrace 0.0.1" in str(waiting.trace)
    assert problem == waiting.trace
    assert begun.trace is None
    # What was refused there is remembered; the slots that begin are elsewhere.
    assert problem_then == problem
    assert run.failure is None
    assert not desk.heard(TaskFailed)


def test_slots_that_could_not_even_ask_are_waited_for(desks: list[Desk]) -> None:
    """Another version may know no channel, or another one: the engine says so at the end of the job."""
    desk = Desk(lambda *_: FINISHED, work_for(99), once=False)
    desks.append(desk)

    class MuteEngine(OldEngine):
        def run(self, tickets: Sequence[SlotTicket], sql_stage: SqlStage | None = None) -> None:
            if self.version != __version__:
                raise OtherVersionError({0: ("there", self.version)})
            super().run(tickets)

    desk.engine = old = MuteEngine(desk.plays)
    run = desk.start()
    until(lambda: 1 < len(desk.heard(Replanned)))
    waiting, problem = desk.statuses.statuses("c")[0], desk.channel.versions.problem
    old.version = __version__
    until(lambda: "RUNNING" == desk.statuses.statuses("c")[0].state)
    run.ask_to_stop()
    assert run.join(20.0)

    assert "UNASSIGNED" == waiting.state
    assert "Tasks on there have headrace 0.0.1" in str(waiting.trace)
    assert problem == waiting.trace
    assert run.failure is None


def test_a_run_that_is_to_end_fails_where_slots_have_another_version(desks: list[Desk]) -> None:
    """No one asks for its health, and the executors' logs are far away."""
    desk = Desk(lambda *_: None, work_for(99))
    desks.append(desk)
    desk.engine = OldEngine(desk.plays)
    run = desk.run()

    assert "Tasks on there have headrace 0.0.1" in str(run.failure)
    assert f"install headrace {__version__} there" in str(run.failure)


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


def test_a_stop_gives_fencing_no_more_than_the_grace_time(desks: list[Desk]) -> None:
    """The broker may be away for hours; what is not fenced now is at the next start."""
    desk = Desk(lambda *_: None, work_for(99), once=False)
    desks.append(desk)
    stopping = threading.Event()
    gave_up: list[float] = []

    def fence(_: Collection[str], waiting: WaitingForKafka) -> None:
        if stopping.is_set():
            began = time.monotonic()
            try:
                ask_until_refused(waiting)
            finally:
                gave_up.append(time.monotonic() - began)

    desk.fence = fence
    run = desk.start()
    until(lambda: desk.heard(Replanned))
    stopping.set()
    run.ask_to_stop()

    assert run.join(10.0)
    # What passes between the stop and the fencing is part of its grace.
    assert desk.timing.grace / 2 < gave_up[-1] < 10 * desk.timing.grace
    assert TaskCount(slots=2) == desk.configs.task_count("c")


def test_a_stop_ends_a_fencing_that_is_under_way(desks: list[Desk]) -> None:
    """It is tried again on the way out, for as long as the grace time."""
    desk = Desk(lambda *_: FINISHED, work_for(1), once=False)
    desks.append(desk)
    fencing = threading.Event()

    def fence(_: Collection[str], waiting: WaitingForKafka) -> None:
        fencing.set()
        ask_until_refused(waiting)

    desk.fence = fence
    run = desk.start()
    assert fencing.wait(10.0)
    run.ask_to_stop()

    assert run.join(10.0)
    assert run.failure is None


# ------------------------------------------------------------------ slow starts


class StartingEngine(FakeEngine):
    """Is still starting until the test says that it is ready."""

    def __init__(self, desk: Desk) -> None:
        super().__init__(desk.plays)
        self.asked = threading.Event()
        self.ready = threading.Event()

    def run(self, tickets: Sequence[SlotTicket], sql_stage: SqlStage | None = None) -> None:
        """Start, and run the slots then."""
        self.asked.set()
        assert self.ready.wait(20.0)
        super().run(tickets)


def starting(desk: Desk) -> tuple[ConnectorRun, StartingEngine, ConnectorContext, Capacity]:
    """A run of a polled connector whose data plane is late, as it was told."""
    engine = desk.engine = StartingEngine(desk)
    contexts: list[ConnectorContext] = []
    puppet("c", Puppet(started=contexts.append))
    services = desk.services()
    run = ConnectorRun(replace(SPEC, connector=PolledPuppet()), services, watcher=NoRunWatcher())
    run.start()
    assert engine.asked.wait(10.0)
    return run, engine, contexts[0], services.capacity


def look_again(desk: Desk) -> None:
    """Return when the run has looked at its slots another time, after it told that they are late."""
    until(lambda: desk.heard(Waiting))
    looks = len(desk.heard(SlotProgress))
    until(lambda: len(desk.heard(SlotProgress)) > looks + 1)


SOON = Timing(idle_poll=0.01, grace=0.1, batch_budget=1.0, slot_start=0.2)


def test_the_grace_time_does_not_begin_before_slots_do(desks: list[Desk]) -> None:
    """A request to end that no slot could hear yet is no reason to give the job up."""
    desk = Desk(lambda *_: SlotReport(outcome=Outcome.IDLE), lambda _: Plan(), timing=SOON)
    desks.append(desk)
    run, engine, context, _ = starting(desk)
    context.request_task_reconfiguration()
    look_again(desk)
    engine.ready.set()

    assert run.join(20.0)
    assert run.failure is None
    assert [] == desk.heard(Replanned)


def test_the_time_budget_does_not_begin_before_slots_do(desks: list[Desk]) -> None:
    """Others wait as well, but a job that ends as it begins would be for nothing."""
    ends: list[object] = []

    def plays(ticket: SlotTicket, _: int) -> SlotReport:
        with ChannelClient(ticket) as client:
            ends.append(client.ask("beat", progress=Progress().as_message())["end"])
        return SlotReport(outcome=Outcome.IDLE)

    desk = Desk(plays, lambda _: Plan(), timing=SOON)
    desks.append(desk)
    run, engine, _, capacity = starting(desk)
    other = threading.Thread(target=capacity.take, args=(2,), kwargs={"give_up": lambda: False})
    other.start()
    until(capacity.others_wait)
    look_again(desk)
    engine.ready.set()

    assert run.join(20.0)
    assert [None] == ends
    other.join(10.0)


@pytest.mark.parametrize(
    ("boundary", "given_up"),
    [
        (BoundaryKind.CONNECTOR, []),
        (BoundaryKind.INTERVAL, ["Slots did not end within the grace period."]),
    ],
)
def test_a_slot_may_go_on_to_the_end_of_its_connectors_transaction(
    desks: list[Desk], boundary: BoundaryKind, given_up: list[str]
) -> None:
    """Though others wait: a transaction that is longer than that would be begun again forever."""

    def plays(ticket: SlotTicket, _: int) -> SlotReport:
        with ChannelClient(ticket) as client:

            def hears_end() -> bool:
                return client.ask("beat", progress=Progress().as_message())["end"] is not None

            until(hears_end)
            late = time.monotonic() + 1.0
            until(lambda: time.monotonic() > late)
        return SlotReport(outcome=Outcome.IDLE)

    timing = Timing(idle_poll=0.01, grace=0.1, batch_budget=0.1)
    desk = Desk(plays, lambda _: Plan(), timing=timing)
    desks.append(desk)
    puppet("c", Puppet())
    services = desk.services()
    other = threading.Thread(
        target=services.capacity.take, args=(2,), kwargs={"give_up": lambda: False}
    )
    run = ConnectorRun(
        replace(SPEC, connector=PolledPuppet(), boundary=boundary), services, watcher=NoRunWatcher()
    )
    run.start()
    # Before that the other one would get the slots.
    until(lambda: desk.heard(MicroBatchStarted))
    other.start()
    until(lambda: run.join(0.0) or bool(desk.heard(Replanned)))
    run.ask_to_stop()

    assert run.join(20.0)
    assert given_up == [each.reason for each in desk.heard(Replanned)]
    other.join(10.0)


def test_a_lost_membership_is_what_all_connectors_of_the_worker_wait_for(desks: list[Desk]) -> None:
    """Of a micro-batch that was open, and of the rounds that follow."""
    is_lost = threading.Event()

    def plays(_ticket: SlotTicket, _: int) -> SlotReport:
        is_lost.set()
        until(lambda: bool(desk.heard(Replanned)))
        return SlotReport(outcome=Outcome.IDLE)

    def require_membership() -> None:
        if is_lost.is_set():
            raise MembershipError("It does not hold.")

    desk = Desk(plays, work_for(1), timing=Timing(idle_poll=0.01, grace=0.1), once=False)
    desks.append(desk)
    puppet("c", Puppet(plan=desk.plan))
    services = replace(desk.services(), require_membership=require_membership)
    run = ConnectorRun(SPEC, services, watcher=NoRunWatcher())
    run.start()
    until(lambda: Waiting(connector="c", reason="It does not hold.", is_shared=True) in desk.events)
    run.ask_to_stop()

    assert run.join(20.0)
    replanned = Replanned(connector="c", reason="It does not hold.", is_shared=True)
    assert [replanned] == desk.heard(Replanned)


def test_a_stop_does_not_wait_for_slots_that_have_not_started(desks: list[Desk]) -> None:
    """Spark may take much longer to start than the grace time; whatever starts late finds no work."""
    desk = Desk(lambda *_: FINISHED, work_for(1), timing=Timing(grace=60.0), once=False)
    desks.append(desk)
    engine = desk.engine = StartingEngine(desk)
    run = desk.start()
    assert engine.asked.wait(10.0)
    began = time.monotonic()
    run.ask_to_stop()

    assert run.join(20.0)
    assert time.monotonic() - began < 2.0
    assert [] == reasons(desk)
    assert desk.heard(ConnectorStopped)
    engine.ready.set()


# ------------------------------------------------------------------ waiting


@pytest.mark.parametrize(
    ("committed", "report", "resumed"),
    [(5, FINISHED, 1), (0, replace(FINISHED, outcome=Outcome.REPLAN, reason="timed out"), 0)],
    ids=["committed", "given up"],
)
def test_a_slot_that_goes_on_after_a_wait_is_told(
    desks: list[Desk], committed: int, report: SlotReport, resumed: int
) -> None:
    """Whoever read that the broker is away wants to read that it is back, and only then."""
    desk = Desk(lambda *_: report, work_for(1))
    desks.append(desk)
    steps = (
        Progress(waiting_for="a commit"),
        Progress(waiting_for="a commit"),
        Progress(committed_records=committed),
        Progress(committed_records=committed),
    )

    class AwayEngine(FakeEngine):
        def run(self, tickets: Sequence[SlotTicket], sql_stage: SqlStage | None = None) -> None:
            with ChannelClient(tickets[0]) as client:
                client.ask("claim", pid=1, host="nowhere", version=__version__)
                for step in steps:
                    looks = len(desk.heard(SlotProgress))
                    client.ask("beat", progress=step.as_message())
                    until(lambda: len(desk.heard(SlotProgress)) > looks + 1)  # noqa: B023
                client.ask("end", report=report.as_message())

    desk.engine = AwayEngine(desk.plays)
    desk.run()

    assert resumed == len(desk.heard(Resumed))
    assert ["a commit"] == sorted(set(reasons(desk)))


def test_slots_that_spark_does_not_start_are_told_once_and_work_goes_on_when_they_come(
    desks: list[Desk],
) -> None:
    """A full cluster, or one without executors, would else say nothing for hours."""

    def plan(_: PlanRequest) -> Plan:
        shares = [[Split(partition=SourcePartition(n=number))] for number in range(2)]
        return Plan() if desk.engine.tickets else Plan(shares=shares)

    timing = Timing(idle_poll=0.01, slot_start=0.1)
    desk = Desk(lambda *_: FINISHED, plan, timing=timing)
    desks.append(desk)
    free = threading.Event()

    class FullEngine(FakeEngine):
        def run(self, tickets: Sequence[SlotTicket], sql_stage: SqlStage | None = None) -> None:
            super().run(tickets[:1])
            assert free.wait(20.0)
            super().run(tickets[1:])

    desk.engine = FullEngine(desk.plays)
    run = desk.start()
    until(lambda: desk.heard(Waiting))
    looks = len(desk.heard(SlotProgress))
    until(lambda: len(desk.heard(SlotProgress)) > looks + 1)
    free.set()

    assert run.join(20.0)
    assert run.failure is None
    (reason,) = reasons(desk)
    assert reason.startswith("1 of 2 slots have not started in 0 s;")
    assert "headrace.slots says (2)" in reason
    assert 1 == len(desk.heard(MicroBatchEnded))


def test_slots_are_not_late_while_their_engine_starts(desks: list[Desk]) -> None:
    """No one need look for executors while Spark is starting on a busy machine; but it may not take forever."""
    desk = Desk(lambda *_: FINISHED, work_for(1), timing=replace(SOON, slot_start=1.5))
    desks.append(desk)
    engine = desk.engine = StartingEngine(desk)
    engine.is_starting = True
    run = desk.start()
    until(lambda: 5 == len(desk.heard(SlotProgress)))
    assert [] == reasons(desk)
    until(lambda: reasons(desk))
    assert len(desk.heard(SlotProgress)) > 10
    run.ask_to_stop()
    engine.ready.set()

    assert run.join(20.0)
    (reason,) = reasons(desk)
    assert reason.startswith("Spark has been starting for 6 s.")


def test_a_connector_that_fails_while_it_waits_for_slots_fails(desks: list[Desk]) -> None:
    """Those who have them may keep them for hours."""
    desk = Desk(lambda *_: FINISHED, work_for(1))
    desks.append(desk)
    contexts: list[ConnectorContext] = []
    puppet("c", Puppet(plan=desk.plan, started=contexts.append))
    services = desk.services()
    services.capacity.take(2, give_up=lambda: True)
    run = ConnectorRun(SPEC, services, watcher=NoRunWatcher())
    run.start()
    until(lambda: desk.heard(Queued))
    contexts[0].raise_error(ValueError("lost the source"))
    contexts[0].raise_error(ValueError("again"))

    assert run.join(20.0)
    assert "lost the source" == str(run.failure)


def test_a_part_that_is_not_read_fails_the_connector_and_not_its_tasks(desks: list[Desk]) -> None:
    """As `raiseError` in Kafka Connect; it is logged once, and over with a plan without it."""
    lost, seen = TaskFailedError("t-3 is not copied."), list[tuple[str, str]]()
    failures = iter([lost, TaskFailedError("t-3 is not copied."), None])

    def plan(_: PlanRequest) -> Plan:
        states = desk.statuses.statuses("c")
        seen.append((states[None].state, states[0].state))
        return Plan(failure=next(failures, None))

    desk = Desk(lambda *_: FINISHED, plan, once=False)
    desks.append(desk)
    run = desk.start()
    until(lambda: len(seen) > 3)
    run.ask_to_stop()

    assert run.join(20.0)
    failed, running = ("FAILED", "RUNNING"), ("RUNNING", "RUNNING")
    assert [("RUNNING", "UNASSIGNED"), failed, failed, running] == seen[:4]
    assert [ConnectorFailedInPart, ConnectorRecovered] == [
        type(each)
        for each in desk.events
        if isinstance(each, ConnectorFailedInPart | ConnectorRecovered)
    ]
    assert run.failure is None


def test_of_several_parts_that_are_not_read_only_a_new_one_is_logged(desks: list[Desk]) -> None:
    """A line for each; the status has all of them that there are."""
    first, second, third = "t-1 is not copied.", "t-2 is not copied.", "t-3 is not copied."
    traces = list[str]()
    failures = iter(
        TaskFailedError("\n".join(each))
        for each in ([first, third], [first, second, third], [second, third])
    )

    def plan(_: PlanRequest) -> Plan:
        traces.append(desk.statuses.statuses("c")[None].trace or "")
        return Plan(failure=next(failures, TaskFailedError(f"{first}\n{second}")))

    desk = Desk(lambda *_: FINISHED, plan, once=False)
    desks.append(desk)
    run = desk.start()
    until(lambda: len(traces) > 4)
    run.ask_to_stop()

    assert run.join(20.0)
    assert [first, third, second, first] == [
        each.reason for each in desk.events if isinstance(each, ConnectorFailedInPart)
    ]
    assert f"{first}\n{second}\n{third}\n" in traces[2]
    assert [False, True, False] == [first in each for each in (traces[0], traces[1], traces[3])]


def test_a_run_whose_work_ends_without_a_part_has_failed(desks: list[Desk]) -> None:
    """With the last plan's failure."""
    lost = TaskFailedError("t-3 is not copied.")
    desk = Desk(lambda *_: FINISHED, lambda _: Plan(failure=lost))
    desks.append(desk)

    assert lost is desk.run().failure
    status = desk.statuses.statuses("c")[None]
    assert ("FAILED", True) == (status.state, "t-3 is not copied." in (status.trace or ""))


def test_a_run_that_is_stopped_has_still_failed_in_part(desks: list[Desk]) -> None:
    """For the exit code; its connector is UNASSIGNED, as any that is stopped."""
    lost = TaskFailedError("t-3 is not copied.")
    desk = Desk(lambda *_: FINISHED, lambda _: Plan(failure=lost), once=False)
    desks.append(desk)
    run = desk.start()
    until(lambda: desk.heard(ConnectorFailedInPart))
    assert lost is run.failure
    run.ask_to_stop()

    assert run.join(20.0)
    assert lost is run.failure
    assert "UNASSIGNED" == desk.statuses.statuses("c")[None].state


def test_a_source_that_is_away_is_told_with_its_reason(desks: list[Desk]) -> None:
    """It comes with the slot's heartbeat."""
    desk = Desk(lambda *_: FINISHED, work_for(1))
    desks.append(desk)

    class AwayEngine(FakeEngine):
        def run(self, tickets: Sequence[SlotTicket], sql_stage: SqlStage | None = None) -> None:
            with ChannelClient(tickets[0]) as client:
                client.ask("claim", pid=1, host="nowhere", version=__version__)
                for reason in ("refused", "refused again"):
                    looks = len(desk.heard(SlotProgress))
                    client.ask("beat", progress=Progress(source_away=reason).as_message())
                    until(lambda: len(desk.heard(SlotProgress)) > looks + 1)  # noqa: B023
                client.ask("end", report=FINISHED.as_message())

    desk.engine = AwayEngine(desk.plays)
    desk.run()

    assert ["Task c-0 cannot read its source and retries: refused"] == reasons(desk)


def reasons(desk: Desk) -> list[str]:
    """Why the connector had to wait."""
    return [each.reason for each in desk.events if isinstance(each, Waiting)]
