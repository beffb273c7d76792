"""What counts when several records, under several bytes, speak of one source partition."""

from __future__ import annotations

import logging

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.connect.partition import SourcePartition
from headrace.storage.offset_index import OffsetIndex, Place

OURS = b'["c",{"cluster":"x","partition":0,"topic":"t"}]'
THEIRS = b'["c",{"topic":"t","partition":0,"cluster":"x"}]'
PARTITION = SourcePartition({"topic": "t", "partition": 0, "cluster": "x"})


def at(offset: int, *, partition: int = 0, timestamp: int = 0) -> Place:
    """Where a record lies."""
    return Place(partition=partition, offset=offset, timestamp=timestamp)


def test_within_a_partition_the_later_offset_counts() -> None:
    """Timestamps may go back inside a partition of the topic; its order does not."""
    index = OffsetIndex()
    index.apply(OURS, b'{"o":1}', at(1, timestamp=9))
    index.apply(THEIRS, b'{"o":2}', at(2, timestamp=5))

    assert {PARTITION: {"o": 2}} == index.known("c")


def test_across_partitions_the_later_time_counts() -> None:
    """Partitions of the topic are replayed in no order, so the time of writing decides."""
    index = OffsetIndex()
    index.apply(THEIRS, b'{"o":2}', at(1, partition=1, timestamp=9))
    index.apply(OURS, b'{"o":1}', at(50, partition=0, timestamp=5))

    assert {PARTITION: {"o": 2}} == index.known("c")


def test_a_tombstone_removes_its_own_bytes_only() -> None:
    """Compaction forgets tombstones, so they must not decide about other bytes."""
    index = OffsetIndex()
    index.apply(THEIRS, b'{"o":2}', at(1))
    index.apply(OURS, None, at(2))

    assert {PARTITION: {"o": 2}} == index.known("c")


def test_entries_also_remove_other_bytes() -> None:
    """An overwrite writes our bytes first and then removes the others."""
    index = OffsetIndex()
    index.apply(THEIRS, b'{"o":2}', at(1))

    assert [(OURS, b'{"o":3}'), (THEIRS, None)] == index.entries_for("c", {PARTITION: {"o": 3}})
    assert [(OURS, None), (THEIRS, None)] == index.entries_for("c", {PARTITION: None})


def test_what_is_skipped_is_told(caplog: pytest.LogCaptureFixture) -> None:
    """A warning names the key, its place and the reason."""
    with caplog.at_level(logging.WARNING):
        OffsetIndex().apply(b"strange", b"{}", at(7, partition=3))

    assert "strange" in caplog.text
    assert "not JSON" in caplog.text


@given(st.lists(st.tuples(st.sampled_from([OURS, THEIRS]), st.none() | st.integers(0, 9))))
def test_writing_entries_always_leaves_one_form(writes: list[tuple[bytes, int | None]]) -> None:
    """Whatever others wrote before, after our entries our offset is the only one."""
    index = OffsetIndex()
    for number, (key, position) in enumerate(writes):
        index.apply(key, None if position is None else b'{"o":%d}' % position, at(number))
    entries = index.entries_for("c", {PARTITION: {"o": 99}})
    for number, (key, value) in enumerate(entries, len(writes)):
        index.apply(key, value, at(number))

    assert {PARTITION: {"o": 99}} == index.known("c")
    assert [(OURS, None)] == index.entries_for("c", {PARTITION: None})
