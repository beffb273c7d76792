"""Rounds of a group in the bytes that its members say and are given: as those of Kafka Connect's coordinator, a connector being one piece."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import cast

import pytest

from headrace.herder.coordination import HerderParts
from headrace.herder.distributed import Distributed
from headrace.herder.group import GroupSettings
from headrace.herder.group_protocol import (
    Assignment,
    MemberFlag,
    MemberMetadata,
    MemberNotes,
    ProtocolVersion,
    decoded_assignment,
    decoded_metadata,
    encoded_assignment,
    encoded_metadata,
)
from headrace.kafka.membership import GroupMembership, GroupRole, Joined, JoinedMember
from herder.stage import Stage
from herder.test_group_turns import ME, Alone, Member, Membership, Storage, stored
from waiting import until

DELAY_MS = 10_000
NOTES = MemberNotes(flags=MemberFlag.UNDERSTANDS_LEAVING, generation=1, slots=4)
TASKS = [{"task.class": "x:T", "n": str(number)} for number in range(4)]


@dataclass
class Leader:
    """A leader, to which the test says who joins and how late it is, and the workers, which do as they are told."""

    storage: Storage = field(default_factory=Storage)
    protocol: str = "sessioned"
    now: float = 0.0
    has: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    role: GroupRole | None = None

    def __post_init__(self) -> None:
        stage = Stage()
        stored(stage, "c1", "c2")
        for name in ("c1", "c2"):
            stage.configs.put_task_configs(name, TASKS)
        # It is asked, and does not work by itself.
        stage.new_herder(self._coordinate)

    def _coordinate(self, parts: HerderParts) -> Distributed:
        settings = GroupSettings(group="g", url=url_of(ME), slots=4, max_delay_ms=DELAY_MS)

        def member(role: GroupRole, wake: Callable[[], None]) -> GroupMembership:
            self.role = role
            return cast("GroupMembership", Membership(member_id=ME))

        return Distributed(
            parts, settings, lambda: self.storage, member, peers=Alone(), clock=lambda: self.now
        )

    def round(self, **offsets: int) -> dict[str, Assignment]:
        """What each worker is given when all join with what they have, some of them with other *offsets* of the config topic."""
        assert self.role is not None
        version = ProtocolVersion[self.protocol.upper()]
        members = [
            JoinedMember(each, encoded_metadata(self._said(each, version, offsets.get(each, 5))))
            for each in self.has
        ]
        # None of its generations is completed: the leader does not hear of its own answers here.
        given = self.role.assign(-1, self.protocol, ME, members)
        answers = {name: decoded_assignment(each) for name, each in given.items()}
        for name, answer in answers.items():
            left = set(self.has[name]) - answer.revoked.keys()
            self.has[name] = sorted(left | answer.assigned.keys())
        return answers

    def _said(self, name: str, version: ProtocolVersion, config_offset: int) -> MemberMetadata:
        had = Assignment(
            version=version,
            leader=ME,
            leader_url=url_of(ME),
            config_offset=config_offset,
            assigned={each: [-1, *range(4)] for each in self.has[name]},
        )
        return MemberMetadata(
            version=version,
            url=url_of(name),
            config_offset=config_offset,
            allocation=had if self.has[name] else None,
            notes=NOTES,
        )


def url_of(name: str) -> str:
    """Where a worker answers, whose ids begin with its name."""
    return f"http://{name.partition('-')[0]}:8083/"


def pieces(answers: dict[str, Assignment]) -> dict[str, tuple[list[str], list[str]]]:
    """What each worker is given, and what it is to give up."""
    return {name: (sorted(each.assigned), sorted(each.revoked)) for name, each in answers.items()}


@pytest.mark.parametrize(
    ("protocol", "version"),
    [("sessioned", ProtocolVersion.SESSIONED), ("compatible", ProtocolVersion.COMPATIBLE)],
)
def test_answers_are_of_the_version_that_the_group_speaks(
    protocol: str, version: ProtocolVersion
) -> None:
    """With the leader's id and URL, and how far it has read; a connector comes with all its tasks."""
    leader = Leader(protocol=protocol, has={ME: [], "other": []})
    answers = leader.round()

    assert {(version, ME, url_of(ME), 5)} == {
        (each.version, each.leader, each.leader_url, each.config_offset)
        for each in answers.values()
    }
    assert [{"c1": [-1, 0, 1, 2, 3]}, {"c2": [-1, 0, 1, 2, 3]}] == [
        {name: list(found) for name, found in answers[each].assigned.items()}
        for each in (ME, "other")
    ]


def test_a_connector_is_revoked_with_its_tasks_before_another_worker_is_given_it() -> None:
    """Two have one each, and a third one has nothing to do; one with both gives one of them up."""
    leader = Leader(has={ME: ["c1"], "other": ["c2"], "third": []})
    assert {ME: ([], []), "other": ([], []), "third": ([], [])} == pieces(leader.round())

    leader.has = {ME: ["c1", "c2"], "other": []}
    first = leader.round()
    assert {ME: ([], ["c1"]), "other": ([], [])} == pieces(first)
    assert [-1, 0, 1, 2, 3] == list(first[ME].revoked["c1"])
    assert {1} == {each.delay_ms for each in first.values()}
    assert {ME: ([], []), "other": (["c1"], [])} == pieces(leader.round())


