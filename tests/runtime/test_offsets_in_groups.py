"""Runs of a connector whose offsets are in a consumer group."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace
from typing import Any

import pytest

from doubles.copied_positions import GROUP, PATH, copied
from doubles.memory_sender import MemorySender
from headrace.config.client_settings import ConnectorOffsetsGroup
from headrace.connect.connector import Plan, PlanRequest
from headrace.connect.group_offsets import GroupEntry, OffsetGroup
from headrace.connect.task import Offsets, Split
from headrace.kafka.wire.group_requests import GroupMember
from headrace.runtime.driver_offsets import DriverOffsetCommitter
from headrace.runtime.services import RunSpec, Services
from headrace.task.channel import ChannelClient
from headrace.task.slot_report import Outcome, SlotReport
from headrace.task.slot_work import SlotTicket, SlotWork
from runtime.desk import SPEC, Desk

OWN = ConnectorOffsetsGroup(
    group=OffsetGroup(group_id="copies", codec=PATH, config={"alias": "a"}),
    connection={"bootstrap.servers": "b:1"},
)
OURS = GroupEntry("a.t", 0, 8, '"a"')
FOREIGN = GroupEntry("a.u", 0, 3, "made by others")


class Run:
    """A connector's run with its offsets in a group; *plans* are what its plans were asked."""

    def __init__(self, *plans: Plan, max_tasks: int = 2) -> None:
        self.plans = list[PlanRequest]()
        self._plans = iter(plans)
        spec = replace(
            SPEC, offsets=GROUP, offsets_group=OWN, producer={"bootstrap.servers": "b:1"}
        )
        self.desk = Desk(lambda *_: None, self._plan, spec=spec, max_tasks=max_tasks)
        self.desk.group.groups["copies"] = {OURS.place: OURS}
        self.sender = MemorySender(groups=self.desk.group.groups)
        made = self.desk.services
        self.desk.services = lambda: self._services(made)  # type: ignore[method-assign]

    def run(self) -> Any:  # noqa: ANN401
        """Run the connector to its end; the failure, if there is one."""
        try:
            return self.desk.run().failure
        finally:
            self.desk.channel.close()

    def _plan(self, request: PlanRequest) -> Plan:
        self.plans.append(request)
        return next(self._plans, Plan())

    def _services(self, made: Callable[[], Services]) -> Services:
        services = made()
        committer = DriverOffsetCommitter(
            services.offsets, "g", make_group_sender=lambda *_, **__: self.sender
        )

        def commit(spec: RunSpec, offsets: Offsets, still_ours: Callable[[], None]) -> None:
            self.desk.done.append(("committed", dict(offsets)))
            committer.commit(spec, offsets, still_ours)

        return replace(services, commit_offsets=commit)


def test_the_plan_sees_offsets_and_what_others_have_written() -> None:
    """After the fence."""
    run = Run()
    run.desk.group.groups["copies"][FOREIGN.place] = FOREIGN

    assert run.run() is None

    [request] = run.plans
    assert {copied(): {"offset": 7}} == request.offsets.known()
    assert (FOREIGN,) == request.unnamed
    assert [("fenced", ["g-c-0", "g-c-1"])] == run.desk.done


def test_offsets_of_a_plan_are_committed_to_the_group() -> None:
    """In a transaction of their own, before the next plan."""
    run = Run(Plan(offsets={copied(partition=1): {"offset": 4}}))

    assert run.run() is None

    assert 1 == run.sender.commits
    assert {copied(): {"offset": 7}, copied(partition=1): {"offset": 4}} == dict(
        run.plans[1].offsets.known()
    )


def test_a_group_with_members_stops_the_connector_at_its_start() -> None:
    """Before it plans anything."""
    run = Run()
    run.desk.group.members = [GroupMember("a-reader", "/h")]

    failure = run.run()

    assert "1 member ('a-reader' at h)" in str(failure)
    assert [] == run.plans


def test_offsets_in_the_worker_s_store_are_taken_over_once() -> None:
    """Together with their removal there, before the first plan; what is in the group is newer."""
    run = Run()
    left = {copied(): {"offset": 1}, copied(partition=1): {"offset": 2}}
    run.desk.offsets.put("c", left)

    assert run.run() is None

    known = {copied(): {"offset": 7}, copied(partition=1): {"offset": 2}}
    assert ("committed", known) == run.desk.done[-1]
    assert 1 == run.sender.commits
    assert dict.fromkeys(
        key for key, _ in run.desk.offsets.entries_for("c", dict.fromkeys(left))
    ) == (run.sender.offsets)
    assert known == dict(run.plans[0].offsets.known())


SHARE = Plan(shares=[[Split(partition=copied(), offset={"offset": 7})]])


def played(run: Run) -> list[SlotWork]:
    """The work of the slots of *run*; each commits a record."""
    claimed, entries = list[SlotWork](), run.desk.group.groups["copies"]

    def plays(ticket: SlotTicket, _: int) -> SlotReport:
        claimed.append(run.desk.channel._batches[ticket.token].slots[0].work)
        with ChannelClient(ticket) as client:
            assert client.ask("valid")["valid"]
        before = entries[OURS.place]
        entries[OURS.place] = before._replace(offset=before.offset + 1)
        return SlotReport(outcome=Outcome.FINISHED)

    run.desk.engine._plays = plays
    assert run.run() is None
    return claimed


def test_a_slot_begins_with_an_identity_of_its_own() -> None:
    """Each plan brings another one, the driver's own commits included: these are made under the id of task 0."""
    run = Run(SHARE, replace(SHARE, offsets={copied(partition=1): {"offset": 4}}))

    found = [each.identity for each in played(run)]

    assert 2 == len(set(found))
    assert run.desk.coordinator.identities["g-c-0"] == found[1]


@pytest.mark.parametrize(("offset", "executed"), [(OURS.offset, 2), (10, 1)])
def test_offsets_are_read_once_more_after_the_identities_were_taken(
    offset: int, executed: int
) -> None:
    """From what another process has written until then a new plan is made."""
    run = Run(SHARE, SHARE)
    writes = iter([OURS._replace(offset=offset)])

    def fence(ids: Collection[str], _: object) -> None:
        # The takeover fences all of them, and the hand-over those of the plan.
        if len(ids) == 1:
            run.desk.group.groups["copies"].update((each.place, each) for each in writes)

    run.desk.fence = fence

    assert executed == len(played(run))
