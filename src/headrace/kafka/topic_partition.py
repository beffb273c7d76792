"""A topic's partition and a topic's id, as every part that reads Kafka names them."""

from __future__ import annotations

import base64
from typing import NamedTuple
from uuid import UUID


class TopicPartition(NamedTuple):
    """One partition of one topic. Sorts by topic, then by number, and prints as Kafka's own tools do."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


def topic_id_text(topic_id: UUID) -> str:
    """A topic id as Kafka's tools print it."""
    return base64.urlsafe_b64encode(topic_id.bytes).decode().rstrip("=")
