"""What is written of where records went."""

from __future__ import annotations

from collections.abc import Sequence

from headrace.connect.encoded import CopiedRun
from headrace.kafka.topic_partition import TopicPartition
from headrace.mirror.copied_offsets import CopiedOffsets, Written
from headrace.mirror.formats import OffsetRange, OffsetSync
from headrace.mirror.policies import DefaultReplicationPolicy
from headrace.mirror.positions import Flow

FLOW = Flow("a", "b")


def offsets() -> CopiedOffsets:
    """Of a task that begins."""
    return CopiedOffsets(FLOW, DefaultReplicationPolicy(), 100)


def run(
    first: int, landed: int, records: int, *, partition: int = 0, topic: str = "a.t"
) -> CopiedRun:
    """Of the topic ``t``."""
    place = TopicPartition("t", partition)
    return CopiedRun(FLOW.partition(place), (topic, partition), first, landed, records)


def written(*copied: CopiedRun) -> Written:
    """By the first commit of a task."""
    return offsets().of_commit(copied)


def syncs_of(of: CopiedOffsets, *runs: Sequence[int]) -> list[tuple[int, int]]:
    """Those of one commit, of one partition."""
    found = of.of_commit([run(*each) for each in runs]).syncs
    return [(each.upstream, each.downstream) for each in found]


def test_each_run_is_a_range():
    """Of its own partition, and of the remote one."""
    found = written(run(5, 100, 3), run(9, 103, 1), run(5, 7, 2, partition=1))

    assert [
        OffsetRange("t", 0, 5, 100, 3),
        OffsetRange("t", 0, 9, 103, 1),
        OffsetRange("t", 1, 5, 7, 2),
    ] == found.ranges


def test_what_went_elsewhere_is_left_out():
    """As by a transformation: its offsets there are none of the remote partition."""
    assert Written([], []) == written(run(5, 100, 3, topic="c"))


def test_a_commit_has_no_more_ranges_than_a_thousand_of_a_partition():
    """The last one among them, so that the end is exact."""
    found = written(*(run(2 * each, each, 1) for each in range(5000))).ranges

    assert len(found) <= 1024
    assert OffsetRange("t", 0, 9998, 4999, 1) == found[-1]


def test_each_commit_ends_with_a_sync_of_its_last_record():
    """One for each partition."""
    found = offsets()
    assert [(7, 102)] == syncs_of(found, (5, 100, 3))
    assert [(11, 107)] == syncs_of(found, (8, 104, 2), (11, 107, 1))
    assert [OffsetSync("t", 1, 5, 7)] == written(run(5, 7, 1, partition=1)).syncs


def test_a_commit_without_records_has_neither():
    """As one that only moves a position."""
    assert Written([], []) == written()
