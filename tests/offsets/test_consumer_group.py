"""A connector's offsets in a consumer group, against one in memory."""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest

from doubles.copied_positions import GROUP, PATH, copied
from doubles.memory_group import MemoryGroup
from headrace.config.client_settings import ConnectorOffsetsGroup
from headrace.connect.errors import OffsetsError, RetriableError, TaskFailedError
from headrace.connect.group_offsets import GroupEntry, OffsetGroup
from headrace.connect.partition import SourceOffset, SourcePartition
from headrace.kafka.sender import OffsetEntry
from headrace.kafka.wire.group_requests import GroupMember
from headrace.offsets.connector_stores import ConnectorOffsetStores, NamedConnector
from headrace.offsets.consumer_group import GroupOffsets
from headrace.offsets.group_codec import GroupChange, as_stored, codec_of
from headrace.offsets.store import LockedOffsetStore
from headrace.offsets.target import TargetGroup
from headrace.storage.memory import MemoryOffsetStore

OURS = GroupEntry("a.t", 0, 8, '"a"')
FOREIGN = GroupEntry("a.u", 0, 3, "made by others")
READER = GroupMember("a-reader", "/10.0.0.7")


@pytest.fixture
def group() -> MemoryGroup:
    """One entry of ours."""
    return MemoryGroup({"copies": {OURS.place: OURS}})


@pytest.fixture
def offsets(group: MemoryGroup) -> GroupOffsets:
    """What is tested."""
    return GroupOffsets(GROUP, "c", lambda: group)


class Noted:
    """A transaction that notes what is to be committed."""

    def __init__(self) -> None:
        self.changes: list[GroupChange] = []

    def commit_group(self, change: GroupChange) -> None:
        """Note it."""
        self.changes.append(change)

    def commit_records(self, entries: Sequence[OffsetEntry]) -> None:
        """Nothing is in a topic."""
        raise AssertionError(entries)


def test_entries_are_offsets(offsets: GroupOffsets) -> None:
    """Of the source partitions that they name."""
    assert {copied(): {"offset": 7}} == offsets.current().known()


def test_entries_that_others_have_made_are_no_offsets(
    group: MemoryGroup, offsets: GroupOffsets
) -> None:
    """They stay, and are there for the connector to tell of."""
    group.groups["copies"][FOREIGN.place] = FOREIGN

    found = offsets.current()

    assert {copied(): {"offset": 7}} == found.known()
    assert (FOREIGN,) == found.unnamed
    offsets.put({copied(partition=1): {"offset": 0}})
    assert FOREIGN == group.groups["copies"][FOREIGN.place]


def test_a_commit_takes_the_place_of_a_foreign_entry(
    group: MemoryGroup, offsets: GroupOffsets
) -> None:
    """Which is how a command adopts one."""
    group.groups["copies"][FOREIGN.place] = FOREIGN

    offsets.put({copied("u"): {"offset": 2}})

    assert () == offsets.current().unnamed
    assert {"offset": 2} == offsets.current().offset(copied("u"))


def test_an_entry_in_another_place_is_none_of_ours(
    group: MemoryGroup, offsets: GroupOffsets
) -> None:
    """Somebody has copied it there, with what it says."""
    moved = OURS._replace(topic="elsewhere")
    group.groups["copies"] = {moved.place: moved}

    assert (moved,) == offsets.current().unnamed


def test_an_unchanged_group_gives_the_same_snapshot(
    group: MemoryGroup, offsets: GroupOffsets
) -> None:
    """By which rounds see that nothing has changed; a foreign entry changes none of our offsets."""
    before = offsets.current()
    again = offsets.current()
    group.groups["copies"][FOREIGN.place] = FOREIGN
    with_foreign = offsets.current()
    offsets.put({copied(): {"offset": 9}})

    assert before is again
    assert before is not with_foreign
    assert before.known() is with_foreign.known()
    assert before.known() != offsets.current().known()


def test_offsets_are_committed_and_removed(group: MemoryGroup, offsets: GroupOffsets) -> None:
    """Without a transaction at once."""
    offsets.put({copied(): None, copied(partition=1): {"offset": 4}})

    assert [GroupEntry("a.t", 1, 5, '"a"')] == list(group.groups["copies"].values())


def test_first_offsets_of_a_transaction_that_has_just_ended_are_seen(
    group: MemoryGroup, offsets: GroupOffsets
) -> None:
    """Kafka answers its end before the entries are there, and names none that are the first of their partition."""
    group.groups["copies"] = {}
    offsets.current()

    class Pending(Noted):
        def commit_group(self, change: GroupChange) -> None:
            group.groups["copies"].update({each.place: each for each in change.entries})
            group.pending.add("a.t")

    offsets.commit({copied(): {"offset": 7}}, Pending())

    assert {copied(): {"offset": 7}} == offsets.current().known()


