"""One driver for each connector: its guard is taken before offsets are read, and proven before anything is written."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import pytest

from doubles.copied_positions import GROUP
from doubles.puppets import SOURCE
from headrace.connect.connector import Plan
from headrace.connect.errors import ConnectorFencedError, ReplanError, RetriableError
from headrace.connect.partition import SourcePartition
from headrace.connect.task import Offsets, Split
from headrace.kafka.deadline import Deadline
from headrace.kafka.wire.transaction_state import ProducerIdentity
from headrace.observe.events import ConnectorFailed
from headrace.offsets.store import OffsetSnapshot
from headrace.runtime.assignment import planned_works
from headrace.runtime.fencing import Ownership
from headrace.runtime.services import RunSpec, Services, Timing
from headrace.storage.protocols import TaskCount
from headrace.task.channel import ChannelClient
from headrace.task.slot_report import Outcome, SlotReport
from headrace.task.slot_work import SlotTicket, SlotWork
from runtime.desk import SPEC, Desk

OTHER = SourcePartition(filename="other")
FINISHED = SlotReport(outcome=Outcome.FINISHED)
LOST = SlotReport(outcome=Outcome.REPLAN, clean=False, reason="refused")
GUARD = "g-c-driver"
WIRED = replace(SPEC, offsets=GROUP)


class Workers:
    """Workers of one group, with state files of their own, on one cluster."""

    def __init__(self) -> None:
        self.first = Desk(lambda *_: FINISHED, lambda _: Plan())
        self.desks = [self.first]

    def another(self) -> Desk:
        """One more, which knows nothing of the others but what the cluster tells."""
        desk = Desk(lambda *_: FINISHED, lambda _: Plan(), coordinator=self.first.coordinator)
        desk.offsets = self.first.offsets
        self.desks.append(desk)
        return desk


@pytest.fixture
def workers() -> Iterator[Workers]:
    """Closed at the end."""
    made = Workers()
    yield made
    for each in made.desks:
        each.channel.close()


def owner(desk: Desk, **settings: object) -> Ownership:
    """A driver of the connector in that worker, which has taken it over."""
    ownership = Ownership(replace(SPEC, **settings), desk.services())
    ownership.fence(give_up=lambda: False)
    return ownership


def test_the_guard_is_taken_before_anyone_is_fenced(workers: Workers) -> None:
    """Whoever lost it by then cannot begin a transaction any more."""
    owner(workers.first)

    assert [f"take {GUARD}", "fence g-c-0 g-c-1"] == workers.first.coordinator.asked


def test_whoever_has_lost_the_guard_neither_proves_nor_fences(workers: Workers) -> None:
    """It would fence the writers of the worker that has taken over."""
    old = owner(workers.first)
    owner(workers.another())
    workers.first.coordinator.asked.clear()

    with pytest.raises(ConnectorFencedError, match=r"Another worker with group.id 'g'"):
        old.prove()
    with pytest.raises(ConnectorFencedError):
        old.fence(give_up=lambda: False)
    assert [f"prove {GUARD}"] == workers.first.coordinator.asked


def test_a_process_that_outlives_its_driver_proves_nothing(workers: Workers) -> None:
    """Its question would open a connection that no one closes; the next takeover proves again."""
    ended = owner(workers.first)
    ended.close()
    workers.first.coordinator.asked.clear()

    with pytest.raises(RetriableError, match="The driver of connector c has ended"):
        ended.prove()
    assert [] == workers.first.coordinator.asked
    ended.fence(give_up=lambda: False)
    assert f"prove {GUARD}" == workers.first.coordinator.asked[0]


def test_ids_of_a_worker_with_more_tasks_are_fenced(workers: Workers) -> None:
    """This worker's state file knows nothing of them, the cluster does; ids of other connectors stay."""
    asked = workers.first.coordinator.asked
    workers.first.coordinator.fence(["g-c-7", "g-c-x-0", "g-c-7-0", "h-c-8"], deadline=None)  # type: ignore[arg-type]
    asked.clear()
    owner(workers.first)

    assert [f"take {GUARD}", "fence g-c-0 g-c-1 g-c-7"] == asked


