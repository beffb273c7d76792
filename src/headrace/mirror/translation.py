"""Where on the target a group goes on, by all that is known of where records went. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field

from headrace.kafka.topic_partition import TopicPartition
from headrace.mirror.offset_ranges import OffsetRangeStore
from headrace.mirror.offset_syncs import OffsetSyncStore
from headrace.mirror.policies import ReplicationPolicy
from headrace.mirror.positions import Flow
from headrace.mirror.range_columns import RangeColumns


@dataclass(slots=True)
class Translation:
    """Translates offsets of the source of *flow* into offsets of its target. One thread owns it.

    *ranges* are exact, for what this flow has copied, and so are *back*, for what the opposite flow has copied here: they have
    the ranges of that turned round, under the remote names. *syncs* are MirrorMaker's. No offset is translated to more than
    the group has read, if the other cluster has it at all.
    """

    flow: Flow
    policy: ReplicationPolicy
    syncs: OffsetSyncStore
    ranges: OffsetRangeStore = field(default_factory=OffsetRangeStore)
    back: OffsetRangeStore = field(default_factory=OffsetRangeStore)

    def add_back(self, found: RangeColumns) -> None:
        """Take the next ranges of the opposite flow."""
        topic, partition = found.place
        remote = TopicPartition(self.policy.remote_topic(self.flow.target, topic), partition)
        self.back.extend(RangeColumns(remote, found.downstream, found.upstream, found.records))

    def place(self, place: TopicPartition) -> TopicPartition:
        """The partition on the target that has the records of *place*: its remote one, or the one that it was copied from."""
        topic = place.topic
        if self._is_from_target(topic):
            upstream = self.policy.upstream_topic(topic)
            return place._replace(topic=topic if upstream is None else upstream)
        return place._replace(topic=self.policy.remote_topic(self.flow.source, topic))

    def offset(self, place: TopicPartition, upstream: int) -> int | None:
        """The next offset of :meth:`place` for a group whose next one of *place* is *upstream*; ``None`` where it is not known."""
        ranges = self.back if self._is_from_target(place.topic) else self.ranges
        exact, end = ranges.translated(place, upstream), ranges.end(place)
        if exact is not None and end is not None and upstream < end:
            return exact
        # Behind the ranges MirrorMaker may have gone on.
        known = (exact, self.syncs.translated(place, upstream))
        return max((each for each in known if each is not None), default=None)

    def _is_from_target(self, topic: str) -> bool:
        return self.policy.topic_source(topic) == self.flow.target
