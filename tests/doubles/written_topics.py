"""Shared topics of one process, whose other writers are a test."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import cast

from headrace.kafka.sender import OffsetEntry
from headrace.kafka.topic_writer import TopicRecords
from headrace.storage.kafka import ApplyRecord, SharedTopics


@dataclass
class WrittenTopics:
    """Takes in what is written at once, and refuses a write with each of *refusals*, one after the other."""

    written: list[OffsetEntry] = field(default_factory=list[OffsetEntry])
    refusals: list[Exception] = field(default_factory=list[Exception])
    _applied: dict[str, ApplyRecord] = field(default_factory=dict[str, ApplyRecord])

    def shared(self) -> SharedTopics:
        """As the stores want them."""
        return cast("SharedTopics", self)

    def follow(self, topic: str, apply: ApplyRecord) -> None:
        """Have *apply* take in the records of *topic*."""
        self._applied[topic] = apply

    def refresh(self) -> None:
        """All is known already."""

    def arrives(self, topic: str, *entries: OffsetEntry) -> None:
        """Someone else has written *entries*."""
        for each in entries:
            self._applied[topic](*each)

    def write(self, *parts: TopicRecords) -> None:
        """Write *parts*, or refuse it."""
        if self.refusals:
            raise self.refusals.pop(0)
        for topic, entries in parts:
            self.arrives(topic, *entries)
            self.written += entries

    def change(self, parts: Callable[[], Sequence[TopicRecords]]) -> None:
        """Write what *parts* answers, or refuse it."""
        self.write(*parts())
