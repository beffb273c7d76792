"""How topics are made that are not there: groups of names with settings (KIP-158); pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

from headrace.connect.java_regex import java_regex


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicGroup:
    """Topics whose names match a pattern of *include* as a whole, and none of *exclude*.

    They are made with so many *partitions* and *replicas*, -1 for the broker's own number, and with
    *settings*, such as ``cleanup.policy``.
    """

    name: str
    include: tuple[str, ...]
    partitions: int
    replicas: int
    exclude: tuple[str, ...] = ()
    settings: Mapping[str, str] = field(default_factory=dict[str, str])

    @classmethod
    def from_message(cls, message: Mapping[str, Any]) -> Self:
        """The group whose attributes came as JSON values."""
        given = dict(message)
        for name in ("include", "exclude"):
            given[name] = tuple(given[name])
        return cls(**given)

    def takes(self, topic: str) -> bool:
        """Whether *topic* is made as this group says."""
        return _match(self.include, topic) and not _match(self.exclude, topic)

    def described(self, topic: str) -> str:
        """A new *topic* of this group, as Kafka Connect prints one."""
        settings = ", ".join(f"{key}={value}" for key, value in self.settings.items())
        return (
            f"(name={topic}, numPartitions={_number(self.partitions)}, "
            f"replicationFactor={_number(self.replicas)}, replicasAssignments=null, configs={{{settings}}})"
        )


def first_group(groups: Sequence[TopicGroup], topic: str) -> TopicGroup:
    """The first of *groups* that takes *topic*; the last one takes all."""
    return next(each for each in groups if each.takes(topic))


def _match(patterns: Sequence[str], topic: str) -> bool:
    return any(java_regex(each).fullmatch(topic) for each in patterns)


def _number(count: int) -> str:
    return "default" if count < 0 else str(count)
