"""Record batches fetched from the leaders of many partitions at once."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING
from uuid import UUID

from headrace.connect.errors import TaskFailedError
from headrace.kafka.deadline import Clock, Deadline
from headrace.kafka.topic_partition import TopicPartition
from headrace.kafka.wire.cluster import Cluster, IsolationLevel

if TYPE_CHECKING:
    from headrace.kafka.batches import AbortedTransaction, BatchHeader


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchSettings:
    """How much is fetched at once. *max_bytes* bounds one answer, *max_partition_bytes* one partition's part of it.

    A record batch that is longer than either still comes, alone. An answer is sent as soon as there are *min_bytes*,
    or after *max_wait_ms*.
    """

    isolation: IsolationLevel = IsolationLevel.READ_COMMITTED
    max_bytes: int = 16 * 1024 * 1024
    max_partition_bytes: int = 4 * 1024 * 1024
    min_bytes: int = 1
    max_wait_ms: int = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchRange:
    """Offsets to fetch: from *start* up to, not including, *end*; without an end it is never finished.

    *topic_id* is the topic that is meant, should there be another one of that name; ``None`` where the brokers have no
    ids, or for whichever topic has the name.
    """

    place: TopicPartition
    start: int
    end: int | None = None
    topic_id: UUID | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchedRecords:
    """Record batches of one partition.

    *data* is a view on the received bytes, which live as long as it does; *headers* are those of its complete batches.
    The first one may begin before *fetch_offset*, the last one may end after the range. The next request asks for
    *next_offset*. *aborted* are the aborted transactions in these batches, empty when reading uncommitted.
    """

    place: TopicPartition
    fetch_offset: int
    data: memoryview
    headers: list[BatchHeader]
    next_offset: int
    aborted: tuple[AbortedTransaction, ...]
    high_watermark: int
    last_stable_offset: int
    log_start_offset: int


class OffsetOutOfRangeError(TaskFailedError):
    """The offset to fetch is not in the partition's log.

    It was deleted (*offset* < *log_start*), or never written or lost by the brokers (*offset* > *log_end*).
    """

    def __init__(self, place: TopicPartition, *, offset: int, log_start: int, log_end: int) -> None:
        self.place = place
        self.offset = offset
        self.log_start = log_start
        self.log_end = log_end
        super().__init__(
            f"Offset {offset} of {place} is out of range: the log now begins at {log_start} and ends at {log_end}."
        )


class TopicRecreatedError(TaskFailedError):
    """The topic was deleted, and another one of the same name created: offsets of the one mean nothing in the other."""

    def __init__(self, place: TopicPartition, *, expected: UUID, found: UUID) -> None:
        self.place = place
        self.expected = expected
        self.found = found
        super().__init__(
            f"The topic {place.topic!r} was deleted and created again: {place} was to be read in the topic with the id "
            f"{expected}, and there is one with the id {found} now."
        )


class TopicMissingError(TaskFailedError):
    """The brokers do not know the topic, or the partition, any more; they were asked a second time."""

    def __init__(self, place: TopicPartition) -> None:
        self.place = place
        super().__init__(
            f"The partition {place} does not exist (any more). Check the topic's name."
        )


class Fetcher:
    """Fetches ranges of partitions, one request in flight for each leader. One thread uses it.

    ``poll`` sends the next request to a leader before it returns what the last one brought, so that the broker works
    while the caller decodes. One call returns what one leader has answered: at most ``max_bytes``, or one longer
    batch. A caller that lets go of it before the next call so holds one answer at a time; what other leaders have
    answered waits at the brokers and in the system's socket buffers.

    The partitions that have just brought data go to the end of the next request, so none starves. Ranges that have
    reached their end are not asked for any more. Fetch requests name topics by id where the broker can (KIP-516).
    """

    def __init__(
        self,
        cluster: Cluster,
        ranges: Collection[FetchRange],
        settings: FetchSettings = FetchSettings(),  # noqa: B008 (it is frozen)
        *,
        clock: Clock = time.monotonic,
    ) -> None:
        raise NotImplementedError

    def poll(self, deadline: Deadline) -> list[FetchedRecords]:
        """What has arrived next; empty when nothing has before the deadline, or when every range is finished.

        Moved leaders and lost connections are waited out. Raises :class:`~headrace.connect.errors.RetriableError`
        when nothing came before the deadline and a broker or a leader is away; polling again goes on. Raises
        :class:`OffsetOutOfRangeError`, :class:`TopicRecreatedError` and :class:`TopicMissingError` once for a
        partition, which is then not asked for any more until it is added again; other partitions lose nothing.
        """
        raise NotImplementedError

    def add(self, ranges: Collection[FetchRange]) -> None:
        """Fetch these, too; a range of a partition that is here already replaces its range."""
        raise NotImplementedError

    def remove(self, places: Collection[TopicPartition]) -> None:
        """Fetch these no more; what is in flight for them is dropped."""
        raise NotImplementedError

    @property
    def finished(self) -> bool:
        """Whether every range has reached its end."""
        raise NotImplementedError

    @property
    def positions(self) -> Mapping[TopicPartition, int]:
        """The next offset to fetch of every partition."""
        raise NotImplementedError

    @property
    def throttled_ms(self) -> int:
        """How long brokers have throttled this client so far, by quota."""
        raise NotImplementedError

    def close(self) -> None:
        """Close the connections to the leaders."""
        raise NotImplementedError
