"""Exact translation: runs of copied records, and groups' offsets by them."""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from headrace.kafka.topic_partition import TopicPartition
from headrace.mirror.formats import OffsetRange
from headrace.mirror.offset_ranges import (
    OffsetRangeStore,
    RangesRetention,
    merged,
    retention_ms,
    thinned,
)
from headrace.mirror.range_columns import decoded_ranges

PLACE = TopicPartition("t", 3)


class Copied(NamedTuple):
    """Source offsets in order, and where each went."""

    ranges: list[OffsetRange]
    targets: dict[int, int]


@st.composite
def copies(draw: st.DrawFn) -> Copied:
    """A partition that was copied run by run, with gaps on both sides such as compaction and markers leave."""
    upstream, downstream = draw(st.integers(0, 5)), draw(st.integers(0, 5))
    ranges = list[OffsetRange]()
    targets = dict[int, int]()
    gaps = st.integers(0, 3)
    for count in draw(st.lists(st.integers(1, 5), min_size=1, max_size=30)):
        ranges.append(OffsetRange(*PLACE, upstream, downstream, count))
        targets |= {upstream + i: downstream + i for i in range(count)}
        upstream += count + draw(gaps)
        downstream += count + draw(gaps)
    return Copied(ranges, targets)


def store_of(ranges: list[OffsetRange], *, most: int = 1000) -> OffsetRangeStore:
    """A store that has read *ranges*."""
    store = OffsetRangeStore(most=most)
    for each in ranges:
        store.add(each)
    return store


def unread(targets: dict[int, int], upstream: int) -> list[int]:
    """Where the records are that a group at *upstream* has not read yet."""
    return [there for source, there in targets.items() if source >= upstream]


@given(copies(), st.integers(0, 200))
def test_a_group_reads_exactly_what_it_has_not_read(copied: Copied, upstream: int):
    """None of the others, and none twice."""
    found = store_of(copied.ranges).translated(PLACE, upstream)
    if upstream < copied.ranges[0].upstream:
        assert found is None
        return
    assert found is not None
    read = [there for there in copied.targets.values() if there >= found]
    assert unread(copied.targets, upstream) == read


@given(copies(), st.integers(2, 6), st.integers(0, 200))
def test_with_fewer_runs_a_group_is_never_ahead_and_offsets_still_grow(
    copied: Copied, most: int, upstream: int
):
    """It may read records twice, and misses none."""
    store = store_of(copied.ranges, most=most)
    found, next_one = store.translated(PLACE, upstream), store.translated(PLACE, upstream + 1)
    left = unread(copied.targets, upstream)
    assert found is None or not left or found <= left[0]
    assert found is None or (next_one is not None and found <= next_one)
    assert len(store.kept(PLACE)) <= most


@given(copies(), st.integers(1, 6))
def test_thinned_runs_are_some_of_them_and_the_last_is_there(copied: Copied, most: int):
    """Those of a compacted topic may be as many as its records."""
    left = list(thinned(copied.ranges, most))
    assert len(left) == min(most, len(copied.ranges))
    assert left[-1] == copied.ranges[-1]
    assert all(each in copied.ranges for each in left)
    assert all(before.upstream < after.upstream for before, after in pairwise(left))


@given(copies(), st.lists(st.integers(1, 4)), st.integers(0, 200))
def test_merging_changes_no_translation(copied: Copied, cuts: list[int], upstream: int):
    """Runs that were cut into batches are one again."""
    pieces = list[OffsetRange]()
    for each, cut in zip(copied.ranges, cuts + [2] * len(copied.ranges), strict=False):
        first = min(cut, each.records)
        pieces.append(each._replace(records=first))
        if each.records > first:
            rest = each._replace(
                upstream=each.upstream + first,
                downstream=each.downstream + first,
                records=each.records - first,
            )
            pieces.append(rest)
    whole = list(merged(pieces))
    assert whole == list(merged(copied.ranges))
    assert len(whole) <= len(copied.ranges)
    expected = store_of(copied.ranges).translated(PLACE, upstream)
    assert expected == store_of(whole).translated(PLACE, upstream)
    assert expected == store_of(pieces).translated(PLACE, upstream)


def test_runs_of_several_partitions_are_merged_each_by_itself():
    """In whatever order their batches come."""
    runs = [
        OffsetRange("t", 0, 0, 10, 5),
        OffsetRange("t", 1, 0, 0, 5),
        OffsetRange("t", 0, 5, 15, 5),
        OffsetRange("t", 1, 6, 5, 5),
    ]
    expected = {
        OffsetRange("t", 0, 0, 10, 10),
        OffsetRange("t", 1, 0, 0, 5),
        OffsetRange("t", 1, 6, 5, 5),
    }
    assert expected == set(merged(runs))


def test_a_topic_that_was_made_again_forgets_the_old_one():
    """Its offsets begin again, and the remote topic's go on."""
    store = store_of([OffsetRange(*PLACE, 0, 0, 100), OffsetRange(*PLACE, 0, 101, 10)])
    assert store.translated(PLACE, 4) == 105
    assert store.translated(PLACE, 50) == 111