def test_in_a_transaction_the_caller_commits(offsets: GroupOffsets) -> None:
    """And gets the removals apart: Kafka makes them outside of transactions only."""
    noted = Noted()

    offsets.commit({copied(): None, copied(partition=1): {"offset": 4}}, noted)

    [change] = noted.changes
    assert ("copies", [GroupEntry("a.t", 1, 5, '"a"')], [("a.t", 0)]) == change[:3]


def test_a_group_with_members_is_refused(group: MemoryGroup, offsets: GroupOffsets) -> None:
    """The broker would let our commits in transactions through, and theirs."""
    group.members = [READER, *[GroupMember(f"r{number}", "/h") for number in range(4)]]
    noted = Noted()

    for act in (
        offsets.refuse_other_users,
        lambda: offsets.put({copied(): None}),
        lambda: offsets.commit({copied(): None}, noted),
    ):
        with pytest.raises(
            TaskFailedError, match=r"'copies'.*5 members \('a-reader' at 10\.0\.0\.7.*…\)"
        ):
            act()

    assert [] == noted.changes
    assert [OURS] == list(group.groups["copies"].values())


def test_offsets_that_cannot_be_stored_are_refused(offsets: GroupOffsets) -> None:
    """By the connector's codec, before anything is written."""
    with pytest.raises(OffsetsError, match="no number"):
        offsets.put({copied(): {"line": 1}})
    with pytest.raises(OffsetsError, match="no number"):
        offsets.as_stored({copied(): {"line": 1}})


def test_offsets_are_known_in_the_form_in_which_they_come_back(offsets: GroupOffsets) -> None:
    """Whatever else stood beside them in a request."""
    given = {copied(): {"offset": 3, "note": "x"}, copied(partition=1): None}

    assert {copied(): {"offset": 3}, copied(partition=1): None} == offsets.as_stored(given)


def test_a_cluster_that_is_away_is_no_group_without_entries(
    group: MemoryGroup, offsets: GroupOffsets
) -> None:
    """It is told."""
    group.away = True

    with pytest.raises(RetriableError, match="away"):
        offsets.current()


def test_whoever_waits_for_others_fails_in_time(group: MemoryGroup) -> None:
    """A broker that hangs does not collect threads."""
    offsets = GroupOffsets(GROUP, "c", lambda: group, seconds=0.2)
    asked, go_on = threading.Event(), threading.Event()
    group.meanwhile = lambda: (asked.set(), go_on.wait(20))
    first = threading.Thread(target=offsets.current)
    first.start()
    assert asked.wait(20)

    with pytest.raises(RetriableError, match="'copies' in time"):
        offsets.current()
    go_on.set()
    first.join(20)


def test_closed_offsets_are_to_be_asked_for_again(
    group: MemoryGroup, offsets: GroupOffsets
) -> None:
    """A request that was late gets the new ones."""
    offsets.current()
    offsets.close()

    assert group.closed
    with pytest.raises(RetriableError, match="Retry"):
        offsets.current()


class Broken(type(codec_of(GROUP))):  # type: ignore[misc]
    """A codec with a mistake."""

    def source(self, entry: GroupEntry) -> tuple[SourcePartition, SourceOffset] | None:
        """A mistake."""
        raise KeyError("topic")


def test_a_codec_that_fails_is_told_with_the_entry(group: MemoryGroup) -> None:
    """Not taken for a group without offsets."""
    broken = replace(GROUP, codec=f"{Broken.__module__}:Broken")
    offsets = GroupOffsets(broken, "c", lambda: group)

    with pytest.raises(TaskFailedError, match=r"Broken cannot read .*'a\.t'.*KeyError"):
        offsets.current()


@pytest.mark.parametrize(
    ("codec", "sentence"),
    [
        ("doubles.no_such:Codec", "could not be loaded"),
        ("doubles.copied_positions:copied", "is not a GroupOffsetCodec"),
        ("headrace.connect:GroupOffsetCodec", "cannot be made"),
    ],
)
def test_a_codec_that_cannot_be_made_says_so(codec: str, sentence: str) -> None:
    """With its path."""
    with pytest.raises(TaskFailedError, match=sentence):
        codec_of(TargetGroup(group_id="g", codec=codec))


def test_a_codec_that_cannot_read_its_own_entry_is_told() -> None:
    """Its offsets would be lost."""

    class Forgetful(type(codec_of(GROUP))):  # type: ignore[misc]
        def source(self, entry: GroupEntry) -> None:
            return None

    with pytest.raises(TaskFailedError, match="cannot read that"):
        as_stored(Forgetful({"alias": "a"}), {copied(): {"offset": 1}})


@pytest.fixture
def worker() -> LockedOffsetStore:
    """The worker's store, with what MirrorMaker has left there under the connector's name."""
    store = LockedOffsetStore(MemoryOffsetStore())
    store.put("c", {copied(): {"offset": 1}, copied(partition=1): {"offset": 2}})
    return store


