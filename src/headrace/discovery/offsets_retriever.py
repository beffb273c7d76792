"""Looking offsets up: what initializers ask, and the cluster that answers, as the reader of that isolation level sees it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Protocol

from headrace.connect.errors import RetriableError, TaskFailedError
from headrace.kafka.deadline import Deadline
from headrace.kafka.sentences import listed
from headrace.kafka.topic_partition import TopicPartition
from headrace.kafka.wire.cluster import EARLIEST, LATEST, IsolationLevel, ListedOffset
from headrace.kafka.wire.error_codes import Reaction

Offsets = Mapping[TopicPartition, int]


class PartitionsUnavailableError(RetriableError):
    """The brokers do not say the offsets of *partitions* now, such as those without a leader; those of others they do."""

    def __init__(self, message: str, *, partitions: Collection[TopicPartition]) -> None:
        self.partitions = frozenset(partitions)
        super().__init__(message)


class PartitionOffsetsRetriever(Protocol):
    """Looks offsets up. Each method is called with the partitions of one discovery, by the thread that discovers.

    Each answers every partition that it was asked for, but for ``committed_offsets``; asked for none, it asks no one. They
    raise :class:`PartitionsUnavailableError` when some of the partitions have no answer now,
    :class:`~headrace.connect.errors.RetriableError` when none has, and
    :class:`~headrace.connect.errors.TaskFailedError` when asking again is of no use.
    """

    def committed_offsets(self, partitions: Collection[TopicPartition]) -> Offsets:
        """What the consumer group has committed, without the partitions for which it has nothing.

        Empty, and without a request, where there is no group.
        """
        ...

    def beginning_offsets(self, partitions: Collection[TopicPartition]) -> Offsets:
        """The first offset that is there: that of the log's start."""
        ...

    def end_offsets(self, partitions: Collection[TopicPartition]) -> Offsets:
        """The end for this reader: with ``read_committed`` the last stable offset, else the high watermark."""
        ...

    def high_watermarks(self, partitions: Collection[TopicPartition]) -> Offsets:
        """The end of what is replicated, whatever the isolation level: an offset up to it is in the log."""
        ...

    def offsets_for_times(
        self, timestamps: Mapping[TopicPartition, int]
    ) -> Mapping[TopicPartition, int | None]:
        """The first offset whose timestamp, in milliseconds, is that or later; ``None`` where there is no such record."""
        ...


class OffsetsSource(Protocol):
    """Whom a retriever asks: :class:`~headrace.kafka.wire.cluster.Cluster`, or a double of it; contract as there."""

    def list_offsets(
        self,
        wanted: Mapping[TopicPartition, int],
        deadline: Deadline,
        *,
        isolation: IsolationLevel = ...,
    ) -> Mapping[TopicPartition, ListedOffset]:
        """One offset for each partition in *wanted*: of the log's start, its end, or a time; or an error."""
        ...

    def committed_offsets(
        self, group: str, partitions: Collection[TopicPartition], deadline: Deadline
    ) -> Mapping[TopicPartition, int | None]:
        """What *group* has committed, ``None`` where it has nothing."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterOffsetsRetriever:
    """Asks *cluster*, until *deadline*, as a reader of that *isolation* level and of the group *group_id*, if any.

    A request gets half of the time that is left: a partition whose leader does not answer leaves some for the others.
    """

    cluster: OffsetsSource
    deadline: Deadline
    isolation: IsolationLevel = IsolationLevel.READ_COMMITTED
    group_id: str | None = None

    def committed_offsets(self, partitions: Collection[TopicPartition]) -> Offsets:
        if not self.group_id or not partitions:
            return {}
        found = self.cluster.committed_offsets(self.group_id, partitions, self._share())
        return {place: offset for place, offset in found.items() if offset is not None}

    def beginning_offsets(self, partitions: Collection[TopicPartition]) -> Offsets:
        return self._ends(dict.fromkeys(partitions, EARLIEST), self.isolation)

    def end_offsets(self, partitions: Collection[TopicPartition]) -> Offsets:
        return self._ends(dict.fromkeys(partitions, LATEST), self.isolation)

    def high_watermarks(self, partitions: Collection[TopicPartition]) -> Offsets:
        return self._ends(dict.fromkeys(partitions, LATEST), IsolationLevel.READ_UNCOMMITTED)

    def offsets_for_times(
        self, timestamps: Mapping[TopicPartition, int]
    ) -> Mapping[TopicPartition, int | None]:
        return self._listed(timestamps, self.isolation)

    def _share(self) -> Deadline:
        return Deadline.after(self.deadline.remaining() / 2, self.deadline.clock)

    def _ends(self, wanted: Mapping[TopicPartition, int], isolation: IsolationLevel) -> Offsets:
        found = self._listed(wanted, isolation)
        return {place: offset for place, offset in found.items() if offset is not None}

    def _listed(
        self, wanted: Mapping[TopicPartition, int], isolation: IsolationLevel
    ) -> Mapping[TopicPartition, int | None]:
        if not wanted:
            return {}
        found = self.cluster.list_offsets(wanted, self._share(), isolation=isolation)
        errors = {place: one.error for place, one in found.items() if one.error is not None}
        if errors:
            named, error = listed(sorted(errors)), errors[min(errors)]
            message = f"The brokers give no offset for {named} ({error.name}). {error.advice}"
            if error.reaction is Reaction.FAIL:
                raise TaskFailedError(message.strip())
            raise PartitionsUnavailableError(message.strip(), partitions=errors)
        return {place: found[place].offset for place in wanted}
