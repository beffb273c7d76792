"""Keeps records out of the topic that the task's own offsets are in (KIP-618)."""

from __future__ import annotations

from collections.abc import Sequence

from headrace.connect.errors import TaskFailedError
from headrace.connect.record import RecordMetadata
from headrace.kafka.sender import EncodedRecords, RecordSender


class OffsetsTopicGuard:
    """A ``RecordSender`` in front of *sender*. A record for the *forbidden* topic fails the *task*, whatever it tolerates."""

    def __init__(self, sender: RecordSender, forbidden: str, *, task: str) -> None:
        self._sender = sender
        self._forbidden = forbidden
        self._task = task

    def send(self, records: EncodedRecords) -> None:
        """Hand over *records*."""
        self._refuse(records)
        self._sender.send(records)

    def send_each(self, records: EncodedRecords) -> Sequence[RecordMetadata]:
        """Like ``send``; returns each record's place in Kafka."""
        self._refuse(records)
        return self._sender.send_each(records)

    def _refuse(self, records: EncodedRecords) -> None:
        if records.topic == self._forbidden:
            raise TaskFailedError(
                "Source tasks may not produce to their own offsets topics when exactly-once support is enabled: "
                f"{self._task} was to send {len(records)} records to {self._forbidden}, which holds its offsets. "
                "Send them to another topic: look at the connector's topic settings and at transformations that "
                "change topics, or name another topic for its offsets (offsets.storage.topic)."
            )
