"""Configurations, statuses and active topics in Kafka Connect's topics, shared by the workers of a group."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from headrace.kafka.client_config import ClientConfig
from headrace.kafka.compacted_topic import CompactedLog, LogRecord
from headrace.kafka.deadline import Clock, Deadline
from headrace.kafka.sender import OffsetEntry
from headrace.kafka.topic_writer import TopicWriter
from headrace.storage.config_topic import (
    ConfigTopic,
    connector_entry,
    target_state_entry,
    task_count_entry,
    task_entries,
)
from headrace.storage.protocols import Status, StoredConnector, TaskCount
from headrace.storage.status_topic import (
    StatusTopic,
    removed_topic_entry,
    status_entry,
    topic_entry,
)
from headrace.storage.topic_records import UnreadableRecordError

_LOG = logging.getLogger(__name__)
WRITE_SECONDS: Final = 30.0
"""What Kafka Connect gives a write and its reading back."""


class _SharedTopic:
    """A topic that others write to as well: what is written is read back before a call returns. Any thread may call."""

    def __init__(
        self,
        log: Callable[[Callable[[LogRecord], None]], CompactedLog],
        writer: TopicWriter,
        apply: Callable[[bytes | None, bytes | None], None],
        *,
        topic: str,
        seconds: float,
        clock: Clock,
    ) -> None:
        self._topic = topic
        self._apply = apply
        self._log = log(self._take)
        self._writer = writer
        self._seconds = seconds
        self._clock = clock
        self._lock = threading.Lock()

    def refresh(self) -> None:
        """See everything committed before this call."""
        with self._lock:
            self._read(self._deadline())

    def write(self, entries: Sequence[OffsetEntry]) -> None:
        """Write *entries*, whatever others wrote."""
        with self._lock:
            self._write(entries, self._deadline())

    def change(self, entries: Callable[[], Sequence[OffsetEntry]]) -> None:
        """Write the *entries* that are given once everything committed before this call is seen; none are written for none."""
        with self._lock:
            deadline = self._deadline()
            self._read(deadline)
            if made := entries():
                self._write(made, deadline)

    def close(self) -> None:
        """Release the clients."""
        with self._lock:
            self._writer.close()
            self._log.close()

    def _deadline(self) -> Deadline:
        return Deadline.after(self._seconds, self._clock)

    def _read(self, deadline: Deadline) -> None:
        self._log.read_to_end(deadline)

    def _write(self, entries: Sequence[OffsetEntry], deadline: Deadline) -> None:
        self._writer.write([entries])
        self._read(deadline)

    def _take(self, record: LogRecord) -> None:
        try:
            self._apply(record.key, record.value)
        except UnreadableRecordError as error:
            _LOG.warning(
                "A record of topic %r is passed over (partition %d, offset %d): %s.",
                self._topic,
                record.partition,
                record.offset,
                error,
            )


def _shared(
    topic: str,
    apply: Callable[[bytes | None, bytes | None], None],
    client: ClientConfig,
    producer: ClientConfig,
    *,
    what: str,
    seconds: float,
    clock: Clock,
) -> _SharedTopic:
    return _SharedTopic(
        lambda take: CompactedLog(topic, client, on_record=take),
        TopicWriter(topic, producer, what=what, seconds=seconds, clock=clock),
        apply,
        topic=topic,
        seconds=seconds,
        clock=clock,
    )


class KafkaConfigStore:
    """A :class:`~headrace.storage.protocols.ConfigStore` on the existing *topic*, which has one partition. Any thread may call.

    What it answers is as of the last ``refresh`` or write. With a transactional id in *producer* each write is atomic, and another
    producer with the same id fences this one (KIP-618). A refresh or a write gives up after *seconds*, with
    :class:`~headrace.connect.errors.RetriableError`.
    """

    def __init__(
        self,
        topic: str,
        *,
        client: ClientConfig,
        producer: ClientConfig,
        seconds: float = WRITE_SECONDS,
        clock: Clock = time.monotonic,
    ) -> None:
        self._found = ConfigTopic()
        self._topic = _shared(
            topic,
            self._found.apply,
            client,
            producer,
            what="connector configurations",
            seconds=seconds,
            clock=clock,
        )

    def refresh(self) -> None:
        """See everything committed before this call."""
        self._topic.refresh()

    def close(self) -> None:
        """Release the clients."""
        self._topic.close()

    def connectors(self) -> Mapping[str, StoredConnector]:
        """Every stored connector by name."""
        return self._found.connectors()

    def connector(self, name: str) -> StoredConnector | None:
        """The stored connector of that name."""
        return self._found.connector(name)

    def put_connector(self, connector: StoredConnector) -> None:
        """Store or replace a connector; what is stored already is not written again, since each record restarts tasks."""
        name = connector.name

        def entries() -> Sequence[OffsetEntry]:
            before = self._found.records(name)
            made: list[OffsetEntry] = []
            if (before.target_state or "RUNNING") != connector.target_state:
                made.append(target_state_entry(name, connector.target_state))
            if before.config != connector.config:
                made.append(connector_entry(name, connector.config))
            return made

        self._topic.change(entries)

    def delete_connector(self, name: str) -> None:
        """Forget a connector's configuration and tasks; its offsets and task count stay."""

        def entries() -> Sequence[OffsetEntry]:
            before = self._found.records(name)
            if before.config is None and before.target_state is None:
                return ()
            return connector_entry(name, None), target_state_entry(name, None)

        self._topic.change(entries)

    def task_configs(self, connector: str) -> Sequence[Mapping[str, str]]:
        """What was last stored by ``put_task_configs``; empty where compaction has taken a part of it."""
        return self._found.records(connector).tasks

    def put_task_configs(self, connector: str, configs: Sequence[Mapping[str, str]]) -> None:
        """Store a connector's tasks, unless they are stored, and were made from its present configuration."""

        def entries() -> Sequence[OffsetEntry]:
            before = self._found.records(connector)
            is_in_force = not before.is_inconsistent and before.applied == before.config
            if is_in_force and before.tasks == tuple(configs):
                return ()
            return task_entries(connector, configs)

        self._topic.change(entries)

    def task_count(self, connector: str) -> TaskCount | None:
        """What was last stored by ``put_task_count``."""
        return self._found.records(connector).count

    def put_task_count(self, connector: str, count: TaskCount) -> None:
        """Store the slot count of a generation, before its first slot starts."""
        self._topic.write([task_count_entry(connector, count)])


