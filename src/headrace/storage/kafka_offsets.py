"""Source offsets in a compacted Kafka topic, byte-compatible with Kafka Connect's."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

from headrace.connect.errors import ConnectError
from headrace.connect.partition import SourceOffset, SourcePartition
from headrace.connect.task import Offsets
from headrace.kafka.client_config import ClientConfig
from headrace.kafka.client_sender import make_sender
from headrace.kafka.deadline import Clock, Deadline
from headrace.kafka.log import CompactedLog, LogRecord
from headrace.kafka.sender import OffsetEntry, Sender
from headrace.storage.offset_index import OffsetIndex, Place

REFRESH_SECONDS = 60.0


class KafkaOffsetStore:
    """An :class:`~headrace.storage.protocols.OffsetStore` on the existing *topic*; one thread owns it.

    *producer* is made when ``put`` first needs it; with a transactional id ``put`` is atomic, without
    one each record is safe by itself. ``refresh`` gives up after *refresh_seconds*.
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
        self._topic = topic
        self._log = CompactedLog(topic, client, on_record=self._take)
        self._sending: Callable[[], Sender] = lambda: make_sender(
            producer, owner=f"writer of {topic!r}", open_seconds=refresh_seconds, clock=clock
        )
        self._sender: Sender | None = None
        self._has_read = False
        self._refresh_seconds = refresh_seconds
        self._clock = clock

    def refresh(self) -> None:
        """See everything committed before this call."""
        self._log.read_to_end(Deadline.after(self._refresh_seconds, self._clock))
        self._has_read = True

    def known(self, connector: str) -> Mapping[SourcePartition, SourceOffset]:
        """All offsets of *connector* as of the last ``refresh``; a snapshot that does not change."""
        return self._index.known(connector)

    def connectors(self) -> set[str]:
        """The connectors that have an offset, as of the last ``refresh``."""
        return self._index.connectors()

    def put(self, connector: str, offsets: Offsets) -> None:
        """Commit *offsets* atomically; ``None`` removes. Durable on return.

        What this store sends with is replaced after any failure, so the same call may be tried again.
        """
        if not self._has_read:
            self.refresh()
        entries = self.entries_for(connector, offsets)
        if not entries:
            return
        try:
            self._write(entries)
        except ConnectError:
            self._drop_sender()
            raise

    def entries_for(self, connector: str, offsets: Offsets) -> list[OffsetEntry]:
        """The records that store *offsets*, for whoever writes them in a transaction of its own.

        Tombstones are among them where a partition was stored under other bytes than ours.
        """
        return self._index.entries_for(connector, offsets)

    def close(self) -> None:
        """Release the clients."""
        self._drop_sender()
        self._log.close()

    def _write(self, entries: list[OffsetEntry]) -> None:
        if self._sender is None:
            self._sender = self._sending()
            self._sender.open()
        self._sender.begin()
        self._sender.send_offsets(self._topic, entries)
        self._sender.commit()

    def _drop_sender(self) -> None:
        if self._sender is not None:
            self._sender.close()
            self._sender = None

    def _take(self, record: LogRecord) -> None:
        place = Place(partition=record.partition, offset=record.offset, timestamp=record.timestamp)
        self._index.apply(record.key, record.value, place)