def test_a_remote_topic_that_was_made_again_forgets_where_records_were():
    """Offsets of the target come again; those of the source go on."""
    store = store_of([OffsetRange(*PLACE, 0, 0, 100), OffsetRange(*PLACE, 100, 0, 10)])
    assert store.translated(PLACE, 50) is None
    assert store.translated(PLACE, 104) == 4


def test_records_that_were_copied_again_are_where_they_are_the_last_time():
    """As after a failure without transactions: what was not repeated stays where it was."""
    store = store_of([OffsetRange(*PLACE, 0, 0, 10), OffsetRange(*PLACE, 7, 10, 5)])
    assert store.translated(PLACE, 3) == 3
    assert store.translated(PLACE, 7) == 10
    assert store.translated(PLACE, 12) == 15


def test_nothing_is_known_of_a_partition_without_runs():
    """Another translation may know something."""
    store = store_of([OffsetRange(*PLACE, 10, 0, 10)])
    assert store.translated(TopicPartition("t", 4), 12) is None
    assert store.translated(PLACE, 9) is None


def test_ranges_are_kept_as_long_as_the_records_that_they_speak_of():
    """For ever if some records are, and as Kafka does if there are none."""
    assert retention_ms([{"retention.ms": "5"}, {"retention.ms": "7"}]) == 7
    assert retention_ms([{"retention.ms": "5"}, {"retention.ms": "-1"}]) == -1
    assert retention_ms([{"retention.ms": "5", "cleanup.policy": "compact,delete"}]) == -1
    assert retention_ms([]) == retention_ms([{}]) == 604_800_000


def with_retention(**topics: int) -> dict[str, dict[str, str | None]]:
    """The settings of *topics*, by how long they keep records."""
    return {name: {"retention.ms": str(kept)} for name, kept in topics.items()}


def test_ranges_are_kept_longer_at_once_and_shorter_only_when_two_listings_agree():
    """What a listing lacks may be there."""
    retention = RangesRetention()

    assert 500 == retention.decided(with_retention(t=50), ["t"], now_ms=500)
    assert 50 == retention.decided(with_retention(t=50), ["t"], now_ms=500)
    assert 700 == retention.decided(with_retention(t=50, u=700), ["t"], now_ms=50)
    assert -1 == retention.decided(with_retention(t=50, u=-1), ["t"], now_ms=700)
    assert -1 == retention.decided(with_retention(t=50), ["t"], now_ms=-1)
    assert 50 == retention.decided(with_retention(t=50), ["t"], now_ms=-1)


def test_ranges_are_never_kept_shorter_by_a_listing_that_lacks_what_is_copied():
    """However often it lacks it, and not by an empty one."""
    retention = RangesRetention()
    for _ in range(3):
        assert 500 == retention.decided(with_retention(t=50), ["t", "u"], now_ms=500)
        assert 500 == retention.decided({}, [], now_ms=500)
    assert 50 == retention.decided(with_retention(t=50, u=50), ["t", "u"], now_ms=500)


def batch_of(records: list[tuple[bytes | None, bytes | None]]) -> pa.RecordBatch:
    """As a topic is read."""
    keys, values = zip(*records, strict=True)
    return pa.record_batch(
        {"key": pa.array(keys, pa.binary()), "value": pa.array(values, pa.binary())}
    )


@given(
    st.lists(
        st.builds(
            OffsetRange,
            st.sampled_from(["t", "ü"]),
            st.integers(0, 1),
            st.integers(0, 30),
            st.integers(0, 30),
            st.integers(1, 4),
        ),
        min_size=1,
    )
    | copies().map(lambda copied: copied.ranges),
    st.integers(1, 40),
    st.integers(2, 8),
)
def test_ranges_by_columns_are_what_they_are_one_by_one(
    ranges: list[OffsetRange], at_once: int, most: int
):
    """Whether or not they contradict each other, and in whatever batches they come."""
    expected, store = store_of(ranges, most=most), OffsetRangeStore(most=most)
    for begin in range(0, len(ranges), at_once):
        columns = batch_of([tuple(each.encoded()) for each in ranges[begin : begin + at_once]])
        found, refused = decoded_ranges(columns)
        assert [] == list(refused)
        for each in found:
            store.extend(each)

    for place in {TopicPartition(each.topic, each.partition) for each in ranges}:
        assert expected.kept(place) == store.kept(place)


def test_records_that_are_no_ranges_are_told_and_the_others_are_read():
    """A tombstone says nothing, and more behind the last field is for newer readers."""
    key, value = OffsetRange("t", 3, 5, 6, 7).encoded()
    records = [
        (key, value),
        (key, None),
        (key + b"more", value + b"more"),
        (key, b"\0\1" + value[2:]),
        (None, value),
        (key, OffsetRange("t", 3, 5, 6, 0).encoded().value),
    ]

    found, refused = decoded_ranges(batch_of(records))

    assert [OffsetRange("t", 3, 5, 6, 7)] * 2 == [one for each in found for one in each.ranges()]
    assert 3 == len(refused)
    assert "version 1" in str(refused[0])
    for each in records[2:]:
        alone = decoded_ranges(batch_of([each]))
        assert len(alone.found) + len(alone.refused) == 1
