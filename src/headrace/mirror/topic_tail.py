"""Reads one of the mirror's own topics: from its beginning, and then what has come since."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final
from uuid import UUID

import pyarrow as pa

from headrace.connect.errors import RetriableError, TaskFailedError
from headrace.kafka.batches.decoding import Decoding, decoded
from headrace.kafka.deadline import Deadline
from headrace.kafka.topic_partition import TopicPartition
from headrace.kafka.wire.cluster import EARLIEST, LATEST, Cluster, ListedOffset, TopicMetadata
from headrace.kafka.wire.error_codes import UNKNOWN_TOPIC_OR_PARTITION, Reaction
from headrace.kafka.wire.fetcher import LOST, FetchedRecords, Fetcher, FetchRange

_STEP_SECONDS: Final = 1.0


class TopicTail:
    """Reads partition 0 of *topic*, committed records only. One thread owns it, and *cluster* with it.

    The topic may not be there, or be made again: then it is read from its beginning again, before which *forget* is called.
    """

    def __init__(self, cluster: Cluster, topic: str, forget: Callable[[], None]) -> None:
        self._cluster = cluster
        self._place = TopicPartition(topic, 0)
        self._forget = forget
        self._fetcher: Fetcher | None = None
        self._position: int | None = None
        self._topic_id: UUID | None = None
        self.is_complete = False
        """Whether the last :meth:`read` has reached the end that the topic had when it was called."""
        self.is_there: bool | None = None
        """Whether the topic exists; ``None`` until the brokers have answered that."""

    @property
    def topic(self) -> str:
        """The topic's name."""
        return self._place.topic

    def read(self, deadline: Deadline) -> Iterator[pa.RecordBatch]:
        """What has come since the last call, as columns ``key`` and ``value``; ends at *deadline*, whatever is left.

        Raises :class:`~headrace.connect.errors.TaskFailedError` when this client may not read the topic, and
        :class:`~headrace.connect.errors.RetriableError` when the cluster does not answer, or not what the topic is.
        """
        self.is_complete = False
        self._find(deadline)
        if not self.is_there:
            self.is_complete = True
            return
        start, end = self._bounds(deadline)
        try:
            yield from self._fetched(start, end, deadline)
        except LOST:
            self._begin_again(None)

    def close(self) -> None:
        """Close the connections; the cluster's own stay."""
        if self._fetcher is not None:
            self._fetcher.close()

    def _find(self, deadline: Deadline) -> None:
        found = self._asked(deadline)
        if found.error is not None and self.is_there is not False:
            # Brokers learn of a topic one after the other.
            found = self._asked(deadline, again=True)
        self.is_there = found.error is None
        if not self.is_there or found.topic_id != self._topic_id:
            self._begin_again(found.topic_id if self.is_there else None)

    def _asked(self, deadline: Deadline, *, again: bool = False) -> TopicMetadata:
        """What a broker says of the topic, without an error if it is there."""
        found = self._cluster.metadata([self.topic], deadline, again=again).topics[self.topic]
        error = found.error
        if error is None or error == UNKNOWN_TOPIC_OR_PARTITION:
            return found
        if error.reaction is Reaction.FAIL:
            raise TaskFailedError(
                f"The topic {self.topic} cannot be read: the brokers answer {error.name}. "
                f"{error.advice}".rstrip()
            )
        raise RetriableError(
            f"The brokers do not say what the topic {self.topic} is now ({error.name})."
        )

    def _begin_again(self, topic_id: UUID | None) -> None:
        if self._position is not None:
            self._forget()
        self._position, self._topic_id = None, topic_id

    def _bounds(self, deadline: Deadline) -> tuple[int, int]:
        start = self._position
        if start is None:
            start = self._offset(EARLIEST, deadline)
        return start, self._offset(LATEST, deadline)

    def _offset(self, spec: int, deadline: Deadline) -> int:
        found: ListedOffset = self._cluster.list_offsets({self._place: spec}, deadline)[self._place]
        # Without a leader for now nothing is read, and nothing is complete.
        return -1 if found.offset is None else found.offset

    def _fetched(self, start: int, end: int, deadline: Deadline) -> Iterator[pa.RecordBatch]:
        if start < 0 or end < 0:
            return
        self._position = start
        if start >= end:
            self.is_complete = True
            return
        fetcher = self._fetcher
        wanted = FetchRange(place=self._place, start=start, end=end, topic_id=self._topic_id)
        if fetcher is None:
            fetcher = self._fetcher = Fetcher(self._cluster, [wanted])
        else:
            fetcher.add([wanted])
        while not (fetcher.finished or deadline.expired):
            for answer in fetcher.poll(Deadline.after(deadline.remaining(_STEP_SECONDS))):
                yield from _columns(answer)
                self._position = answer.next_offset
        self.is_complete = fetcher.finished
        if self.is_complete:
            self._position = max(self._position, end)


def _columns(answer: FetchedRecords) -> Iterator[pa.RecordBatch]:
    yield from decoded(
        answer.data,
        answer.headers,
        place=answer.place,
        start=answer.fetch_offset,
        aborted=answer.aborted,
        how=Decoding(),
    )
