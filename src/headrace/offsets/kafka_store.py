"""Source offsets in a compacted Kafka topic, byte-compatible with Kafka Connect's."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

from headrace.connect.partition import SourceOffset, SourcePartition
from headrace.connect.task import Offsets
from headrace.kafka.client_config import ClientConfig
from headrace.kafka.compacted_topic import CompactedLog, LogRecord
from headrace.kafka.deadline import Clock, Deadline
from headrace.kafka.sender import OffsetEntry
from headrace.kafka.topic_writer import TopicWriter
from headrace.offsets.index import LogPosition, OffsetIndex

REFRESH_SECONDS = 60.0
_OWN_TOPIC = "A topic of the connector's own avoids this (offsets.storage.topic)."


class KafkaOffsetStore:
    """An :class:`~headrace.offsets.store.OffsetRecordStore` on the existing *topic*; one thread owns it.

    *producer* is created when ``put`` first needs it; with a transactional id ``put`` is atomic, without
    one each record is written by itself. ``refresh`` and ``put`` give up after *refresh_seconds* each, with
    :class:`~headrace.connect.errors.RetriableError`: others that share the store wait no longer than that.
    """

    def __init__(
        self,
        topic: str,
        *,
        client: ClientConfig,
        producer: ClientConfig,
        refresh_seconds: float = REFRESH_SECONDS,
        clock: Clock = time.monotonic,
    ) -> None:
        self._index = OffsetIndex()
        self._log = CompactedLog(topic, client, on_record=self._take, when_late=_OWN_TOPIC)
        self._topic = topic
        self._writer = TopicWriter(
            producer,
            what=f"source offsets in topic {topic!r}",
            open_seconds=refresh_seconds,
            clock=clock,
        )
        self._has_read = False
        self._refresh_seconds = refresh_seconds
        self._clock = clock

    def refresh(self) -> None:
        """See everything committed before this call."""
        before = self._log.partitions
        self._log.read_to_end(Deadline.after(self._refresh_seconds, self._clock))
        self._index.replayed(self._log.partitions)
        if self._log.partitions != before:
            # The producer would write keys to their former partitions for minutes.
            self._writer.close()
        self._has_read = True

    def known(self, connector: str) -> Mapping[SourcePartition, SourceOffset]:
        """All offsets of *connector* as of the last ``refresh``; a snapshot that does not change."""
        return self._index.known(connector)

    def is_empty(self) -> bool:
        """Whether no connector has an offset, as of the last ``refresh``."""
        return self._index.is_empty()

    def differently_encoded(self, connector: str) -> Mapping[SourcePartition, SourceOffset]:
        """Those of ``known`` that are stored under other bytes than ours, alone or beside ours."""
        return self._index.differently_encoded(connector)

    def put(self, connector: str, offsets: Offsets) -> None:
        """Commit *offsets* atomically; ``None`` removes. Durable on return.

        The producer is replaced after any failure, so the same call may be retried. A
        :class:`~headrace.connect.errors.RetriableError` says that the broker did not answer in time.
        """
        if not self._has_read:
            self.refresh()
        entries = self.entries_for(connector, offsets)
        if entries:
            parts = [(self._topic, step) for step in steps(entries)]
            self._writer.write(parts, Deadline.after(self._refresh_seconds, self._clock))

    def entries_for(self, connector: str, offsets: Offsets) -> list[OffsetEntry]:
        """The records that store *offsets*, for a caller that writes them in a transaction of its own.

        They include tombstones where a partition was stored under other bytes than ours.
        """
        return self._index.entries_for(connector, offsets)

    def close(self) -> None:
        """Release the clients."""
        self._writer.close()
        self._log.close()

    def _take(self, record: LogRecord) -> None:
        place = LogPosition(
            partition=record.partition, offset=record.offset, timestamp=record.timestamp
        )
        self._index.apply(record.key, record.value, place)


def steps(entries: Sequence[OffsetEntry]) -> list[list[OffsetEntry]]:
    """*entries* in the steps in which they are written; without a transaction each is acknowledged before the next. Pure.

    Tombstones are written after the offsets: they may belong to another partition of the topic, and a writer that dies in between
    must leave two forms of an offset rather than none.
    """
    offsets = [entry for entry in entries if entry[1] is not None]
    tombstones = [entry for entry in entries if entry[1] is None]
    return [step for step in (offsets, tombstones) if step]
