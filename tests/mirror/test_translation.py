"""Offsets of groups, translated by what is known of where records went."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.connect.group_offsets import GroupEntry
from headrace.kafka.topic_partition import TopicPartition
from headrace.mirror.checkpoints import entries_to_commit, is_news, may_be_moved, translated
from headrace.mirror.filters import topic_filter
from headrace.mirror.formats import Checkpoint, OffsetRange, OffsetSync
from headrace.mirror.offset_syncs import OffsetSyncStore
from headrace.mirror.policies import DefaultReplicationPolicy, IdentityReplicationPolicy
from headrace.mirror.positions import Flow
from headrace.mirror.range_columns import RangeColumns
from headrace.mirror.translation import Translation

PLACE = TopicPartition("t", 0)
BACK = TopicPartition("b.t", 0)
# A record, or an offset without one: a marker, or what compaction has removed.
LOGS = st.lists(st.booleans(), max_size=60)


def translation(*, synced: Sequence[OffsetSync] = ()) -> Translation:
    """Of the flow a->b, with *synced* read."""
    syncs = OffsetSyncStore(is_precise=True)
    for each in synced:
        syncs.add(each)
    syncs.complete()
    return Translation(Flow("a", "b"), DefaultReplicationPolicy(), syncs)


def copied(log: Sequence[bool], chance: random.Random) -> list[tuple[int, int]]:
    """The source's and the target's offset of each record of *log*; the target has markers in between."""
    found, at = list[tuple[int, int]](), chance.randrange(3)
    for offset, is_record in enumerate(log):
        if is_record:
            found.append((offset, at))
            at += 1
        at += chance.choice([0, 0, 0, 1])
    return found


def ranges(pairs: Sequence[tuple[int, int]]) -> list[OffsetRange]:
    """One for each record; the store puts them together."""
    return [OffsetRange("t", 0, upstream, downstream, 1) for upstream, downstream in pairs]


def left(offsets: Sequence[int], from_offset: int) -> int:
    """How many records a group has yet to read that goes on at an offset."""
    return sum(each >= from_offset for each in offsets)


@given(LOGS, st.integers(0, 70), st.randoms())
def test_a_group_has_as_much_left_on_either_side(
    log: Sequence[bool], at: int, chance: random.Random
):
    """Wherever it is, if everything is copied: it re-reads nothing and misses nothing. And on the way back."""
    pairs = copied(log, chance)
    there = translation()
    for each in ranges(pairs):
        there.ranges.add(each)
        there.add_back(RangeColumns.of(each))
    upstream, downstream = [up for up, _ in pairs], [down for _, down in pairs]

    found = there.offset(PLACE, at)
    back = there.offset(BACK, at)

    if pairs and at >= upstream[0]:
        assert found is not None
        assert left(upstream, at) == left(downstream, found)
    else:
        assert found is None
    if pairs and at >= downstream[0]:
        assert back is not None
        assert left(downstream, at) == left(upstream, back)
    else:
        assert back is None


def test_a_group_waits_at_the_end_of_what_is_copied():
    """What it has read beyond is copied later, behind that; MirrorMaker may have done it."""
    there = translation(synced=[OffsetSync("t", 0, 30, 130)])
    there.ranges.add(OffsetRange("t", 0, 0, 100, 10))

    assert 105 == there.offset(PLACE, 5)
    assert 110 == there.offset(PLACE, 20)
    assert 131 == there.offset(PLACE, 40)


def test_without_ranges_syncs_count():
    """As in MirrorMaker."""
    there = translation(synced=[OffsetSync("t", 0, 7, 3)])

    assert [None, 3, 4, 4] == [there.offset(PLACE, at) for at in (6, 7, 8, 99)]
    assert there.offset(TopicPartition("u", 0), 0) is None


@pytest.mark.parametrize(
    ("topic", "expected"),
    [("t", "a.t"), ("b.t", "t"), ("c.t", "a.c.t"), ("b.c.t", "c.t"), ("a.t", "a.a.t")],
)
def test_a_topic_from_the_target_is_its_own_there(topic: str, expected: str):
    """Others are remote ones."""
    assert TopicPartition(expected, 3) == translation().place(TopicPartition(topic, 3))


def test_under_the_identity_policy_names_stay():
    """A name does not say where a topic comes from."""
    policy = IdentityReplicationPolicy(source="a")
    there = Translation(Flow("a", "b"), policy, OffsetSyncStore(is_precise=True))
    assert PLACE == there.place(PLACE)


def test_checkpoints_are_of_topics_that_are_copied():
    """With the metadata that the group has committed."""
    there = translation(synced=[OffsetSync("t", 0, 7, 3), OffsetSync("other", 0, 1, 1)])
    entries = {
        "g": [GroupEntry("t", 0, 7, "m"), GroupEntry("t", 1, 7), GroupEntry("other", 0, 5)],
        "h": [GroupEntry("t", 0, 6)],
    }

    found = translated(entries, there, topic_filter({"topics": "t"}))

    assert [Checkpoint("g", "a.t", 0, 7, 3, "m")] == [*found]


@pytest.mark.parametrize(
    ("last", "is_so"),
    [
        (None, True),
        ((10, 5), False),
        ((9, 5), False),
        ((9, 4), True),
        ((11, 9), True),
        ((10, 6), False),
    ],
)
def test_only_what_says_more_is_written(last: tuple[int, int] | None, *, is_so: bool):
    """Or that a group has gone back."""
    before = None if last is None else Checkpoint("g", "a.t", 0, *last)
    assert is_so == is_news(Checkpoint("g", "a.t", 0, 10, 5), before)


def test_offsets_on_the_target_never_go_back():
    """What is not committed there yet is."""
    checkpoints = [Checkpoint("g", "a.t", number, 9, 5, "m") for number in range(4)]
    committed = [GroupEntry("a.t", 0, 6), GroupEntry("a.t", 1, 5), GroupEntry("a.t", 2, 4)]

    found = entries_to_commit(checkpoints, committed)

    assert [GroupEntry("a.t", 2, 5, "m"), GroupEntry("a.t", 3, 5, "m")] == found


def test_a_group_that_somebody_consumes_with_is_left_alone():
    """Whatever protocol it has."""
    states = ("Empty", "Dead", "Stable", "PreparingRebalance", "Assigning", "")
    assert [True, True, False, False, False, False] == [may_be_moved(each) for each in states]
