"""Requests about offsets that are in a consumer group: read, altered, reset, preset, restored."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest

from doubles.copied_positions import GROUP, PATH, copied
from doubles.memory_group import MemoryGroup
from doubles.memory_sender import MemorySender
from headrace.config.client_settings import ConnectorOffsetsGroup
from headrace.connect.errors import ReplanError, RetriableError
from headrace.connect.group_offsets import GroupEntry, OffsetGroup
from headrace.herder.errors import BadRequestError, ServerError
from headrace.kafka.sender import Sender
from headrace.kafka.wire.group_requests import GroupMember
from headrace.offsets.administration import OffsetChanges
from headrace.offsets.connector_stores import ConnectorOffsetStores
from headrace.offsets.store import LockedOffsetStore
from headrace.runtime.driver_offsets import DriverOffsetCommitter
from headrace.runtime.services import RunSpec
from headrace.storage.memory import MemoryOffsetStore
from headrace.task.connector_spec import Delivery
from offsets.changing import STORED, FaultyChanges, KilledError, Stage, change, memory_stage

OWN = ConnectorOffsetsGroup(
    group=OffsetGroup(group_id="copies", codec=PATH, config={"alias": "a"}),
    connection={"bootstrap.servers": "b:1"},
)
ZERO, ONE = copied(), copied(partition=1)


class KilledSender(MemorySender):
    """One whose process may end around the commit."""

    stage: Stage

    def commit(self) -> None:
        """As the other, with faults."""
        self.stage.faults.point("before commit")
        super().commit()
        self.stage.faults.point("after commit")


@dataclass
class GroupStage:
    """The stage of other changes, with the offsets in a group in memory."""

    stage: Stage
    group: MemoryGroup
    exactly_once: bool = True

    def __post_init__(self) -> None:
        self.senders: list[KilledSender] = []
        self.stores = ConnectorOffsetStores(
            LockedOffsetStore(MemoryOffsetStore()), open_group=lambda _: self.group
        )

    @property
    def spec(self) -> RunSpec:
        """The connector, ready to be asked."""
        return replace(
            self.stage.spec,
            producer={"bootstrap.servers": "b:1"},
            offsets=GROUP,
            offsets_group=OWN,
            delivery=Delivery.EXACTLY_ONCE if self.exactly_once else Delivery.AT_LEAST_ONCE,
        )

    def changes(self) -> OffsetChanges:
        """What is tested."""
        committer = DriverOffsetCommitter(self.stores, "g", make_group_sender=self._sender)
        services = replace(
            self.stage._services(), offsets=self.stores, commit_offsets=committer.commit
        )
        return OffsetChanges(services, FaultyChanges(self.stage.changes_store, self.stage.faults))

    def known(self) -> dict[int, int]:
        """Source offset to read next, by partition."""
        return {place[1]: each.offset for place, each in self.group.groups["copies"].items()}

    def _sender(self, *_: object, **__: object) -> Sender:
        sender = KilledSender(groups=self.group.groups)
        sender.stage = self.stage
        self.senders.append(sender)
        return sender


@pytest.fixture(params=[True, False], ids=["exactly once", "at least once"])
def staged(request: pytest.FixtureRequest) -> GroupStage:
    """Two partitions with offsets."""
    entries = [GroupEntry("a.t", number, 10 + number, '"a"') for number in (0, 1)]
    group = MemoryGroup({"copies": {each.place: each for each in entries}})
    return GroupStage(memory_stage(), group, exactly_once=request.param)


def test_offsets_are_read(staged: GroupStage) -> None:
    """In the form in which they are altered."""
    found = staged.changes().read(staged.spec)

    assert {ZERO: {"offset": 9}, ONE: {"offset": 10}} == {
        each.partition: each.offset for each in found
    }


def test_an_alteration_changes_what_it_names(staged: GroupStage) -> None:
    """And a null offset removes one, after the others are committed."""
    changes = [change(ZERO, {"offset": 99}), change(ONE, None)]

    staged.changes().alter(staged.spec, changes, who=None)

    assert {0: 100} == staged.known()


def test_a_change_can_be_undone(staged: GroupStage) -> None:
    """Also one that said more than is stored."""
    staged.changes().alter(staged.spec, [change(ZERO, {"offset": 3, "note": "x"})], who=None)
    [entry] = staged.changes().history("c")
    assert {ZERO: {"offset": 3}} == entry.after

    staged.changes().undo(staged.spec, entry.id, who=None)

    assert {0: 10, 1: 11} == staged.known()


def test_a_reset_forgets_all_but_what_others_have_made(staged: GroupStage) -> None:
    """It may be repeated."""
    foreign = GroupEntry("u", 5, 1, "others")
    staged.group.groups["copies"][foreign.place] = foreign
    for _ in range(2):
        staged.changes().reset(staged.spec, who=None)

        assert {5: 1} == staged.known()


def test_a_creation_wipes_and_sets(staged: GroupStage) -> None:
    """As in any other store (KIP-995)."""
    staged.changes().create(staged.spec, STORED, [change(ONE, {"offset": 0})], who=None)

    assert {1: 1} == staged.known()


def test_a_dry_run_writes_nothing(staged: GroupStage) -> None:
    """And says what would change, in the form in which it would be stored."""
    said = staged.changes().alter(
        staged.spec, [change(ZERO, {"offset": 3, "note": "x"})], who=None, dry_run=True
    )

    assert 'to {"offset":3}' in said
    assert {0: 10, 1: 11} == staged.known()


@pytest.mark.parametrize("dry_run", [True, False])
def test_offsets_that_no_entry_can_hold_are_a_bad_request(
    staged: GroupStage, *, dry_run: bool
) -> None:
    """Before the connector's hook changes anything outside."""
    with pytest.raises(BadRequestError, match="no number under 'offset'"):
        staged.changes().alter(staged.spec, [change(ZERO, {"line": 3})], who=None, dry_run=dry_run)

    assert "alter" not in [each for each, _ in staged.stage.asked()]
    assert {0: 10, 1: 11} == staged.known()