@pytest.fixture
def moving(group: MemoryGroup, worker: LockedOffsetStore) -> GroupOffsets:
    """A group's offsets over those."""
    return GroupOffsets(GROUP, "c", lambda: group, worker=worker, worker_topic="worker-offsets")


def test_offsets_that_the_worker_has_count_until_they_are_in_the_group(
    moving: GroupOffsets,
) -> None:
    """Those in the group win; nothing is copied twice after a take-over."""
    before = moving.current()

    assert {copied(): {"offset": 7}, copied(partition=1): {"offset": 2}} == before.known()
    assert before is moving.current()
    assert before.known() == moving.differently_encoded()


def test_they_are_moved_in_the_transaction_that_commits_them(
    moving: GroupOffsets, worker: LockedOffsetStore, caplog: pytest.LogCaptureFixture
) -> None:
    """With their tombstones, and a line in the log."""
    noted = Noted()

    with caplog.at_level(logging.INFO):
        moving.commit({copied(partition=1): {"offset": 2}}, noted)

    [change] = noted.changes
    assert [GroupEntry("a.t", 1, 3, '"a"')] == change.entries
    tombstones = worker.entries_for("c", {copied(partition=1): None})
    assert ("worker-offsets", list(tombstones)) == (change.topic, list(change.records))
    assert "of 1 partition move from the worker's offset store" in caplog.text


def test_without_transactions_they_leave_the_worker_s_store_last(
    moving: GroupOffsets, group: MemoryGroup, worker: LockedOffsetStore
) -> None:
    """A process that dies in between has them twice, and not nowhere."""
    seen = list[int]()
    group.meanwhile = lambda: seen.append(len(worker.current("c").known()))

    moving.put(moving.differently_encoded())

    assert {2} == set(seen)
    assert {} == worker.current("c").known()
    assert {copied(): {"offset": 7}, copied(partition=1): {"offset": 2}} == moving.current().known()


def test_what_is_removed_leaves_the_worker_s_store_first(
    moving: GroupOffsets, group: MemoryGroup, worker: LockedOffsetStore
) -> None:
    """It would count again otherwise, once the group does not have it."""
    moving.put(dict.fromkeys(moving.current().known()))

    assert {} == worker.current("c").known()
    assert {} == group.groups["copies"]
    assert {} == moving.current().known()


def test_offsets_without_a_place_wait_for_it(moving: GroupOffsets, group: MemoryGroup) -> None:
    """The copy of a topic may have been deleted, or not be made yet."""
    group.missing.add("a.t")

    assert {} == moving.differently_encoded()
    assert {"offset": 2} == moving.current().offset(copied(partition=1))


def test_offsets_of_another_kind_of_connector_are_ignored(
    group: MemoryGroup, worker: LockedOffsetStore, caplog: pytest.LogCaptureFixture
) -> None:
    """It had the name before."""
    worker.put("c", {SourcePartition(file="x"): {"position": 1}})
    offsets = GroupOffsets(GROUP, "c", lambda: group, worker=worker, worker_topic="w")

    assert {copied(), copied(partition=1)} == set(offsets.current().known())
    assert "1 of the 3 source offsets" in caplog.text


def test_a_worker_s_store_without_its_offsets_is_asked_once(group: MemoryGroup) -> None:
    """Whoever runs the connector now commits to the group."""
    asked = list[str]()

    class Counted(MemoryOffsetStore):
        def known(self, connector: str) -> Mapping[SourcePartition, SourceOffset]:
            asked.append(connector)
            return super().known(connector)

    worker = LockedOffsetStore(Counted())
    offsets = GroupOffsets(GROUP, "c", lambda: group, worker=worker, worker_topic="w")
    for _ in range(3):
        offsets.current()

    assert ["c"] == asked


def owner(name: str = "c", group_id: str = "copies") -> NamedConnector:
    """A connector with offsets in a group."""
    group = OffsetGroup(group_id=group_id, codec=PATH, config={"alias": "a"})
    own = ConnectorOffsetsGroup(group=group, connection={"bootstrap.servers": "b:1"})
    return NamedConnector(name=name, offsets_group=own)


def test_each_connector_s_group_is_opened_once_and_closed_when_it_is_not_needed() -> None:
    """When the connector has another one, is deleted, or the worker ends."""
    opened = list[MemoryGroup]()

    def open_group(_: ConnectorOffsetsGroup) -> MemoryGroup:
        opened.append(MemoryGroup())
        return opened[-1]

    stores = ConnectorOffsetStores(LockedOffsetStore(MemoryOffsetStore()), open_group=open_group)
    for each in (owner(), owner(), owner(group_id="others"), owner("d")):
        stores.of(each).current()
    assert 3 == len(opened)

    stores.keep_only(owner(group_id="others"))
    assert [True, False, False] == [each.closed for each in opened]
    stores.keep_only(NamedConnector(name="c"))
    assert [True, True, False] == [each.closed for each in opened]
    stores.close()
    assert all(each.closed for each in opened)
