"""The sender on the client library: rows handed over in bounded pieces."""

# The library's types do not list the functions of pyarrow.compute, nor what arrays hold.
# pyright: reportAttributeAccessIssue=false, reportUnknownParameterType=false

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import repeat
from operator import length_hint
from typing import NamedTuple, cast

import pyarrow as pa
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka import Message as Delivered

from headrace.connect.errors import ConnectError, RecordError, TaskFailedError
from headrace.connect.record import RecordMetadata
from headrace.kafka.client_config import ClientConfig
from headrace.kafka.deadline import Clock, Deadline
from headrace.kafka.errors import kafka_error
from headrace.kafka.partitioner import java_partition
from headrace.kafka.producer import TrackedProducer, Waiting
from headrace.kafka.send_precheck import SendPrecheck
from headrace.kafka.sender import EncodedRecords, OffsetEntry, Sender

# Python objects cost several times their Arrow bytes, so only this much of a batch is converted at a time;
# few enough rows to stay in a core's cache until the client has copied them.
MAX_ROWS = 2_000
MAX_BYTES = 4_000_000


def pieces(records: EncodedRecords, stop: int) -> Iterator[tuple[int, int]]:
    """Bounds of consecutive pieces of the first *stop* rows, each small enough to be converted at a time."""
    if stop == 0:
        return
    per_row = max(1, records.values.nbytes // len(records))
    rows = min(MAX_ROWS, max(1, MAX_BYTES // per_row))
    for start in range(0, stop, rows):
        yield start, min(stop, start + rows)


class Rows(NamedTuple):
    """Arguments of the client's ``produce``, one column each; all but *values* may be infinite."""

    values: list[bytes | None]
    keys: Iterable[bytes | None]
    timestamps: Iterable[int]
    headers: Iterable[list[tuple[str, bytes | None]] | None]


def rows(records: EncodedRecords, start: int, stop: int) -> Rows:
    """Rows *start* to *stop*, as arguments of ``produce``."""
    headers = records.headers
    return Rows(
        values=_taken(records.values, start, stop),
        keys=repeat(None) if records.keys is None else _taken(records.keys, start, stop),
        timestamps=_timestamps(records, start, stop),
        headers=repeat(None)
        if headers is None
        else [list(each) or None for each in headers[start:stop]],
    )


def _timestamps(records: EncodedRecords, start: int, stop: int) -> Iterable[int]:
    given = records.timestamps
    if given is None or isinstance(given, int):
        return repeat(_timestamp(given))
    return [_timestamp(one) for one in cast("list[int | None]", given[start:stop].to_pylist())]


def _timestamp(given: int | None) -> int:
    if given is None or given < 0:
        return 0
    # To the client 0 means "now"; the first millisecond of 1970 is sent as the second.
    return max(1, given)


def _taken(column: pa.Array, start: int, stop: int) -> list[bytes | None]:
    return cast("list[bytes | None]", column.slice(start, stop - start).to_pylist())


OPEN_SECONDS = 60.0
_ANY_PARTITION = -1


def make_sender(
    config: ClientConfig,
    *,
    owner: str | None = None,
    open_seconds: float = OPEN_SECONDS,
    clock: Clock = time.monotonic,
    waiting: Waiting | None = None,
    reports_metadata: bool = False,
) -> Sender:
    """A sender with *config*, transactional when that has a transactional id.

    *owner* names the user of the sender in messages, such as ``task c-0``. ``open`` gives up after
    *open_seconds*. *waiting* is called about once a second on the owner's thread while the sender waits for
    a broker; an exception from it is raised by the sender's method, and the sender can then only be closed.
    *reports_metadata* makes ``send_each`` work, at several times the cost of every record. Raises
    :class:`~headrace.connect.errors.ConfigError` for settings that the client refuses.
    """
    producer = TrackedProducer(
        config, owner=owner, clock=clock, waiting=waiting, reports_all=reports_metadata
    )
    opening = partial(Deadline.after, open_seconds, clock)
    max_bytes = int(config.settings.get("message.max.bytes", 1_000_000))
    is_transactional = config.transactional_id is not None
    return ClientSender(
        producer,
        opening=opening,
        max_bytes=max_bytes,
        is_transactional=is_transactional,
        reports_metadata=reports_metadata,
        partitions_as_java=config.settings.get("partitioner") in _JAVA_PARTITIONERS,
    )


class ClientSender:
    """Implements :class:`~headrace.kafka.sender.Sender`; one thread owns it.

    A delivery failure that arrives later is raised by the next ``send``, ``flush`` or ``commit``, and by
    each one after it until ``abort``; without transactions the sender can then only be closed. Nothing
    gives up while a broker is unreachable, except that a transaction ends with its time-out. Then it is
    unknown whether a commit succeeded, so :class:`~headrace.connect.errors.TransactionTimedOutError` is
    raised.
    """

    def __init__(
        self,
        producer: TrackedProducer,
        *,
        opening: Callable[[], Deadline],
        max_bytes: int,
        is_transactional: bool,
        reports_metadata: bool,
        partitions_as_java: bool,
    ) -> None:
        self._producer = producer
        self._opening = opening
        self._is_transactional = is_transactional
        self._reports_metadata = reports_metadata
        self._partitions_as_java = partitions_as_java
        self._clock = opening().clock
        self._precheck = SendPrecheck(self._partitions, max_bytes=max_bytes, clock=self._clock)

    def open(self) -> None:
        """Become the owner of the transactional id; nothing when idempotent."""
        if self._is_transactional:
            call = self._producer.raw.init_transactions
            self._producer.persist(call, "the start of transactions", self._opening())

    def begin(self) -> None:
        """Begin a transaction; nothing when idempotent."""
        if not self._is_transactional:
            return
        try:
            self._producer.raw.begin_transaction()
        except KafkaException as error:
            raise self._producer.translated(error, "the beginning of a transaction") from error
        self._producer.began = self._clock()

    def commit(self) -> None:
        """Wait until the broker has everything of the transaction, and end it."""
        if not self._is_transactional:
            self.flush()
            return
        self._producer.raise_undelivered()
        self._producer.settle(self._producer.raw.commit_transaction, "the commit of a transaction")

    def abort(self) -> None:
        """Throw the open transaction away; nothing when none is open or the producer is lost anyway."""
        if self._producer.began is None or self._producer.is_broken:
            return
        self._producer.forget_undelivered()
        self._producer.settle(self._producer.raw.abort_transaction, "the abort of a transaction")
        self._producer.forget_undelivered()

    def flush(self) -> None:
        """Wait until everything handed over is acknowledged; raises when anything was not."""
        self._producer.flush()

    def close(self) -> None:
        """Release the client without waiting for what is still in its queue."""
        self._producer.release()

    # -------------------------------------------------------------- records

    def send(self, records: EncodedRecords) -> None:
        """Hand over *records*; returns when all are in the client's queue, waiting while it is full."""
        self._producer.raise_undelivered()
        self._precheck.check(records)
        self._producer.writes_to(records.topic)
        self._produce(records)

    def send_each(self, records: EncodedRecords) -> Sequence[RecordMetadata]:
        """Like ``send``, one by one; needs a sender that ``reports_metadata``."""
        self._producer.raise_undelivered()
        self._precheck.check(records)
        if not self._reports_metadata:
            raise ValueError("send_each needs a sender made with reports_metadata=True.")
        self._producer.writes_to(records.topic)
        metadata: dict[int, RecordMetadata] = {}
        self._produce(records, lambda row: partial(self._on_metadata, metadata, row))
        self.flush()
        return [metadata[row] for row in range(len(records))]

    def send_offsets(self, topic: str, entries: Sequence[OffsetEntry]) -> None:
        """Hand over records of the offsets topic; a refusal fails the task.

        Whatever partitioner the user has chosen for records, the key of an offset goes where Java's default
        partitioner puts it: equal keys must be in one partition, whose order shows which is newer.
        """
        self._producer.writes_to(topic)
        partitions = None if self._partitions_as_java else self._partitions(topic)
        for key, value in entries:
            partition = java_partition(key, partitions) if partitions else _ANY_PARTITION
            try:
                self._produce_offset(topic, partition, key, value)
            except RecordError as error:
                raise TaskFailedError(f"Source offsets cannot be stored: {error}") from error

    def _partitions(self, topic: str) -> int:
        return self._producer.partitions(topic, self._opening())

    # -------------------------------------------------------------- handing over

    def _produce(
        self, records: EncodedRecords, reporting: Callable[[int], _Report] | None = None
    ) -> None:
        """Hand over all of *records*; *reporting* makes the delivery callback of each row."""
        for start, stop in pieces(records, len(records)):
            row = start
            while row < stop:
                row = self._produce_rows(records, row, stop, reporting)
            self._producer.poll()

    def _produce_rows(
        self,
        records: EncodedRecords,
        start: int,
        stop: int,
        reporting: Callable[[int], _Report] | None,
    ) -> int:
        """Hand over rows until the queue is full; the first row that was not handed over, *stop* if all were."""
        piece = rows(records, start, stop)
        left = iter(piece.values)
        # By position and by map: keywords, and a loop in Python, cost as much again as the calls.
        calls = map(
            self._producer.raw.produce,
            repeat(records.topic),
            left,
            piece.keys,
            repeat(_ANY_PARTITION if records.partition is None else records.partition),
            repeat(None) if reporting is None else map(reporting, range(start, stop)),
            repeat(None),
            piece.timestamps,
            piece.headers,
        )
        try:
            deque(calls, maxlen=0)
        except BufferError:
            self._producer.wait_for_room()
            return _refused_row(stop, left)
        except KafkaException as error:
            row = _refused_row(stop, left)
            raise self._refused(kafka_error(error), records.topic, row) from error
        return stop

    def _produce_offset(self, topic: str, partition: int, key: bytes, value: bytes | None) -> None:
        while True:
            try:
                self._producer.raw.produce(topic, value, key, partition)
            except BufferError:
                self._producer.wait_for_room()
            except KafkaException as error:
                raise self._refused(kafka_error(error), topic, None) from error
            else:
                return

    def _on_metadata(
        self,
        metadata: dict[int, RecordMetadata],
        row: int,
        error: KafkaError | None,
        message: Delivered,
    ) -> None:
        self._producer.on_delivery(error, message)
        if error is None:
            metadata[row] = _metadata(message)

    def _refused(self, error: object, topic: str, row: int | None) -> ConnectError:
        """The error for a refused ``produce``: it concerns the producer, or only this record."""
        inner = error if isinstance(error, KafkaError) else KafkaError(KafkaError.UNKNOWN)
        if inner.name() in _OF_THE_RECORD:
            reason = f"Kafka refused a record for topic {topic!r}: {inner.str()} ({inner.name()})."
            return RecordError(reason, row=row)
        self._producer.poll()
        return self._producer.translated(inner, "writing to", topic)


_Report = Callable[[KafkaError | None, Delivered], None]

# The client's partitioners that put a key where Java's clients put it.
_JAVA_PARTITIONERS = ("murmur2", "murmur2_random")

# Any other error would affect the next record as well, such as a missing right to write to the topic.
_OF_THE_RECORD = frozenset({"MSG_SIZE_TOO_LARGE", "_INVALID_ARG", "_UNKNOWN_PARTITION"})


def _refused_row(stop: int, left: Iterator[bytes | None]) -> int:
    """The row that was taken last, when as many are *left* before *stop*."""
    return stop - length_hint(left) - 1


def _metadata(message: Delivered) -> RecordMetadata:
    _, timestamp = message.timestamp()
    return RecordMetadata(
        topic=message.topic() or "",
        partition=message.partition() or 0,
        offset=message.offset() or 0,
        timestamp=timestamp,
    )
