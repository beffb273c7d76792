"""The three topics of a group of workers, by the worker's settings ``config.storage.*``, ``offset.storage.*``, ``status.storage.*``.

Pure. Which of these settings are a topic's, and the sentences about those that are ignored, are Kafka Connect's.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from headrace.connect.config import under
from headrace.kafka.admin import CompactedTopic

_TOPIC: Final = "topic"
_PARTITIONS: Final = "partitions"
_REPLICATION: Final = "replication.factor"
_CLEANUP_POLICY: Final = "cleanup.policy"


@dataclass(frozen=True, slots=True)
class InternalTopic:
    """One of the three: the *prefix* of its settings, and what it *keeps*."""

    prefix: str
    keeps: str
    is_single: bool = False

    def described(
        self, props: Mapping[str, str], *, name: str, partitions: int, replication: int
    ) -> CompactedTopic:
        """The topic *name* with what the worker's *props* say of topics of this kind."""
        return CompactedTopic(
            name=name,
            partitions=1 if self.is_single else partitions,
            replication=replication,
            setting=f"{self.prefix}{_TOPIC}",
            keeps=self.keeps,
            settings={
                key: value
                for key, value in under(props, self.prefix).items()
                if key not in (_TOPIC, _PARTITIONS, _REPLICATION, _CLEANUP_POLICY)
            },
            prefix=self.prefix,
            is_single=self.is_single,
        )

    def ignored(self, props: Mapping[str, str]) -> Iterator[str]:
        """A sentence for each setting in *props* that has no effect."""
        given = under(props, self.prefix)
        if self.is_single and _PARTITIONS in given:
            yield (
                f"Ignoring '{self.prefix}{_PARTITIONS}={given[_PARTITIONS]}' setting, since config topic partitions is "
                "always 1"
            )
        if _CLEANUP_POLICY in given:
            yield (
                f"Ignoring '{self.prefix}{_CLEANUP_POLICY}={given[_CLEANUP_POLICY]}' setting, since compaction is always used"
            )


CONFIGS: Final = InternalTopic("config.storage.", "connector configurations", is_single=True)
OFFSETS: Final = InternalTopic("offset.storage.", "source connector offsets")
STATUSES: Final = InternalTopic("status.storage.", "connector and task statuses")