def test_all_are_told_how_long_a_lost_worker_is_waited_for() -> None:
    """What is left of the delay, in each round of it; then the others are given what it had."""
    leader = Leader(has={ME: [], "other": []})
    leader.round()
    leader.has["third"] = []
    lost = leader.has.pop("other")
    found = [leader.round()]
    leader.now += DELAY_MS / 2e3
    found.append(leader.round())

    assert [{DELAY_MS}, {DELAY_MS // 2}] == [
        {each.delay_ms for each in answers.values()} for answers in found
    ]
    assert not any(each.assigned or each.revoked for answers in found for each in answers.values())
    leader.now += DELAY_MS / 2e3
    last = leader.round()
    assert {ME: ([], []), "third": (lost, [])} == pieces(last)
    assert {0} == {each.delay_ms for each in last.values()}


@pytest.mark.parametrize(
    ("returns_as", "expected"), [("other-2", ["c2"]), ("elsewhere-1", [])], ids=["back", "new"]
)
def test_a_worker_that_is_back_is_known_by_its_url(returns_as: str, expected: list[str]) -> None:
    """Its id is another one. It is given what it had at once; any other waits for the end of the delay."""
    leader = Leader(has={ME: [], "other-1": []})
    leader.round()
    del leader.has["other-1"]
    leader.round()
    leader.now += DELAY_MS / 2e3
    leader.has[returns_as] = []
    answers = leader.round()
    assert {ME: ([], []), returns_as: (expected, [])} == pieces(answers)

    leader.now += DELAY_MS / 2e3
    leader.round()
    assert {ME: ["c1"], returns_as: ["c2"]} == leader.has


def test_a_leader_that_has_not_read_as_far_as_others_gives_nothing() -> None:
    """It would take connectors from them that it has not heard of; all join again once it has read on."""
    leader = Leader(has={ME: ["c1"], "other": ["c2", "new"]})
    answers = leader.round(other=9)
    assert {(1, 9)} == {(each.error, each.config_offset) for each in answers.values()}
    assert {ME: ([], []), "other": ([], [])} == pieces(answers)

    leader.storage.config_offset = 9
    answers = leader.round(other=9)
    assert {0} == {each.error for each in answers.values()}
    assert {ME: ([], []), "other": ([], ["new"])} == pieces(answers)


def test_a_worker_says_what_it_has_in_each_protocol() -> None:
    """The preferred one first, with how far it has read; a new worker has nothing."""
    member = Member(Stage())
    stored(member.stage, "c", "d")
    said = list[tuple[str, MemberMetadata]]()

    def says() -> list[tuple[str, MemberMetadata]]:
        assert member.role is not None
        return [(name, decoded_metadata(data)) for name, data in member.role.protocols()]

    with member.started():
        until(lambda: member.role is not None)
        assert [("sessioned", None), ("compatible", None), ("default", None)] == [
            (name, each.allocation) for name, each in says()
        ]
        member.joins("c", "d")
        until(lambda: member.runs() == ["c", "d"])
        until(lambda: len(member.stage.configs.task_configs("d")) == 2)
        said = says()

    assert ["sessioned", "compatible", "default"] == [name for name, _ in said]
    versions = [ProtocolVersion.SESSIONED, ProtocolVersion.COMPATIBLE, ProtocolVersion.DEFAULT]
    assert versions == [each.version for _, each in said]
    assert {("http://me/", 5)} == {(each.url, each.config_offset) for _, each in said}
    for version, (_, each) in zip(versions, said, strict=True):
        assert each.allocation is not None
        assert version == each.allocation.version
        assert {"c": [-1, 0, 1], "d": [-1, 0, 1]} == {
            name: list(found) for name, found in each.allocation.assigned.items()
        }


def test_a_worker_keeps_what_it_has_when_the_leader_has_to_read_on() -> None:
    """It joins again, and starts and ends nothing until it is told to."""
    member = Member(Stage())
    stored(member.stage, "c")
    given = Assignment(
        leader="other",
        leader_url="http://other/",
        config_offset=5,
        assigned={"c": [-1]},
        leader_understands_leaving=True,
    )
    behind = replace(given, error=1, assigned={})
    revoked = replace(given, assigned={}, revoked={"c": [-1]})
    joins = [
        Joined(generation, ME, "sessioned", encoded_assignment(each))
        for generation, each in enumerate((given, behind, revoked))
    ]
    member.membership.joins.append(joins[0])
    with member.started():
        until(lambda: member.runs() == ["c"])
        run, requested = member.stage.the_run(), member.membership.requested
        member.membership.joins.append(joins[1])
        until(lambda: member.membership.requested > requested)

        assert run is member.stage.the_run()
        assert not run.asked.is_set()
        member.membership.joins.append(joins[2])
        until(lambda: member.runs() == [])