def test_a_cluster_that_cannot_list_has_the_configured_and_the_stored_tasks_fenced(
    workers: Workers, caplog: pytest.LogCaptureFixture
) -> None:
    """Brokers before 3.0; the log says what that leaves open."""
    workers.first.coordinator.can_list = False
    workers.first.configs.put_task_count("c", TaskCount(slots=3))
    owner(workers.first, max_tasks=4)

    assert "fence g-c-0 g-c-1 g-c-2 g-c-3" == workers.first.coordinator.asked[-1]
    assert "cannot list transactional ids" in caplog.text


def test_a_takeover_that_failed_half_way_lists_again(workers: Workers) -> None:
    """The second try has its guard, but has not fenced what others left."""
    coordinator = workers.first.coordinator
    coordinator.fence(["g-c-7"], deadline=None)  # type: ignore[arg-type]
    failures = iter([ReplanError("away")])

    def fail_once(*_: object) -> None:
        for failure in failures:
            raise failure

    workers.first.fence = fail_once
    ownership = Ownership(SPEC, workers.first.services())
    with pytest.raises(ReplanError):
        ownership.fence(give_up=lambda: False)
    ownership.fence(give_up=lambda: False)

    assert "fence g-c-0 g-c-1 g-c-7" == coordinator.asked[-1]


def slots(*tasks: int) -> list[SlotWork]:
    """The work of these tasks, as it is planned."""
    shares = [[Split(partition=SOURCE)]] * (1 + max(tasks))
    timing = Timing()
    works = planned_works(WIRED, Plan(shares=shares), group_id="g", timing=timing)
    return [works[each] for each in tasks]


def test_identities_are_taken_and_then_proven_for_each_plan(workers: Workers) -> None:
    """All are taken before the first is proven; the guard comes first, so that nothing is taken without it."""
    coordinator = workers.first.coordinator
    ownership = owner(workers.first, offsets=GROUP)
    coordinator.asked.clear()
    handed_over = [
        [each.identity for each in ownership.handed_over(slots(0, 1), give_up=lambda: False)]
        for _ in range(2)
    ]

    proofs = ["prove g-c-0", "prove g-c-1"]
    assert (
        2 * [f"prove {GUARD}", "fence g-c-0 g-c-1", *proofs, f"prove {GUARD}"] == coordinator.asked
    )
    # The takeover has fenced each once before.
    assert [2 * [ProducerIdentity(1, 2)], 2 * [ProducerIdentity(1, 4)]] == handed_over
    assert ProducerIdentity(1, 4) == coordinator.identities["g-c-1"]


def test_whoever_has_lost_the_guard_takes_no_identities(workers: Workers) -> None:
    """It would stop the slots of the worker that has taken over."""
    old = owner(workers.first, offsets=GROUP)
    owner(workers.another(), offsets=GROUP)
    workers.first.coordinator.asked.clear()

    with pytest.raises(ConnectorFencedError):
        old.handed_over(slots(0), give_up=lambda: False)
    assert [f"prove {GUARD}"] == workers.first.coordinator.asked


def test_an_id_that_a_program_without_a_guard_takes_meanwhile_is_not_handed_over(
    workers: Workers,
) -> None:
    """Only the proof by id and epoch tells."""
    coordinator = workers.first.coordinator
    ownership = owner(workers.first, offsets=GROUP)
    prove = coordinator.prove

    def proving(name: str, current: ProducerIdentity, deadline: Deadline) -> ProducerIdentity:
        if name == "g-c-0":
            coordinator.take("g-c-1", deadline)
        return prove(name, current, deadline)

    coordinator.prove = proving  # type: ignore[method-assign]
    with pytest.raises(RetriableError, match=r"has taken the transactional id 'g-c-1'"):
        ownership.handed_over(slots(0, 1), give_up=lambda: False)


def test_producers_of_the_client_library_get_their_identities_themselves(workers: Workers) -> None:
    """It has no call that takes one."""
    ownership = owner(workers.first)
    workers.first.coordinator.asked.clear()
    works = slots(0)

    assert works is ownership.handed_over(works, give_up=lambda: False)
    assert [] == workers.first.coordinator.asked


