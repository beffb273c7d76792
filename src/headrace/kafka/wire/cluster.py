"""What a reader asks a cluster: topics and leaders, offsets of logs, and offsets of groups."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping
from enum import IntEnum
from typing import Final, NamedTuple
from uuid import UUID

from headrace.kafka.deadline import Clock, Deadline
from headrace.kafka.topic_partition import TopicPartition
from headrace.kafka.wire.connection import WireConnection
from headrace.kafka.wire.error_codes import ErrorCode
from headrace.kafka.wire.settings import WireSettings

EARLIEST: Final = -2
"""Instead of a timestamp: the log's start."""
LATEST: Final = -1
"""Instead of a timestamp: the log's end, as far as the isolation level lets one read."""


class IsolationLevel(IntEnum):
    """Which records of transactions a reader sees (KIP-98)."""

    READ_UNCOMMITTED = 0
    READ_COMMITTED = 1


class PartitionMetadata(NamedTuple):
    """A partition as the brokers know it; *leader* is a node id, or ``None`` while there is no leader."""

    partition: int
    leader: int | None
    leader_epoch: int
    error: ErrorCode | None


class TopicMetadata(NamedTuple):
    """A topic as the brokers know it.

    *topic_id* is ``None`` with brokers that have none (before Kafka 2.8). With an *error*, such as
    UNKNOWN_TOPIC_OR_PARTITION or TOPIC_AUTHORIZATION_FAILED, there may be no partitions.
    """

    name: str
    topic_id: UUID | None
    is_internal: bool
    error: ErrorCode | None
    partitions: Mapping[int, PartitionMetadata]


class ClusterMetadata(NamedTuple):
    """One answer; *brokers* are host and port by node id."""

    cluster_id: str | None
    brokers: Mapping[int, tuple[str, int]]
    topics: Mapping[str, TopicMetadata]


class ListedOffset(NamedTuple):
    """An offset of a log, or the *error* because of which there is none.

    *offset* is ``None`` with an error, and when no record is as late as the timestamp that was asked for.
    *timestamp* is that of the record at the offset, -1 for :data:`EARLIEST` and :data:`LATEST`.
    """

    offset: int | None
    timestamp: int = -1
    leader_epoch: int = -1
    error: ErrorCode | None = None


class Cluster:
    """Sends a reader's requests to the right brokers. One thread uses it; nothing is connected before the first call.

    Each call retries with back-off until its deadline whatever a retry can resolve: lost connections, leaders and
    coordinators that have moved, brokers that start. Then it raises
    :class:`~headrace.connect.errors.RetriableError` if a broker did not answer. It raises
    :class:`~headrace.connect.errors.TaskFailedError` at once for what no retry can resolve, such as a wrong password.
    No request creates a topic.
    """

    def __init__(self, settings: WireSettings, *, clock: Clock = time.monotonic) -> None:
        raise NotImplementedError

    def metadata(self, topics: Collection[str] | None, deadline: Deadline) -> ClusterMetadata:
        """Metadata of *topics* (``None``: of all that this client may see).

        A topic that the brokers do not know is in the answer with its error; it is not waited for.
        """
        raise NotImplementedError

    def list_offsets(
        self,
        wanted: Mapping[TopicPartition, int],
        deadline: Deadline,
        *,
        isolation: IsolationLevel = IsolationLevel.READ_COMMITTED,
    ) -> dict[TopicPartition, ListedOffset]:
        """One offset for each partition in *wanted*: :data:`EARLIEST`, :data:`LATEST`, or a timestamp in milliseconds.

        A timestamp asks for the first record that is at least as late. With read_committed the latest offset is the
        last stable offset. One request for each leader. A partition without a leader, or of a topic that does not
        exist, is answered with that error and not waited for; a retriable error that remains at the deadline is
        answered, too.
        """
        raise NotImplementedError

    def committed_offsets(
        self, group: str, partitions: Collection[TopicPartition], deadline: Deadline
    ) -> dict[TopicPartition, int | None]:
        """The offset that *group* has committed for each of *partitions*, ``None`` where it has none.

        An offset in an open transaction is waited for.
        """
        raise NotImplementedError

    def commit_offsets(
        self, group: str, offsets: Mapping[TopicPartition, int], deadline: Deadline
    ) -> None:
        """Commit *offsets* for *group*, which has no members, for tools that show a reader's lag."""
        raise NotImplementedError

    def connect(self, node: int, deadline: Deadline) -> WireConnection:
        """A new connection to the broker with the id *node*, which is the caller's to close.

        Raises ``OSError`` when it is not reached; then ask for metadata again.
        """
        raise NotImplementedError

    def close(self) -> None:
        """Close the connections; a later call makes new ones."""
        raise NotImplementedError
