"""Consumer groups in memory, with the rules of their coordinator; for tests of offsets in a group."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field

from headrace.connect.errors import RetriableError
from headrace.connect.group_offsets import GroupEntry
from headrace.kafka.deadline import Deadline
from headrace.kafka.topic_partition import TopicPartition
from headrace.kafka.wire.cluster import ClusterMetadata, PartitionMetadata, TopicMetadata
from headrace.kafka.wire.group_requests import GroupDescription, GroupMember

Groups = dict[str, dict[tuple[str, int], GroupEntry]]


@dataclass
class MemoryGroup:
    """A ``GroupClient``. *groups* may be those of a ``MemorySender``; while it is *away* nothing is answered.

    Entries of topics that are *pending* are not seen by who does not name them, as first ones whose transaction has just
    ended.
    """

    groups: Groups = field(default_factory=dict[str, dict[tuple[str, int], GroupEntry]])
    members: list[GroupMember] = field(default_factory=list[GroupMember])
    away: bool = False
    reads: int = 0
    closed: bool = False
    missing: set[str] = field(default_factory=set[str])
    pending: set[str] = field(default_factory=set[str])
    meanwhile: Callable[[], object] = lambda: None

    def committed_entries(
        self,
        group: str,
        topics: Collection[str] | None,
        deadline: Deadline,
        *,
        also: Collection[str] = (),
    ) -> list[GroupEntry]:
        """All of them but those that are pending; these are waited for if they are named."""
        self._answer()
        self.reads += 1
        assert topics is None, "its topics are not known beforehand"
        self.pending -= set(also)
        found = self.groups.get(group, {}).values()
        return sorted(each for each in found if each.topic not in self.pending)

    def commit_entries(self, group: str, entries: Sequence[GroupEntry], deadline: Deadline) -> None:
        """Replace those of the same places."""
        self._answer()
        self.groups.setdefault(group, {}).update({each.place: each for each in entries})

    def delete_offsets(
        self, group: str, places: Collection[TopicPartition], deadline: Deadline
    ) -> None:
        """Remove them."""
        self._answer()
        for each in places:
            self.groups.get(group, {}).pop(tuple(each), None)

    def describe_group(self, group: str, deadline: Deadline) -> GroupDescription:
        """As the test says."""
        self._answer()
        return GroupDescription("Stable" if self.members else "Empty", tuple(self.members))

    def metadata(self, topics: Collection[str], deadline: Deadline) -> ClusterMetadata:
        """Topics of two partitions each; those that are *missing* are not there."""
        self._answer()
        parts = {number: PartitionMetadata(number, 1, 0, None) for number in (0, 1)}
        found = {
            name: TopicMetadata(name, None, is_internal=False, error=None, partitions=parts)
            for name in topics
            if name not in self.missing
        }
        return ClusterMetadata(None, {}, found)

    def close(self) -> None:
        """Note it."""
        self.closed = True

    def _answer(self) -> None:
        self.meanwhile()
        if self.away:
            raise RetriableError("Kafka is away.")
