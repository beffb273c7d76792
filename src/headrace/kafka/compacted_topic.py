"""A compacted topic, read from its beginning and then followed, by one consumer without a group."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from confluent_kafka import Consumer, KafkaException, TopicPartition
from confluent_kafka import Message as Consumed

from headrace.connect.errors import ConnectError, RetriableError, TaskFailedError
from headrace.kafka.admin import KafkaAdmin
from headrace.kafka.client_config import ClientConfig, connection_settings
from headrace.kafka.client_log import CLIENT_LOG
from headrace.kafka.deadline import Deadline
from headrace.kafka.errors import Context, is_retriable, translated
from headrace.kafka.refused_settings import refused_settings

_LOG = logging.getLogger(__name__)
_STEP_SECONDS = 0.25
# A broker that reports an end delivers what is before it well within this.
_PATIENCE_SECONDS = 3.0
_AT_ONCE = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class LogRecord:
    """A committed record; *timestamp* is in milliseconds."""

    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    timestamp: int


class CompactedLog:
    """Follows *topic* and hands every committed record to *on_record*, per partition in order; with *uncommitted*, the others, too.

    If the consumer delivers nothing although the broker has more, as after a long freeze of the broker, it is
    replaced by a new one that resumes at the same offsets. One thread owns it. Commits nothing. Partitions that
    the topic gains are read from their beginning. *on_record* runs inside ``read_to_end``. *when_late* is a
    sentence of advice for when the end is not reached in time. Raises
    :class:`~headrace.connect.errors.ConfigError` for settings that the client refuses.
    """

    def __init__(
        self,
        topic: str,
        config: ClientConfig,
        *,
        on_record: Callable[[LogRecord], None],
        when_late: str = "",
        uncommitted: bool = False,
        consumer: Callable[[dict[str, Any]], Consumer] = Consumer,
    ) -> None:
        self._topic = topic
        self._on_record = on_record
        self._when_late = when_late
        self._reached: dict[int, int] = {}
        self._admin = KafkaAdmin(config)
        self._settings = config.settings
        self._isolation = "read_uncommitted" if uncommitted else "read_committed"
        self._make = consumer
        self._consumer = self._opened()
        self._is_doubtful = False

    @property
    def partitions(self) -> int:
        """How many partitions the topic had when its end was last asked for."""
        return len(self._reached)

    def read_to_end(self, deadline: Deadline) -> None:
        """Return when everything committed before this call has been handed over.

        The end is that of the whole log, open transactions included: the end that a ``read_committed``
        reader gets is before the first of these, and may hide records committed after it. Raises
        :class:`~headrace.connect.errors.RetriableError` naming the topic when that end is not reached
        before *deadline*: usually another producer's transaction is open in the topic. The next call then
        reads with a new consumer.
        """
        if self._is_doubtful:
            self._replace_consumer()
        ends = self._admin.end_offsets(self._topic, deadline)
        self._follow(ends, deadline)
        patience = _PATIENCE_SECONDS
        quiet = Deadline.after(patience, deadline.clock)
        while behind := self._behind(ends):
            if deadline.expired:
                self._is_doubtful = True
                raise self._late(behind, ends)
            reached = dict(self._reached)
            self._consume(deadline)
            if reached != self._reached:
                quiet = Deadline.after(patience, deadline.clock)
            elif quiet.expired:
                _LOG.info(
                    "No record of topic %r arrived for %.0f s, although its end was not reached; the consumer is replaced.",
                    self._topic,
                    patience,
                )
                self._replace_consumer()
                # The cause may be an open transaction, past which no consumer can read.
                patience *= 2
                quiet = Deadline.after(patience, deadline.clock)

    def take_arrived(self) -> None:
        """Hand over what the client has received by now, without waiting; nothing before the first ``read_to_end``.

        Raises what ``read_to_end`` raises for a topic that is not the one that was read before.
        """
        self._consume(Deadline.after(0))

    def position(self, partition: int) -> int:
        """The offset after the last record of *partition* that was handed over; 0 before."""
        return self._reached.get(partition, 0)

    def close(self) -> None:
        """Release the clients."""
        self._consumer.close()

    def _follow(self, ends: dict[int, int], deadline: Deadline) -> None:
        added = sorted(ends.keys() - self._reached.keys())
        if added:
            # The consumer would look them up by itself, which takes half a second.
            self._reached.update(self._admin.beginning_offsets(self._topic, added, deadline))
            self._assign(self._consumer, added)
        for partition, end in ends.items():
            if end < self._reached[partition]:
                raise self._recreated(f"partition {partition} ends at {end}, earlier than before")

    def _opened(self) -> Consumer:
        connection = connection_settings(self._settings)
        try:
            return self._make(
                {
                    **connection,
                    **_READING,
                    "isolation.level": self._isolation,
                    "logger": CLIENT_LOG,
                }
            )
        except KafkaException as error:
            raise refused_settings(error, self._settings) from error

    def _assign(self, consumer: Consumer, partitions: Iterable[int]) -> None:
        """Have *consumer* resume *partitions* where they were read to."""
        consumer.incremental_assign(
            [TopicPartition(self._topic, each, self._reached[each]) for each in partitions]
        )

    def _replace_consumer(self) -> None:
        """Resume with a new client, which has connections and queues of its own.

        Raises as the constructor does, and then keeps the former one.
        """
        opened = self._opened()
        try:
            self._assign(opened, self._reached)
        except BaseException:
            opened.close()
            raise
        former, self._consumer = self._consumer, opened
        self._is_doubtful = False
        former.close()

    def _behind(self, ends: dict[int, int]) -> list[int]:
        return [partition for partition, end in ends.items() if self._reached[partition] < end]

    def _consume(self, deadline: Deadline) -> None:
        # ``consume`` would wait for a full list, so only the first message is waited for.
        first = self._consumer.poll(deadline.remaining(_STEP_SECONDS))
        if first is None:
            return
        failures = list[ConnectError]()
        for message in (first, *self._consumer.consume(_AT_ONCE, 0)):
            try:
                self._take(message)
            except ConnectError as error:
                # The later messages of this list will not be delivered again.
                failures.append(error)
        if failures:
            raise failures[0]

    def _take(self, message: Consumed) -> None:
        error = message.error()
        partition, offset = message.partition() or 0, message.offset() or 0
        if error is None:
            self._on_record(_record(message))
            self._reached[partition] = offset + 1
        elif error.name() == "_PARTITION_EOF":
            # Aborted records and control markers are skipped silently; this event has the position after them.
            self._reached[partition] = max(self._reached[partition], offset)
        elif error.name() == _NO_GROUP:
            return
        elif error.name() in _LOST_PLACE:
            raise self._recreated(error.str())
        elif not is_retriable(error):
            raise translated(error, Context(doing="reading", topic=self._topic))

    def _late(self, behind: list[int], ends: dict[int, int]) -> RetriableError:
        places = ", ".join(f"{one} at {self._reached[one]} of {ends[one]}" for one in behind[:5])
        return RetriableError(
            f"The end of topic {self._topic!r} was not reached in time (partition {places}). "
            "The broker is slow or unreachable, or another producer has an open transaction in this topic: "
            f"kafka-transactions.sh find-hanging shows it. {self._when_late}".rstrip()
        )

    def _recreated(self, how: str) -> TaskFailedError:
        return TaskFailedError(
            f"Topic {self._topic!r} is not the one that was read before: {how}. It was deleted and "
            "created again, or truncated. Restart to read it again."
        )


def _record(message: Consumed) -> LogRecord:
    return LogRecord(
        partition=message.partition() or 0,
        offset=message.offset() or 0,
        key=message.key(),
        value=message.value(),
        timestamp=message.timestamp()[1],
    )


# The client looks for its group's coordinator, whatever for: nothing here needs the group, nor a right to it.
_NO_GROUP = "GROUP_AUTHORIZATION_FAILED"

_LOST_PLACE = (
    "_AUTO_OFFSET_RESET",
    "OFFSET_OUT_OF_RANGE",
    "UNKNOWN_TOPIC_OR_PART",
    "UNKNOWN_TOPIC_ID",
)

_READING: dict[str, str | int | bool] = {
    "group.id": "headrace-log",
    "enable.auto.commit": False,
    "enable.auto.offset.store": False,
    "enable.partition.eof": True,
    "auto.offset.reset": "error",
    "allow.auto.create.topics": False,
    # How long fetching pauses when the local queue is full; the default of a second starves the reader.
    "fetch.queue.backoff.ms": 5,
    "fetch.wait.max.ms": 100,
    # A client that has lost its only broker forgets it, and may not fetch its partitions until it refreshes its
    # metadata by itself: after five minutes, unless set.
    "topic.metadata.refresh.interval.ms": 5_000,
}