def planned(at: int) -> OffsetSnapshot:
    """Offsets that something was planned from."""
    return OffsetSnapshot({SOURCE: {"next": at}, OTHER: {"next": 1}})


def test_offsets_are_committed_only_by_the_driver_that_has_the_guard(workers: Workers) -> None:
    """An update that comes late must not set newer offsets back."""
    old = owner(workers.first)
    owner(workers.another())

    with pytest.raises(ConnectorFencedError):
        old.commit({SOURCE: {"next": 1}}, planned_from=OffsetSnapshot({}))
    assert {} == workers.first.offsets.known("c")


@pytest.mark.parametrize(("before", "new"), [({"next": 1}, {"next": 2}), (None, {"next": 2})])
def test_offsets_that_were_written_without_a_guard_are_not_overwritten(
    workers: Workers, before: Mapping[str, object] | None, new: Mapping[str, object]
) -> None:
    """A Java worker has none, nor has an older headrace: what they wrote since is read first."""
    ownership = owner(workers.first)
    workers.first.offsets.put("c", {SOURCE: {"next": 5}})

    read = OffsetSnapshot({} if before is None else {SOURCE: before})
    with pytest.raises(ReplanError, match="have changed since this work was planned"):
        ownership.commit({SOURCE: new}, planned_from=read)
    assert {SOURCE: {"next": 5}} == workers.first.offsets.known("c")


def writing(workers: Workers, plan: Plan, *, between: Offsets) -> tuple[Desk, list[bool]]:
    """What slots of *plan* hear when they ask whether they may write, after someone has written *between*."""
    desk, heard = workers.first, list[bool]()
    plans = iter([plan])

    def plays(ticket: SlotTicket, _: int) -> SlotReport:
        if not heard:
            desk.offsets.put("c", between)
        with ChannelClient(ticket) as client:
            heard.append(client.ask("valid")["valid"])
        return FINISHED if heard[-1] else LOST

    desk.engine._plays = plays
    desk.plan = lambda _: next(plans, Plan())
    desk.run()
    return desk, heard


@pytest.mark.parametrize(
    ("between", "answers"),
    [
        ({}, [True, True]),
        ({SOURCE: {"next": 5}}, [False, True]),
        ({OTHER: {"n": 1}}, [True, False]),
    ],
)
def test_a_slot_whose_offsets_have_changed_must_not_write(
    workers: Workers, between: Offsets, answers: Sequence[bool]
) -> None:
    """Its share was planned from others; a slot whose share has not changed continues."""
    shares = [[Split(partition=SOURCE)], [Split(partition=OTHER)]]
    _, heard = writing(workers, Plan(shares=shares), between=between)

    assert list(answers) == heard


def test_a_slot_of_a_plan_that_another_worker_has_overtaken_writes_nothing(
    workers: Workers,
) -> None:
    """Its connector fails with the cause, and fences no one on its way out."""
    desk, heard = workers.first, list[bool]()

    def plays(ticket: SlotTicket, _: int) -> SlotReport:
        owner(workers.another())
        desk.coordinator.asked.clear()
        with ChannelClient(ticket) as client:
            heard.append(client.ask("valid")["valid"])
        return LOST

    desk.engine._plays = plays
    desk.plan = lambda _: Plan(shares=[[Split(partition=SOURCE)]])
    run = desk.run()

    assert [False] == heard
    assert isinstance(run.failure, ConnectorFencedError)
    assert "Run the connector in one worker only" in str(desk.heard(ConnectorFailed))
    assert [f"prove {GUARD}"] == desk.coordinator.asked


def test_an_idle_connector_learns_within_a_minute_that_it_was_taken_over(workers: Workers) -> None:
    """It would show RUNNING for as long as there is nothing to do."""
    now = [0.0]
    desk = workers.first
    ownership = Ownership(SPEC, desk.services(), clock=lambda: now[0])
    ownership.fence(give_up=lambda: False)
    owner(workers.another())
    ownership.prove_if_due()
    now[0] = 61.0

    with pytest.raises(ConnectorFencedError):
        ownership.prove_if_due()


