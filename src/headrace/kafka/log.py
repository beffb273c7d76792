"""A compacted topic, read from its beginning and then followed, by one consumer without a group."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from confluent_kafka import Consumer, KafkaException, TopicPartition
from confluent_kafka import Message as Consumed

from headrace.connect.errors import ConnectError, RetriableError, TaskFailedError
from headrace.kafka.admin import KafkaAdmin
from headrace.kafka.client_config import ClientConfig, connection_settings
from headrace.kafka.client_log import CLIENT_LOG
from headrace.kafka.deadline import Deadline
from headrace.kafka.errors import Context, is_retriable, translated
from headrace.kafka.refused import refused_settings

_BEGINNING = -2
_STEP_SECONDS = 0.25
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
    """Follows *topic* and hands every committed record to *on_record*, per partition in order.

    One thread owns it. Reads ``read_committed`` and commits nothing. Partitions that the topic gains are
    read from their beginning. *on_record* runs inside ``read_to_end``. Raises
    :class:`~headrace.connect.errors.ConfigError` for settings that the client refuses.
    """

    def __init__(
        self, topic: str, config: ClientConfig, *, on_record: Callable[[LogRecord], None]
    ) -> None:
        self._topic = topic
        self._on_record = on_record
        self._reached: dict[int, int] = {}
        self._admin = KafkaAdmin(config)
        connection = connection_settings(config.settings)
        try:
            self._consumer = Consumer({**connection, **_READING, "logger": CLIENT_LOG})
        except KafkaException as error:
            raise refused_settings(error, config.settings) from error

    @property
    def partitions(self) -> int:
        """How many partitions the topic had when its end was last asked for."""
        return len(self._reached)

    def read_to_end(self, deadline: Deadline) -> None:
        """Return when everything committed before this call has been handed over.

        The end is taken from the whole log, open transactions included, because the end that a
        ``read_committed`` reader is told lies before the first of those and may hide what was committed
        behind it. Raises :class:`~headrace.connect.errors.RetriableError` naming the topic when that end
        is not reached before *deadline*: usually another producer's transaction is open in the topic.
        """
        ends = self._admin.end_offsets(self._topic, deadline)
        self._follow(ends)
        while behind := self._behind(ends):
            if deadline.expired:
                raise self._late(behind, ends)
            self._consume(deadline)

    def close(self) -> None:
        """Release the clients."""
        self._consumer.close()

    def _follow(self, ends: dict[int, int]) -> None:
        added = sorted(ends.keys() - self._reached.keys())
        if added:
            start = [TopicPartition(self._topic, partition, _BEGINNING) for partition in added]
            self._consumer.incremental_assign(start)
            self._reached.update(dict.fromkeys(added, 0))
        for partition, end in ends.items():
            if end < self._reached[partition]:
                raise self._replaced(f"partition {partition} ends at {end}, earlier than before")

    def _behind(self, ends: dict[int, int]) -> list[int]:
        return [partition for partition, end in ends.items() if self._reached[partition] < end]

    def _consume(self, deadline: Deadline) -> None:
        # ``consume`` would wait for a full list; so only the first message is waited for.
        first = self._consumer.poll(deadline.remaining(_STEP_SECONDS))
        if first is None:
            return
        failures = list[ConnectError]()
        for message in (first, *self._consumer.consume(_AT_ONCE, 0)):
            try:
                self._take(message)
            except ConnectError as error:
                # What lies behind it in this list will not be delivered again.
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
            # Aborted records and control markers are passed without being seen; this tells how far.
            self._reached[partition] = max(self._reached[partition], offset)
        elif error.name() in _LOST_PLACE:
            raise self._replaced(error.str())
        elif not is_retriable(error):
            raise translated(error, Context(doing="reading", topic=self._topic))

    def _late(self, behind: list[int], ends: dict[int, int]) -> RetriableError:
        places = ", ".join(f"{one} at {self._reached[one]} of {ends[one]}" for one in behind[:5])
        return RetriableError(
            f"The end of topic {self._topic!r} was not reached in time (partition {places}). "
            "The broker is slow or away, or another producer has a transaction open in this topic: "
            "kafka-transactions.sh find-hanging shows it. A topic of one's own avoids it "
            "(offsets.storage.topic)."
        )

    def _replaced(self, how: str) -> TaskFailedError:
        return TaskFailedError(
            f"Topic {self._topic!r} is not the one that was read before: {how}. It was deleted and "
            "created again, or truncated. Restart to read it anew."
        )


def _record(message: Consumed) -> LogRecord:
    return LogRecord(
        partition=message.partition() or 0,
        offset=message.offset() or 0,
        key=message.key(),
        value=message.value(),
        timestamp=message.timestamp()[1],
    )


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
    "isolation.level": "read_committed",
    "auto.offset.reset": "error",
    "allow.auto.create.topics": False,
    # A full local queue is looked at again after this; the default of a second starves the reader.
    "fetch.queue.backoff.ms": 5,
    "fetch.wait.max.ms": 100,
}
