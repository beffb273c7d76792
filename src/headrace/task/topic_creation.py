"""Creates missing topics before their first record, with the settings of topic creation groups (KIP-158)."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, Self

from headrace.connect.errors import TaskFailedError
from headrace.connect.partition import SourcePartition
from headrace.connect.record import RecordMetadata
from headrace.java.regex import java_regex
from headrace.kafka.admin import CreationForbiddenError
from headrace.kafka.deadline import Deadline
from headrace.kafka.sender import EncodedRecords, RecordSender

_log = logging.getLogger(__name__)

# Creation that takes longer is retried with a new plan; a transaction that is open meanwhile must not time out.
_PATIENCE_SECONDS = 15.0


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicGroup:
    """Topics whose full names match a pattern of *include* and none of *exclude*.

    They are created with so many *partitions* and *replicas*, -1 for the broker's default, and with
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
        """Whether *topic* belongs to this group."""
        return _match(self.include, topic) and not _match(self.exclude, topic)

    def described(self, topic: str) -> str:
        """A new *topic* of this group, as Kafka Connect prints one."""
        settings = ", ".join(f"{key}={value}" for key, value in self.settings.items())
        return (
            f"(name={topic}, numPartitions={_number(self.partitions)}, "
            f"replicationFactor={_number(self.replicas)}, replicasAssignments=null, configs={{{settings}}})"
        )


def first_group(groups: Sequence[TopicGroup], topic: str) -> TopicGroup:
    """The first of *groups* that takes *topic*; the last one takes every topic."""
    return next(each for each in groups if each.takes(topic))


def _match(patterns: Sequence[str], topic: str) -> bool:
    return any(java_regex(each).fullmatch(topic) for each in patterns)


def _number(count: int) -> str:
    return "default" if count < 0 else str(count)


class TopicAdmin(Protocol):
    """What is needed of an admin client; see :class:`~headrace.kafka.admin.KafkaAdmin`."""

    def exists(self, topic: str, deadline: Deadline) -> bool:
        """Whether a topic of that name exists and this client may see it."""
        ...

    def ensure_topic(
        self,
        name: str,
        deadline: Deadline,
        *,
        partitions: int,
        replication: int,
        settings: Mapping[str, str] | None = None,
    ) -> bool:
        """Create the topic unless it exists; returns whether it was created."""
        ...


class TopicCreation:
    """A ``RecordSender`` in front of *sender*; the slot's thread owns it.

    Creating a topic is not part of a transaction: the topic stays when its first record is aborted. *check* is called with
    the name of a topic that is missing, and the source partition of the record where that is known, and raises if it must not be created.
    Besides what *sender* and *check* raise, raises ``TaskFailedError`` for a topic that cannot be created, and ``RetriableError`` when
    Kafka does not answer.
    """

    def __init__(
        self,
        sender: RecordSender,
        admin: TopicAdmin,
        groups: Sequence[TopicGroup],
        *,
        check: Callable[[str, SourcePartition | None], None],
    ) -> None:
        self._sender = sender
        self._admin = admin
        self._groups = groups
        self._check = check
        self._known = set[str]()

    def send(self, records: EncodedRecords) -> None:
        """Hand over *records*, after creating their topic if necessary."""
        self._ensure(records)
        self._sender.send(records)

    def send_each(self, records: EncodedRecords) -> Sequence[RecordMetadata]:
        """Like ``send``; returns each record's place in Kafka."""
        self._ensure(records)
        return self._sender.send_each(records)

    def _ensure(self, records: EncodedRecords) -> None:
        topic = records.topic
        if topic in self._known:
            return
        deadline = Deadline.after(_PATIENCE_SECONDS, time.monotonic)
        if not self._admin.exists(topic, deadline):
            self._check(topic, None if records.origin is None else records.origin.source)
            group = first_group(self._groups, topic)
            if self._create(topic, group, deadline):
                _log.info(
                    "Created topic '%s' using creation group %s: %s",
                    topic,
                    group.name,
                    group.described(topic),
                )
        self._known.add(topic)

    def _create(self, topic: str, group: TopicGroup, deadline: Deadline) -> bool:
        try:
            return self._admin.ensure_topic(
                topic,
                deadline,
                partitions=group.partitions,
                replication=group.replicas,
                settings=group.settings,
            )
        except CreationForbiddenError as error:
            raise TaskFailedError(
                f"Task failed to create new topic {group.described(topic)}. Ensure that the task is "
                "authorized to create topics or that the topic exists and restart the task"
            ) from error
        except TaskFailedError as error:
            raise TaskFailedError(
                f"{error} It was to be created with topic.creation.{group.name}.*: {group.described(topic)}."
            ) from error