def test_a_group_with_members_is_not_changed(staged: GroupStage) -> None:
    """The answer names them."""
    staged.group.members = [GroupMember("a-reader", "/h")]

    with pytest.raises(ServerError, match="'a-reader' at h"):
        staged.changes().alter(staged.spec, [change(ZERO, {"offset": 3})], who=None)

    assert {0: 10, 1: 11} == staged.known()


def test_a_cluster_that_is_away_is_told(staged: GroupStage) -> None:
    """With Kafka Connect's sentence."""
    staged.group.away = True

    with pytest.raises(ServerError, match=r"Failed to retrieve offsets.*away"):
        staged.changes().read(staged.spec)
    with pytest.raises(ServerError, match="Timed out while trying to read"):
        staged.changes().reset(staged.spec, who=None)


@pytest.mark.parametrize(
    ("at", "known"), [("before commit", {0: 10, 1: 11}), ("after commit", {0: 4, 1: 11})]
)
def test_a_change_that_was_killed_is_finished_by_the_next_process(
    at: str, known: dict[int, int]
) -> None:
    """Undone, or done if all of it is there."""
    entries = [GroupEntry("a.t", number, 10 + number, '"a"') for number in (0, 1)]
    staged = GroupStage(
        memory_stage(), MemoryGroup({"copies": {each.place: each for each in entries}})
    )
    staged.stage.configs.put_connector(STORED)
    staged.stage.faults.at = at
    with pytest.raises(KilledError):
        staged.changes().alter(staged.spec, [change(ZERO, {"offset": 3})], who=None)

    assert {} == staged.changes().recover(staged.stage.configs.connectors(), lambda _: staged.spec)

    assert known == staged.known()


def committer(group: MemoryGroup, sender: MemorySender) -> DriverOffsetCommitter:
    """One that sends with *sender*."""
    stores = ConnectorOffsetStores(
        LockedOffsetStore(MemoryOffsetStore()), open_group=lambda _: group
    )
    return DriverOffsetCommitter(stores, "g", make_group_sender=lambda *_, **__: sender)


def exactly_once() -> RunSpec:
    """The connector, with transactions."""
    return GroupStage(memory_stage(), MemoryGroup()).spec


def test_the_driver_commits_in_one_transaction_and_removes_after_it() -> None:
    """Once it has proven that it still owns the connector, and its writers are fenced."""
    group = MemoryGroup({"copies": {("a.t", 1): GroupEntry("a.t", 1, 5, '"a"')}})
    sender = MemorySender(groups=group.groups)
    proven = list[bool]()

    committer(group, sender).commit(
        exactly_once(),
        {ZERO: {"offset": 7}, ONE: None},
        lambda: proven.append(sender._open),
    )

    assert [False] == proven
    assert ["send", "delete"] == sender.calls
    assert 1 == sender.commits
    assert [("a.t", 0)] == list(group.groups["copies"])
    assert sender.closed


def test_a_driver_that_does_not_own_the_connector_writes_nothing() -> None:
    """And closes what it has opened."""
    group, sender = MemoryGroup(), MemorySender()

    def lost() -> None:
        raise ReplanError("lost")

    with pytest.raises(ReplanError):
        committer(group, sender).commit(exactly_once(), {ZERO: {"offset": 7}}, lost)

    assert {} == sender.groups
    assert sender.closed


def test_only_removals_are_no_transaction() -> None:
    """There would be nothing in it."""
    group, sender = MemoryGroup(), MemorySender()

    committer(group, sender).commit(exactly_once(), {ZERO: None}, lambda: None)

    assert (0, ["delete"]) == (sender.commits, sender.calls)


def test_the_group_s_cluster_may_be_away() -> None:
    """Before anything is opened to write."""
    group, sender = MemoryGroup(away=True), MemorySender()

    with pytest.raises(RetriableError):
        committer(group, sender).commit(exactly_once(), {ZERO: None}, lambda: None)

    assert [] == sender.calls