def test_without_exactly_once_there_is_no_guard(workers: Workers) -> None:
    """There are no transactions that it could stand before."""
    from headrace.task.connector_spec import Delivery

    ownership = owner(workers.first, delivery=Delivery.AT_LEAST_ONCE)
    ownership.prove()
    ownership.release()

    assert [] == workers.first.coordinator.asked


class Copies:
    """Copies of a connector's own offsets, as the worker's store would take them."""

    def __init__(self) -> None:
        self.fenced: list[tuple[str, bool]] = []
        self.written: list[Offsets] = []
        self.proofs: list[object] = []

    def fence(self, connector: str, *, is_used: bool, give_up: object) -> None:
        """Note it."""
        self.fenced.append((connector, is_used))

    def writer(self, connector: str, prove: object, *, by_wire: bool) -> Copies:
        """Note the driver."""
        self.proofs.append(prove)
        return self

    def put(self, connector: str, offsets: Offsets) -> None:
        """Note it."""
        self.written.append(offsets)

    def close(self) -> None:
        """Nothing."""


def test_a_takeover_fences_late_copies_that_may_come(workers: Workers) -> None:
    """Also those of a worker in which the connector has a topic of its own, when it has none here."""
    copies = Copies()
    services: Services = replace(workers.first.services(), secondary=copies)
    spec: RunSpec = SPEC
    Ownership(spec, services).fence(give_up=lambda: False)

    assert [("c", False)] == copies.fenced
    assert 1 == len(copies.proofs)


def test_copies_are_written_only_between_a_takeover_and_the_end(workers: Workers) -> None:
    """The writer is closed then; a driver that takes over again, as for a change of offsets, opens it again."""
    copies = Copies()
    services: Services = replace(workers.first.services(), secondary=copies)
    ownership = Ownership(SPEC, services)
    ownership.fence(give_up=lambda: False)
    ownership.close()
    services.offsets.copies.later("c", {SOURCE: {"next": 1}})
    services.offsets.copies.later("d", {SOURCE: {"next": 2}})

    assert services.offsets.copies.settle("d", 20)
    assert [] == copies.written
    ownership.fence(give_up=lambda: False)
    assert services.offsets.copies.settle("c", 20)
    assert [{SOURCE: {"next": 1}}] == copies.written
    services.offsets.copies.close()


@pytest.mark.parametrize(("epoch", "is_lost"), [(5, True), (32_766, False)])
def test_a_broker_that_has_forgotten_the_guard_proves_nothing(
    workers: Workers, epoch: int, *, is_lost: bool
) -> None:
    """After a week it would give the id to a driver that was held for so long; used-up epochs look alike."""
    coordinator = workers.first.coordinator
    ownership = owner(workers.first)
    old = ProducerIdentity(producer_id=1, epoch=epoch)
    assert ownership._guard is not None
    ownership._guard._identity = coordinator.identities[GUARD] = old
    coordinator.forgets = True

    if is_lost:
        with pytest.raises(ConnectorFencedError):
            ownership.prove()
    else:
        ownership.prove()


def test_a_slot_that_asks_again_hears_that_another_worker_has_taken_over(workers: Workers) -> None:
    """At its transaction's time-out, which looks the same; its own commits are no reason to refuse it."""
    heard = list[bool]()

    def plays(ticket: SlotTicket, _: int) -> SlotReport:
        with ChannelClient(ticket) as client:
            heard.append(client.ask("valid")["valid"])
            workers.first.offsets.put("c", {SOURCE: {"next": 9}})
            heard.append(client.ask("valid")["valid"])
            owner(workers.another())
            heard.append(client.ask("valid")["valid"])
        return LOST

    workers.first.engine._plays = plays
    workers.first.plan = lambda _: Plan(shares=[[Split(partition=SOURCE)]])
    run = workers.first.run()

    assert [True, True, False] == heard
    assert isinstance(run.failure, ConnectorFencedError)