class KafkaStatusStore:
    """A :class:`~headrace.storage.protocols.StatusStore` on the existing *topic*. Any thread may call.

    *topics* is the store of active topics, which Kafka Connect keeps beside the statuses. What it answers is as of the last ``refresh`` or write, which each give up after *seconds* with
    :class:`~headrace.connect.errors.RetriableError`. *now* gives seconds since 1970.
    """

    def __init__(
        self,
        topic: str,
        *,
        client: ClientConfig,
        producer: ClientConfig,
        seconds: float = WRITE_SECONDS,
        clock: Clock = time.monotonic,
        now: Clock = time.time,
    ) -> None:
        self._found = StatusTopic()
        self._topic = _shared(
            topic,
            self._found.apply,
            client,
            producer,
            what="statuses",
            seconds=seconds,
            clock=clock,
        )
        self.topics = KafkaTopicStore(self._found, self._topic, now)

    def refresh(self) -> None:
        """See everything committed before this call."""
        self._topic.refresh()

    def close(self) -> None:
        """Release the clients."""
        self._topic.close()

    def put(self, connector: str, task: int | None, status: Status) -> None:
        """Store a status; durable on return."""
        self._topic.write([status_entry(connector, task, status)])

    def statuses(self, connector: str) -> Mapping[int | None, Status]:
        """The connector's own status under ``None``, and those of its tasks."""
        return self._found.statuses(connector)

    def connectors(self) -> Sequence[str]:
        """The names that have any status, sorted."""
        return self._found.connectors()

    def forget(self, connector: str, *, from_task: int | None = None) -> None:
        """Remove all statuses of *connector*, or those of its tasks from number *from_task* on."""

        def entries() -> Sequence[OffsetEntry]:
            known = self._found.statuses(connector)
            tasks = sorted(task for task in known if task is not None and task >= (from_task or 0))
            made = [status_entry(connector, task, None) for task in tasks]
            if from_task is None and None in known:
                made.append(status_entry(connector, None, None))
            return made

        self._topic.change(entries)


class KafkaTopicStore:
    """A :class:`~headrace.storage.protocols.TopicStore` in the topic of :class:`KafkaStatusStore`, which makes it."""

    def __init__(self, found: StatusTopic, topic: _SharedTopic, now: Clock) -> None:
        self._found = found
        self._topic = topic
        self._now = now

    def topics(self, connector: str) -> Sequence[str]:
        """The topics, sorted."""
        return self._found.topics(connector)

    def put(self, connector: str, topics: Sequence[str]) -> None:
        """Add *topics*; durable on return."""
        at_ms = int(self._now() * 1000)

        def entries() -> Sequence[OffsetEntry]:
            new = sorted(set(topics).difference(self._found.topics(connector)))
            # Readers want the number of a task, and it is not known which one was the first.
            return [topic_entry(connector, topic, task=0, at_ms=at_ms) for topic in new]

        self._topic.change(entries)

    def forget(self, connector: str) -> None:
        """Remove all of them."""
        self._topic.change(
            lambda: [
                removed_topic_entry(connector, topic) for topic in self._found.topics(connector)
            ]
        )
