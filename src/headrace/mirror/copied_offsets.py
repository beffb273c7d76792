"""What is written of where records went: offset ranges, and MirrorMaker's offset syncs. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from headrace.connect.encoded import CopiedRun
from headrace.kafka.topic_partition import TopicPartition
from headrace.mirror.formats import OffsetRange, OffsetSync
from headrace.mirror.offset_ranges import thinned
from headrace.mirror.offset_syncs import SyncedPartition
from headrace.mirror.policies import ReplicationPolicy
from headrace.mirror.positions import Flow

# A commit of a compacted topic may have as many runs as records.
_MOST_OF_COMMIT: Final = 1024


class Written(NamedTuple):
    """What belongs to one commit."""

    ranges: Sequence[OffsetRange]
    syncs: Sequence[OffsetSync]


@dataclass(slots=True)
class CopiedOffsets:
    """Says of each commit of a task what is written of it. One thread owns it.

    Records that went elsewhere than to their remote partition, as by a transformation, are left out: nobody would look for them
    there.
    """

    flow: Flow
    policy: ReplicationPolicy
    lag_max: int
    _synced: dict[TopicPartition, SyncedPartition] = field(
        default_factory=dict[TopicPartition, SyncedPartition]
    )

    def of_commit(self, copied: Iterable[CopiedRun]) -> Written:
        """Of what is *copied* in a commit; of each partition at most one sync, the last one."""
        by_place = dict[TopicPartition, list[OffsetRange]]()
        for place, run in self._remote(copied):
            found = OffsetRange(*place, run.first, run.target_first, run.records)
            by_place.setdefault(place, []).append(found)
        ranges, syncs = list[OffsetRange](), list[OffsetSync]()
        for place, found in by_place.items():
            syncs.append(self._sync(place, found))
            ranges += thinned(found, _MOST_OF_COMMIT)
        return Written(ranges, syncs)

    def _remote(self, copied: Iterable[CopiedRun]) -> Iterator[tuple[TopicPartition, CopiedRun]]:
        for run in copied:
            place = self.flow.place(run.source)
            if place is None:
                continue
            remote = self.policy.remote_topic(self.flow.source, place.topic), place.partition
            if run.target == remote:
                yield place, run

    def _sync(self, place: TopicPartition, ranges: Sequence[OffsetRange]) -> OffsetSync:
        synced = self._synced.get(place)
        if synced is None:
            synced = self._synced[place] = SyncedPartition(place, lag_max=self.lag_max)
        due = None
        for each in ranges:
            due = synced.copied(each.upstream, each.downstream, each.records) or due
        # The commit has one of the last record, if that is not due by itself.
        last = synced.committed() or due
        assert last is not None, "each last record has one by then"
        return last
