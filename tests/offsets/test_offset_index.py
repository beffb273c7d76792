"""What counts when several records, under several bytes, speak of one source partition."""

from __future__ import annotations

import json
import logging

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.connect.partition import SourcePartition
from headrace.kafka.partitioner import java_partition
from headrace.offsets.index import LogPosition, OffsetIndex

OURS = b'["c",{"cluster":"x","partition":0,"topic":"t"}]'
THEIRS = b'["c",{"topic":"t","partition":0,"cluster":"x"}]'
PARTITION = SourcePartition({"topic": "t", "partition": 0, "cluster": "x"})
PARTITIONS = 7
HOME = java_partition(OURS, PARTITIONS)
AWAY = (HOME + 1) % PARTITIONS


def at(offset: int, *, partition: int = 0, timestamp: int = 0) -> LogPosition:
    """Where a record lies."""
    return LogPosition(partition=partition, offset=offset, timestamp=timestamp)


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


def test_foreign_is_what_other_bytes_hold() -> None:
    """Alone or beside ours, in another order or with other text of a number; the latest counts."""
    index = OffsetIndex()
    index.apply(OURS, b'{"o":1}', at(1))
    assert {} == index.differently_encoded("c")
    index.apply(THEIRS, b'{"o":2}', at(2))
    index.apply(b'["c",{"n":1e3}]', b'{"o":3}', at(3))
    index.apply(b'["c", {"n": 7}]', b'{"o":4}', at(4))
    index.apply(b'["d",{"b":1,"a":2}]', b'{"o":5}', at(5))

    seven, thousand = SourcePartition(n=7), SourcePartition(n=1000.0)
    expected = {PARTITION: {"o": 2}, thousand: {"o": 3}, seven: {"o": 4}}
    assert expected == index.differently_encoded("c")
    assert {} == index.differently_encoded("no one")


