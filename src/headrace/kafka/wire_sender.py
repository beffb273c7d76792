"""The sender on our own producer: rows as record batches, fetched batches as they are, and offsets of groups."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headrace.connect.encoded import CopiedRun, EncodedBatches
from headrace.connect.errors import ConfigError, RecordError, TaskFailedError
from headrace.connect.group_offsets import GroupEntry
from headrace.connect.record import RecordMetadata
from headrace.kafka.batches.compression import COMPRESSIONS, NO_COMPRESSION, Compression
from headrace.kafka.batches.encoding import (
    Encoding,
    RecordColumns,
    RecordTooLargeError,
    largest_sizes,
)
from headrace.kafka.batches.errors import CorruptBatchError, DamagedBatchError, UnforwardableError
from headrace.kafka.batches.forwarding import (
    BatchForwarding,
    Counted,
    ForwardingLimits,
    runs_of,
    source_place,
)
from headrace.kafka.batches.headers import HEADER_BYTES
from headrace.kafka.client_config import PRODUCER_DEFAULTS, ClientConfig, Settings, whole_number
from headrace.kafka.client_sender import OPEN_SECONDS
from headrace.kafka.deadline import Clock, Deadline
from headrace.kafka.errors import LateRefusalError
from headrace.kafka.gathered_rows import (
    GatheredRows,
    RowNumbers,
    largest_record_bytes,
    may_be_gathered,
)
from headrace.kafka.handed_over import HandedOver, RowOrigin, SourceOrigin
from headrace.kafka.java_settings import connect_name
from headrace.kafka.producer import Waiting
from headrace.kafka.refused_records import (
    RefusedRecords,
    Unsent,
    before_damage,
    refused_by_broker,
    refused_unsent,
)
from headrace.kafka.row_batches import RowBatch, StickyPartitions, columns_of, row_batches
from headrace.kafka.send_precheck import KnownPartitions, too_large
from headrace.kafka.sender import (
    EncodedRecords,
    OffsetEntry,
    RowsOrigin,
    TooLargeError,
    UnsendableError,
)
from headrace.kafka.topic_partition import TopicPartition
from headrace.kafka.wire.cluster import Cluster
from headrace.kafka.wire.producer import WireProducer
from headrace.kafka.wire.producer_errors import BatchRefusedError
from headrace.kafka.wire.producer_settings import producer_wire_settings
from headrace.kafka.wire.settings import wire_settings
from headrace.kafka.wire.transaction_state import ProducerIdentity
from headrace.kafka.wire.written_topics import WrittenTopics

_UNKNOWN_OFFSET: Final = -1
_FORWARDED: Final = "forwarded"
_JAVA_PARTITIONER: Final = "murmur2_random"

_Answer = TypeVar("_Answer")


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchSettings:
    """How records become batches: *batch_bytes* before they are compressed, *batch_rows*, *max_bytes* with the header."""

    compression: Compression
    batch_bytes: int
    batch_rows: int
    max_bytes: int

    def encoding(self, limit: int) -> Encoding:
        """For a topic whose batches may have *limit* bytes."""
        return Encoding(
            compression=self.compression,
            batch_bytes=self.batch_bytes,
            batch_rows=self.batch_rows,
            max_bytes=min(self.max_bytes, limit),
        )

    def forwarding(self, limit: int) -> ForwardingLimits:
        """As :meth:`encoding`, for fetched batches: those that are rebuilt keep their compression unless one is set."""
        return ForwardingLimits(
            compression=self.compression if self.compression.codec else None,
            batch_bytes=self.batch_bytes,
            max_bytes=min(self.max_bytes, limit),
        )


def batch_settings(settings: Settings) -> BatchSettings:
    """Translate librdkafka's *settings*, those of :func:`~headrace.kafka.client_config.producer_config`.

    Raises :class:`~headrace.connect.errors.ConfigError` with every problem.
    """
    problems: list[tuple[str, str]] = []
    numbers = {
        key: _number(settings, key, problems)
        for key in ("batch.size", "batch.num.messages", "message.max.bytes")
    }
    compression = _compression(settings, problems)
    partitioner = settings.get("partitioner", _JAVA_PARTITIONER)
    # The library's murmur2 puts all records without a key into one partition.
    if partitioner != _JAVA_PARTITIONER:
        problem = f"{partitioner} is not supported here; leave it out, for Java's default."
        problems.append((connect_name("partitioner"), problem))
    if problems:
        raise ConfigError(problems, where="The producer's configuration")
    return BatchSettings(
        compression=compression,
        # A batch of one record has at least as much.
        batch_bytes=max(1, numbers["batch.size"]),
        batch_rows=max(1, numbers["batch.num.messages"]),
        max_bytes=numbers["message.max.bytes"],
    )


def _number(settings: Settings, key: str, problems: list[tuple[str, str]]) -> int:
    try:
        return whole_number(settings, key, PRODUCER_DEFAULTS[key])
    except ConfigError as error:
        problems += error.problems
        return 0


def _compression(settings: Settings, problems: list[tuple[str, str]]) -> Compression:
    name = str(settings.get("compression.type", "none")).lower()
    level = str(settings.get("compression.level", "-1"))
    if name not in COMPRESSIONS:
        problem = f"{name!r} is not one of {', '.join(COMPRESSIONS)}."
        problems.append((connect_name("compression.type"), problem))
        return NO_COMPRESSION
    if not level.removeprefix("-").isdecimal():
        problems.append((f"compression.{name}.level", f"{level!r} is not a whole number."))
        return NO_COMPRESSION
    return Compression(COMPRESSIONS.index(name), None if level == "-1" else int(level))


def make_wire_sender(
    config: ClientConfig,
    *,
    owner: str | None = None,
    open_seconds: float = OPEN_SECONDS,
    clock: Clock = time.monotonic,
    waiting: Waiting | None = None,
    reports_metadata: bool = False,  # noqa: ARG001 (as every sender's maker)
    identity: ProducerIdentity | None = None,
) -> WireSender:
    """A sender with *config*, transactional when that has a transactional id; as :func:`~headrace.kafka.client_sender.make_sender`.

    *reports_metadata* makes no difference: ``send_each`` always works. With *identity*, which somebody else has got for the
    transactional id, ``open`` does not ask for another. Raises :class:`~headrace.connect.errors.ConfigError` for settings that
    have no counterpart.
    """
    settings = batch_settings(config.settings)
    cluster = Cluster(wire_settings(config.settings))
    waits = Watched(waiting)
    producer = WireProducer(
        cluster,
        transactional_id=config.transactional_id,
        settings=producer_wire_settings(config.settings),
        owner=owner or "",
        waiting=waits,
        clock=clock,
    )
    creation_ms = whole_number(config.settings, "topic.metadata.propagation.max.ms", 5_000)
    topics = WrittenTopics(
        cluster,
        seconds=open_seconds,
        creation_seconds=creation_ms / 1000,
        waiting=waits,
        clock=clock,
    )
    opening = partial(Deadline.after, open_seconds, clock)
    return WireSender(
        cluster,
        producer,
        topics,
        settings=settings,
        opening=opening,
        waits=waits,
        identity=identity,
    )


class Watched:
    """Tells *waiting* what is waited for; *has_ended* says that it has ended a wait."""

    def __init__(self, waiting: Waiting | None) -> None:
        self._waiting = waiting
        self.has_ended = False

    def __call__(self, what: str) -> None:
        if self._waiting is None:
            return
        try:
            self._waiting(what)
        except BaseException:
            self.has_ended = True
            raise


class WireSender:
    """Implements :class:`~headrace.kafka.sender.GroupSender`; one thread owns it.

    In a transaction, no one may have records before its end, so those of calls that follow each other are gathered where they would make
    small batches.
    A failure that arrives later is raised by the next call, and by each one after it until ``abort``; without transactions the
    sender can then only be closed. Nothing gives up while a broker is unreachable, except that a transaction ends with its
    time-out: then it is unknown whether a commit succeeded.
    """

    def __init__(
        self,
        cluster: Cluster,
        producer: WireProducer,
        topics: WrittenTopics,
        *,
        settings: BatchSettings,
        opening: partial[Deadline],
        waits: Watched,
        identity: ProducerIdentity | None = None,
    ) -> None:
        self._cluster = cluster
        self._producer = producer
        self._topics = topics
        self._settings = settings
        self._opening = opening
        self._waits = waits
        self._is_flushed = False
        self._identity = identity
        self._known = KnownPartitions(topics.asked_partitions, clock=opening().clock)
        self._sticky = StickyPartitions(settings.batch_bytes)
        self._forwarding = BatchForwarding()
        self._gathered = GatheredRows()
        self._handed_over = HandedOver()
        self._tolerates = False
        self._refused: list[RefusedRecords] = []

    @property
    def counted(self) -> Mapping[str, Counted]:
        """How much of what was fetched went on as it was (``forwarded``), and how much was rebuilt, by the reason."""
        return {
            _FORWARDED if reason is None else reason.value: counted
            for reason, counted in self._forwarding.counted.items()
        }

    def open(self) -> None:
        """Become the owner of the transactional id, or get a producer id without one."""
        self._producer.open(self._opening(), identity=self._identity)

    def begin(self) -> None:
        """Begin a transaction; nothing when idempotent."""
        self._translated(self._producer.begin)
        self._forget_handed_over()

    def commit(self) -> None:
        """Wait until the broker has everything of the transaction, and end it."""
        if not self._producer.is_transactional:
            self.flush()
            return
        self.flush()
        self._translated(self._producer.commit)
        self._forget_handed_over()

    def abort(self) -> None:
        """Throw the open transaction away; nothing when none is open, or when somebody has ended a wait."""
        if self._waits.has_ended:
            # The broker may be away still; the next owner of the transactional id throws it away.
            return
        self._translated(self._producer.abort)
        self._forget_handed_over()

    def flush(self) -> None:
        """Wait until everything handed over is acknowledged; raises when anything was not."""
        self._send_gathered()
        self._translated(self._producer.flush)
        if self._refused:
            # They would be skipped without a dead letter or a line in the log.
            raise self._refused[0].error
        self._handed_over.forget_rows()
        self._is_flushed = not self._producer.is_transactional

    def close(self) -> None:
        """Release the connections without waiting for what is in flight."""
        self._producer.close()
        self._cluster.close()

    # -------------------------------------------------------------- rows

    def send(self, records: EncodedRecords) -> None:
        """Hand over *records*: to the producer's queue, waiting while it is full, or to what is gathered for it."""
        if not len(records):
            return
        if not self._producer.is_transactional or not self._can_wait(records):
            self._send_gathered()
            self._send_rows(records, RowNumbers((0,), (records.number,)))
            return
        self._translated(self._producer.check_sendable)
        if not self._gathered.fits(records):
            self._send_gathered()
        self._gathered.add(records, now=_now())
        if self._gathered.are_enough(self._partitions(records), self._producer.buffer_bytes):
            self._send_gathered()

    def send_each(self, records: EncodedRecords) -> Sequence[RecordMetadata]:
        """Like ``send``; returns each record's place in Kafka once all are acknowledged.

        An offset is -1 where the broker has said that it has the record already, and not where.
        """
        if not len(records):
            return []
        self._send_gathered()
        columns = columns_of(records, now=_now())
        batches = self._batched(records, columns)
        rows = RowNumbers((0,), (records.number,))
        numbers = self._hand_over(records, columns, batches, rows)
        self._translated(self._producer.flush)
        places: dict[int, RecordMetadata] = {}
        for number, each in zip(numbers, batches, strict=True):
            base, time_ms = self._producer.base_offset(number), self._producer.append_time(number)
            for index, row in enumerate(each.rows.tolist()):
                places[row] = RecordMetadata(
                    topic=records.topic,
                    partition=each.partition,
                    offset=_UNKNOWN_OFFSET if base is None else base + index,
                    timestamp=int(columns.timestamps[row]) if time_ms is None else time_ms,
                )
        return [places[row] for row in range(len(records))]

    def send_offsets(self, topic: str, entries: Sequence[OffsetEntry]) -> None:
        """Hand over records of the offsets topic; a refusal fails the task."""
        if not entries:
            return
        records = EncodedRecords(
            topic=topic,
            keys=pa.array([key for key, _ in entries], pa.binary()),
            values=pa.array([value for _, value in entries], pa.binary()),
        )
        try:
            self.send(records)
        except RecordError as error:
            raise TaskFailedError(f"Source offsets cannot be stored: {error}") from error

    def _can_wait(self, records: EncodedRecords) -> bool:
        """Whether *records* are better sent later, and none can be found to be unsendable then. Raises where there is no such partition."""
        if records.origin is not None:
            return False
        self._check_topic(records)
        if not may_be_gathered(records, self._partitions(records)):
            return False
        most = min(self._limit(records.topic), self._settings.max_bytes)
        return largest_record_bytes(records) + HEADER_BYTES <= most

    def _partitions(self, records: EncodedRecords) -> int:
        """Over how many partitions *records* are spread at most."""
        by_key = records.partition is None and records.keys is not None
        return self._topics.partitions(records.topic) if by_key else 1

    def _send_gathered(self) -> None:
        """Hand over what is gathered. What fails before anything was handed over stays here, and after that in the producer: later calls fail, too."""
        if not len(self._gathered):
            return
        records, numbers = self._gathered.joined()
        columns = columns_of(records, now=_now())
        try:
            batches = self._batched(records, columns)
        except UnsendableError as error:
            # What the topic takes has changed since then.
            raise _late(error, records, numbers) from error
        self._gathered.clear()
        self._hand_over(records, columns, batches, numbers)

    def _send_rows(self, records: EncodedRecords, numbers: RowNumbers) -> None:
        columns = columns_of(records, now=_now())
        self._hand_over(records, columns, self._batched(records, columns), numbers)

    def _check_topic(self, records: EncodedRecords) -> None:
        """Raise unless the topic and a named partition are there."""
        if records.partition is None or records.origin is None:
            # This creates a topic that is not there, but for copies, which must notice that; before, it has no limit.
            self._topics.partitions(records.topic)
        if records.partition is not None:
            self._known.refuse_lacking(records.topic, records.partition)

    def _batched(self, records: EncodedRecords, columns: RecordColumns) -> list[RowBatch]:
        """The batches of *records*; raises before anything is handed over."""
        topic = records.topic
        sizes = largest_sizes(columns) + HEADER_BYTES
        if sizes.max() > self._settings.max_bytes:
            row = int(np.argmax(sizes > self._settings.max_bytes))
            raise too_large(topic, row, self._settings.max_bytes)
        self._check_topic(records)
        how = self._settings.encoding(self._limit(topic))
        try:
            return list(
                row_batches(
                    columns,
                    how,
                    keys=records.keys,
                    partition=records.partition,
                    partitions=partial(self._topics.partitions, topic),
                    sticky=partial(self._sticky.next, topic),
                )
            )
        except RecordTooLargeError as error:
            raise TooLargeError(
                f"a record for topic {topic!r} is too large: alone in a batch it has {error.size} bytes, and the topic takes "
                f"{how.max_bytes}.",
                row=error.row,
                advice="Raise max.message.bytes of the topic.",
            ) from error

    def _hand_over(
        self,
        records: EncodedRecords,
        columns: RecordColumns,
        batches: Sequence[RowBatch],
        rows: RowNumbers,
    ) -> list[int]:
        key_sizes = None if columns.keys is None else columns.keys.sizes
        numbers: list[int] = []
        self._forget_old()
        for each in batches:
            place = TopicPartition(records.topic, each.partition)
            number = self._translated(partial(self._producer.send, place, each.batch))
            origin = RowOrigin(records.topic, key_sizes, columns.values.sizes, each.rows, rows)
            self._handed_over.add_rows(number, origin)
            if records.origin is not None:
                copied = _copied(records.origin, place, each)
                self._handed_over.add_copied(number, copied)
            numbers.append(number)
        self._push()
        return numbers

    # -------------------------------------------------------------- batches and groups

    def send_batches(self, batches: EncodedBatches) -> int:
        """Hand over the records of *batches* from its start on; returns how many there are.

        Raises :class:`~headrace.kafka.batches.errors.DamagedBatchError` and
        :class:`~headrace.kafka.batches.errors.UnforwardableError`.
        """
        self._send_gathered()
        self._forget_old()
        sent, left, damaged = 0, [batches], None
        while left:
            count, unsent = self._send_part(left.pop())
            sent += count
            if unsent is None:
                continue
            before, refused, rest = unsent
            if self._tolerates:
                self._refused.append(refused)
            else:
                damaged, rest = refused, None
            left += [each for each in (rest, before) if each is not None]
        self._push()
        if damaged is None:
            return sent
        assert isinstance(damaged.error, CorruptBatchError)
        before = before_damage(batches, damaged.error)
        raise DamagedBatchError(damaged.error, before=before, records=sent, last=damaged.last)

    def _send_part(self, batches: EncodedBatches) -> tuple[int, Unsent | None]:
        """Hand over the records of *batches*; returns how many, and what is not handed over.

        Raises :class:`~headrace.kafka.batches.errors.UnforwardableError`, unless they are tolerated.
        """
        target, released = TopicPartition(batches.topic, batches.partition), batches.released()
        source, place = batches.source_partition, source_place(batches)
        limits = self._settings.forwarding(self._limit(batches.topic))
        sent, reached = 0, batches.start
        try:
            for each in self._forwarding.prepared(batches, limits):
                number = self._translated(partial(self._producer.send, target, each.batch))
                copied = SourceOrigin(source, place, target, each.runs, released)
                self._handed_over.add_copied(number, copied)
                sent += each.batch.record_count
                reached = each.last_offset + 1
        except (UnforwardableError, CorruptBatchError) as error:
            if isinstance(error, UnforwardableError) and not self._tolerates:
                raise
            return sent, refused_unsent(batches, error, reached)
        return sent, None

    def tolerate_refused(self) -> None:
        """From now on, raise no error for copied records that are refused or damaged: :meth:`refused` has them."""
        self._tolerates = True

    def refused(self) -> Sequence[RefusedRecords]:
        """The records that were refused or damaged, once."""
        self._translated(self._producer.settle)
        refused, self._refused = self._refused, []
        return refused

    @property
    def has_many_refused(self) -> bool:
        """Whether what was refused has more bytes than may wait to be acknowledged (``buffer.memory``)."""
        return sum(each.nbytes for each in self._refused) > self._producer.buffer_bytes

    def copied_runs(self) -> list[CopiedRun]:
        """Where the records of batches, and rows with an origin, have landed that were sent since the transaction began.

        Waits until they are acknowledged. Without transactions: those that were sent since the last ``flush`` but one.
        """
        self.flush()
        return self._handed_over.copied(self._producer.base_offset)

    def send_group_offsets(self, group: str, entries: Sequence[GroupEntry]) -> None:
        """Commit *entries* for *group*, which has no members."""
        self._translated(partial(self._producer.send_group_offsets, group, entries))

    def delete_group_offsets(self, group: str, places: Sequence[tuple[str, int]]) -> None:
        """Remove what *group* has committed for *places*."""
        named = [TopicPartition(*each) for each in places]
        self._cluster.delete_offsets(group, named, self._opening())

    def _limit(self, topic: str) -> int:
        """How many bytes a batch may have in *topic*: small records that it takes one by one it may refuse together."""
        return self._topics.max_bytes(topic) or self._settings.max_bytes

    def _push(self) -> None:
        """Without transactions, whoever reads may have records before the next ``flush``."""
        if not self._producer.is_transactional:
            self._translated(self._producer.push)

    def _forget_old(self) -> None:
        """Forget what the producer has no more to say about."""
        if self._is_flushed:
            self._handed_over.forget()
            self._is_flushed = False
        self._handed_over.forget_acknowledged(self._is_acknowledged)

    def _is_acknowledged(self, number: int) -> bool:
        return self._producer.base_offset(number) is not None

    def _forget_handed_over(self) -> None:
        self._gathered.clear()
        self._handed_over.forget()
        self._refused.clear()

    def _translated(self, act: Callable[[], _Answer]) -> _Answer:
        """What *act* of the producer returns; batches that are refused meanwhile are tolerated, or raised with their records."""
        while True:
            try:
                return act()
            except BatchRefusedError as error:
                copied = self._handed_over.copied_batch(error.number)
                if not self._tolerates or copied is None or copied.batches is None:
                    raise self._handed_over.refusal(error) from error
                batch = self._producer.drop(error.number)
                refused, left = refused_by_broker(
                    copied.batches, copied.runs, batch, copied.refusal(error), rows=error.rows
                )
                self._refused.append(refused)
                self._handed_over.shrink(error.number, () if left is None else left.runs)
                if left is not None:
                    self._producer.reenqueue(error.number, copied.target, left.batch)


def _late(error: UnsendableError, records: EncodedRecords, numbers: RowNumbers) -> LateRefusalError:
    """*error* about one of *records*, which earlier calls handed over."""
    row = error.row
    assert row is not None, "that is what unsendable errors are about"
    key, value = (
        None if each is None else pc.binary_length(each)[row].as_py()
        for each in (records.keys, records.values)
    )
    return LateRefusalError(
        error.reason,
        advice=error.advice or "",
        topic=records.topic,
        key_bytes=key,
        value_bytes=value,
        place=numbers.place(row),
    )


def _copied(origin: RowsOrigin, target: TopicPartition, batch: RowBatch) -> SourceOrigin:
    # A refusal is one of rows, which are known by the same number.
    runs = runs_of(np.asarray(origin.offsets)[batch.rows])
    return SourceOrigin(origin.source, target, target, runs)


def _now() -> int:
    return time.time_ns() // 1_000_000