@pytest.mark.parametrize(
    ("key", "value"),
    [(b'["c",{"n":"\\ud800"}]', b'{"o":1}'), (b'["c",{"n": 1}]', b'{"o":"\\ud800"}')],
)
def test_what_we_could_not_store_is_left_as_it_is(
    key: bytes, value: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    """Half a character has no bytes of ours; the connector must start all the same."""
    index = OffsetIndex()
    index.apply(key, value, at(1))

    assert {} == index.differently_encoded("c")
    assert "unpaired surrogate" in caplog.text


def test_what_is_skipped_is_reported(caplog: pytest.LogCaptureFixture) -> None:
    """A warning names the key, its place and the reason."""
    with caplog.at_level(logging.WARNING):
        OffsetIndex().apply(b"strange", b"{}", at(7, partition=3))

    assert "strange" in caplog.text
    assert "not JSON" in caplog.text


HOUR = 3_600_000


@pytest.mark.parametrize("first", ["old", "new"])
def test_one_key_in_two_partitions_does_not_go_back(first: str) -> None:
    """The topic has gained partitions; which of them is replayed first does not matter."""
    records = {
        "old": (OURS, b'{"o":1}', at(9, partition=AWAY, timestamp=5)),
        "new": (OURS, b'{"o":2}', at(0, partition=HOME, timestamp=HOUR)),
    }
    index = OffsetIndex()
    for name in sorted(records, key=lambda name: name != first):
        index.apply(*records[name])
    index.replayed(PARTITIONS)

    assert {PARTITION: {"o": 2}} == index.known("c")


@pytest.mark.parametrize("first", ["value", "tombstone"])
def test_what_was_removed_stays_removed(first: str) -> None:
    """A tombstone counts against an older record in another partition, now and after later replays."""
    records = {
        "value": (OURS, b'{"o":1}', at(9, partition=AWAY, timestamp=5)),
        "tombstone": (OURS, None, at(0, partition=HOME, timestamp=6)),
    }
    index = OffsetIndex()
    for name in sorted(records, key=lambda name: name != first):
        index.apply(*records[name])
    for _ in range(3):
        index.replayed(PARTITIONS)

        assert {} == index.known("c")
    assert [(OURS, None)] == index.entries_for("c", {PARTITION: None})


def test_where_the_key_belongs_counts_unless_it_is_much_older() -> None:
    """Clocks of two machines differ a little; a record that is an hour older is older."""
    index = OffsetIndex()
    index.apply(OURS, b'{"o":1}', at(9, partition=AWAY, timestamp=HOUR))
    index.apply(OURS, b'{"o":2}', at(0, partition=HOME, timestamp=HOUR - 60_000))
    index.replayed(PARTITIONS)
    assert {PARTITION: {"o": 2}} == index.known("c")

    index.apply(OURS, b'{"o":3}', at(10, partition=AWAY, timestamp=2 * HOUR))
    assert {PARTITION: {"o": 3}} == index.known("c")


def test_the_partitions_of_today_say_where_a_key_belongs() -> None:
    """A topic that gains partitions while it is followed moves keys."""
    index = OffsetIndex()
    index.apply(OURS, b'{"o":1}', at(9, partition=0, timestamp=60_000))
    index.apply(OURS, b'{"o":2}', at(0, partition=HOME, timestamp=0))
    index.replayed(1)
    assert {PARTITION: {"o": 1}} == index.known("c")
    index.replayed(PARTITIONS)

    assert HOME != 0
    assert {PARTITION: {"o": 2}} == index.known("c")


def test_a_record_that_is_replayed_again_changes_nothing() -> None:
    """Inside a partition the order of the log counts, whatever comes when."""
    index = OffsetIndex()
    index.apply(OURS, b'{"o":2}', at(2))
    index.apply(OURS, b'{"o":1}', at(1))
    index.apply(OURS, None, at(0))

    assert {PARTITION: {"o": 2}} == index.known("c")


def test_tombstones_do_not_pile_up() -> None:
    """A worker that removes offsets for months keeps nothing of them."""
    index = OffsetIndex()
    for number in range(100):
        key = b'["c",{"n":%d}]' % number
        index.apply(key, b"{}", at(2 * number))
        index.apply(key, None, at(2 * number + 1))
        index.replayed(1)
    index.replayed(1)

    assert {} == index._forms["c"]


@st.composite
def histories(draw: st.DrawFn) -> list[tuple[int, bytes | None, int]]:
    """Commits of one key in the order of time: partition, value and timestamp of each.

    The topic grows; each commit goes where the key belongs then. Clocks go on by hours when it grows, and
    elsewhere, inside a partition, they may go back.
    """
    sizes = draw(st.lists(st.integers(1, 9), min_size=1, max_size=4).map(sorted))
    commits: list[tuple[int, bytes | None, int]] = []
    for era, size in enumerate(sizes):
        for _ in range(draw(st.integers(0, 4))):
            value = draw(st.none() | st.just(b'{"o":%d}' % len(commits)))
            timestamp = 2 * era * HOUR + draw(st.integers(0, 60_000))
            commits.append((java_partition(OURS, size), value, timestamp))
    return commits


@given(histories(), st.data())
def test_the_last_commit_counts_in_every_interleaving(
    commits: list[tuple[int, bytes | None, int]], data: st.DataObject
) -> None:
    """However partitions are replayed beside each other, and whenever the replay pauses."""
    logs: dict[int, list[tuple[bytes | None, LogPosition]]] = {}
    for offset, (partition, value, timestamp) in enumerate(commits):
        place = at(offset, partition=partition, timestamp=timestamp)
        logs.setdefault(partition, []).append((value, place))
    index = OffsetIndex()
    while logs:
        partition = data.draw(st.sampled_from(sorted(logs)))
        index.apply(OURS, *logs[partition].pop(0))
        if not logs[partition]:
            del logs[partition]
    for _ in range(data.draw(st.integers(1, 3))):
        index.replayed(9)

    last = commits[-1][1] if commits else None
    expected = {} if last is None else {PARTITION: json.loads(last)}
    assert expected == index.known("c")


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
    assert {} == index.differently_encoded("c")
    assert [(OURS, None)] == index.entries_for("c", {PARTITION: None})
