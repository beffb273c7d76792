"""Which fetched batches go on as they are, and which are rebuilt, and why; no one is asked and nothing is sent.

Fetched batches -> grouped -> forwarded, or their records put into other batches -> UnstampedBatch
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import chain, groupby
from typing import Final, NamedTuple, TypeVar

import numpy as np
import pyarrow as pa

from headrace.connect.encoded import EncodedBatches
from headrace.kafka.batches.compression import Compression
from headrace.kafka.batches.decoding import Decoding, decoded, undivided
from headrace.kafka.batches.encoding import (
    Encoding,
    RecordColumns,
    RecordTails,
    RecordTooLargeError,
    concatenated,
    encoded,
    record_columns,
)
from headrace.kafka.batches.errors import CorruptBatchError, UnforwardableError
from headrace.kafka.batches.header_sections import sections
from headrace.kafka.batches.headers import NEWEST_MAGIC, BatchHeader, batch_headers, check_crc
from headrace.kafka.batches.producer_batch import UnstampedBatch
from headrace.kafka.batches.varints import Int64Array
from headrace.kafka.topic_partition import TopicPartition

# Batches are copied to be decoded together, up to so many bytes.
_JOINED_BYTES: Final = 1 << 20
# Records are cut into batches together: each time, the last batch may be small.
_GATHERED_BYTES: Final = 4 << 20
_QUICK_CODECS: Final = (0, 2, 3)


class Reason(StrEnum):
    """Why a batch is rebuilt: the broker would refuse it as it is, readers would see other records, or it costs less."""

    OLD_FORMAT = "old format"
    LOG_APPEND_TIME = "log append time"
    STARTS_BEFORE = "starts before the position"
    GAP = "gap"
    TOO_LARGE = "too large"
    SMALL = "small"


@dataclass(frozen=True, slots=True, kw_only=True)
class ForwardingLimits:
    """What the target takes, and what is gathered.

    *max_bytes* is what a batch may have there. Batches that are rebuilt have *batch_bytes* before they are compressed, with the
    codec that they had, unless there is a *compression* for all. Consecutive batches with no more than *small_records* and
    *small_bytes* are put together: a request for one batch costs more than rebuilding so many records, and a partition has only a
    few of them in flight. Those whose compression costs more than that are, if they have no more than *tiny_bytes*.
    """

    max_bytes: int = 1_048_576
    batch_bytes: int = 1_000_000
    compression: Compression | None = None
    small_records: int = 250
    small_bytes: int = 32 << 10
    tiny_bytes: int = 4 << 10

    def __post_init__(self) -> None:
        assert self.batch_bytes > 0
        assert self.max_bytes > 0

    def is_small(self, header: BatchHeader) -> bool:
        """Whether the batch costs less when it is put together with others of its kind."""
        most = self.small_bytes if header.compression in _QUICK_CODECS else self.tiny_bytes
        return header.length <= most and header.record_count <= self.small_records


class SourceRun(NamedTuple):
    """As many *records* whose source offsets follow each other without a gap, from *first* on."""

    first: int
    records: int


class Prepared(NamedTuple):
    """A batch that is ready to be stamped, and the source offsets of its records, in order.

    *reason* says why it was rebuilt, if it was; where several were put together, why the first one was.
    """

    batch: UnstampedBatch
    runs: tuple[SourceRun, ...]
    reason: Reason | None

    @property
    def first_offset(self) -> int:
        """The source offset of its first record."""
        return self.runs[0].first

    @property
    def last_offset(self) -> int:
        """The source offset of its last record."""
        return self.runs[-1].first + self.runs[-1].records - 1


@dataclass(slots=True)
class Counted:
    """How many batches there were, as they were fetched, and their bytes."""

    batches: int = 0
    nbytes: int = 0


@dataclass(slots=True)
class BatchForwarding:
    """Prepares fetched batches for a producer. One thread owns it.

    *counted* says how much went which way: ``None`` is for what was forwarded. With *check_crcs* the checksum of each batch is
    compared; without, a damaged one is rebuilt unnoticed, or forwarded with a wrong checksum, which the broker refuses.
    """

    check_crcs: bool = True
    max_batch_bytes: int = 128 << 20
    counted: dict[Reason | None, Counted] = field(default_factory=dict[Reason | None, Counted])

    def prepared(self, batches: EncodedBatches, limits: ForwardingLimits) -> Iterator[Prepared]:
        """The records of *batches* from its start on, in order, each in one batch.

        Raises :class:`~headrace.kafka.batches.errors.CorruptBatchError` for a batch that contradicts itself or its checksum, and
        :class:`~headrace.kafka.batches.errors.UnforwardableError` for a record that the target cannot take, each after all that
        comes before it.
        """
        place = source_place(batches)
        for way, group in groupby(fetched_batches(batches, place, limits), key=_rebuilding):
            if way is None:
                yield from self._forwarded(group, place)
                continue
            how = Encoding(
                compression=limits.compression or Compression(way.codec),
                batch_bytes=limits.batch_bytes,
                max_bytes=limits.max_bytes,
            )
            found = list(group)
            rows = self._converted if way.is_old else self._undivided
            uncounted = deque(found)
            for each in _rebuilt(rows(found, batches.start, place), batches, how, found[0].reason):
                yield each
                # What comes behind a record that is refused is prepared again.
                while uncounted and uncounted[0].header.last_offset <= each.last_offset:
                    self._count(uncounted.popleft())
            for one in uncounted:
                self._count(one)

    def _forwarded(self, group: Iterable[Fetched], place: TopicPartition) -> Iterator[Prepared]:
        for each in group:
            header = each.header
            if self.check_crcs:
                check_crc(each.data, header, place)
            self._count(each)
            run = SourceRun(header.base_offset, header.record_count)
            batch = UnstampedBatch(each.data, header.record_count, has_checksum=True)
            yield Prepared(batch, (run,), None)

    def _undivided(
        self, group: Sequence[Fetched], start: int, place: TopicPartition
    ) -> Iterator[_Rows]:
        """The records of batches of format 2: as they are, but for their times and places in a batch."""
        found = chain.from_iterable(
            undivided(octets, headers, place=place, start=start, how=self._how)
            for octets, headers in _located(group, place)
        )
        for parts in _gathered(found):
            records = concatenated(parts)
            yield _Rows(records.offsets, records)

    def _converted(
        self, group: Sequence[Fetched], start: int, place: TopicPartition
    ) -> Iterator[_Rows]:
        """The records of batches of old formats."""
        found = chain.from_iterable(
            decoded(octets, headers, place=place, start=start, how=self._how)
            for octets, headers in _joined(group, place)
        )
        for parts in _gathered(found):
            yield _decoded_rows(pa.Table.from_batches(parts))

    @property
    def _how(self) -> Decoding:
        return Decoding(
            with_headers=True,
            check_crcs=self.check_crcs,
            # What batches decompress to is held until it is encoded again: little more than is encoded at a time.
            group_bytes=_JOINED_BYTES,
            max_batch_bytes=self.max_batch_bytes,
        )

    def _count(self, fetched: Fetched) -> None:
        counted = self.counted.setdefault(fetched.reason, Counted())
        counted.batches += 1
        counted.nbytes += fetched.header.length


class Fetched(NamedTuple):
    """A batch as it was fetched, and why it is rebuilt."""

    data: memoryview
    header: BatchHeader
    reason: Reason | None


def source_place(batches: EncodedBatches) -> TopicPartition:
    """Where *batches* come from, as errors name it."""
    topic = batches.source_partition.get("topic")
    partition = batches.source_partition.get("partition")
    if isinstance(topic, str) and isinstance(partition, int):
        return TopicPartition(topic, partition)
    return TopicPartition(batches.topic, batches.partition)


def rebuilding_reason(header: BatchHeader, *, start: int, max_bytes: int) -> Reason | None:
    """Why a batch cannot be forwarded as it is for a reader of offsets from *start* on; ``None`` when it can."""
    if header.magic < NEWEST_MAGIC:
        return Reason.OLD_FORMAT
    if header.has_broker_time:
        return Reason.LOG_APPEND_TIME
    if header.base_offset < start:
        return Reason.STARTS_BEFORE
    if header.record_count != header.last_offset - header.base_offset + 1:
        return Reason.GAP
    return Reason.TOO_LARGE if header.length > max_bytes else None


def fetched_batches(
    batches: EncodedBatches, place: TopicPartition, limits: ForwardingLimits
) -> Iterator[Fetched]:
    """Those of *batches* that hold records from its start on, and why each is rebuilt. Pure.

    Raises ``ValueError`` for a transaction marker, which is no record.
    """
    found: list[Fetched] = []
    error: CorruptBatchError | None = None
    for data in batches.data:
        try:
            header = _header(data, place)
        except CorruptBatchError as corrupt:
            error = corrupt
            break
        if header.is_control:
            raise ValueError(f"The batch at offset {header.base_offset} of {place} has no records.")
        if header.record_count and header.last_offset >= batches.start:
            reason = rebuilding_reason(header, start=batches.start, max_bytes=limits.max_bytes)
            found.append(Fetched(data, header, reason))
    gathered = [each.reason is not None or limits.is_small(each.header) for each in found]
    # One that is small, but stands alone, costs less when it is forwarded.
    for each, before, after in zip(found, [False, *gathered], [*gathered[1:], False], strict=False):
        is_gathered = (before or after) and each.reason is None and limits.is_small(each.header)
        yield each._replace(reason=Reason.SMALL) if is_gathered else each
    if error is not None:
        raise error


def _header(data: memoryview, place: TopicPartition) -> BatchHeader:
    headers = batch_headers(data, place)
    if len(headers) != 1 or headers[0].length != len(data):
        offset = headers[0].base_offset if headers else -1
        raise CorruptBatchError(place, offset, f"{len(data)} bytes are not one whole batch")
    return headers[0]


class _Way(NamedTuple):
    """What batches have in common that are rebuilt together."""

    codec: int
    is_old: bool


def _rebuilding(fetched: Fetched) -> _Way | None:
    """How a batch is rebuilt; ``None`` for one that is forwarded."""
    header = fetched.header
    if fetched.reason is None:
        return None
    return _Way(header.compression, header.magic < NEWEST_MAGIC)


class _Rows(NamedTuple):
    """Records, and the offsets that they had."""

    offsets: Int64Array
    records: RecordColumns | RecordTails


def _located(
    group: Sequence[Fetched], place: TopicPartition
) -> Iterator[tuple[memoryview, list[BatchHeader]]]:
    """Where the batches of *group* lie: in one answer, or else in copies."""
    whole = group[0].data.obj
    if any(each.data.obj is not whole for each in group):
        yield from _joined(group, place)
        return
    octets = memoryview(whole).cast("B")
    begin = _address(octets)
    yield octets, [each.header._replace(position=_address(each.data) - begin) for each in group]


def _address(octets: memoryview) -> int:
    return np.frombuffer(octets, np.uint8).__array_interface__["data"][0]


def _joined(
    group: Sequence[Fetched], place: TopicPartition
) -> Iterator[tuple[memoryview, list[BatchHeader]]]:
    """The bytes of *group*, as many batches together as are worth decoding at a time."""
    held: list[memoryview] = []
    size = 0
    for each in group:
        if held and size + len(each.data) > _JOINED_BYTES:
            yield _together(held, place)
            held, size = [], 0
        held.append(each.data)
        size += len(each.data)
    yield _together(held, place)


def _together(
    held: Sequence[memoryview], place: TopicPartition
) -> tuple[memoryview, list[BatchHeader]]:
    octets = held[0] if len(held) == 1 else memoryview(b"".join(held))
    return octets, batch_headers(octets, place)


_Part = TypeVar("_Part", pa.RecordBatch, RecordTails)


def _gathered(found: Iterable[_Part]) -> Iterator[list[_Part]]:
    """As many of *found* together as are encoded at a time; all of them before its error."""
    held: list[_Part] = []
    size = 0
    try:
        for each in found:
            held.append(each)
            size += each.nbytes
            if size >= _GATHERED_BYTES:
                yield held
                held, size = [], 0
    except CorruptBatchError:
        if held:
            yield held
        raise
    if held:
        yield held


def _rebuilt(
    found: Iterable[_Rows], batches: EncodedBatches, how: Encoding, reason: Reason | None
) -> Iterator[Prepared]:
    """Batches of the records *found*, which belong to *batches*."""
    for offsets, records in found:
        try:
            yield from _encoded(_Rows(offsets, records), how, reason)
        except RecordTooLargeError as error:
            raise UnforwardableError(
                source_place(batches),
                int(offsets[error.row]),
                f"it has {error.size} bytes with the header of its batch, and no more than {how.max_bytes} can be written "
                f"to topic {batches.topic!r}",
                advice="Raise max.message.bytes of that topic, and max.request.size of the producer.",
            ) from error


def encoded_records(records: pa.Table, how: Encoding, reason: Reason | None) -> Iterator[Prepared]:
    """*records*, decoded with their headers, in batches. Raises as :func:`~headrace.kafka.batches.encoding.encoded`."""
    return _encoded(_decoded_rows(records), how, reason)


def _decoded_rows(records: pa.Table) -> _Rows:
    columns = record_columns(
        records["timestamp"].to_numpy(),
        records["value"],
        records["key"],
        sections(records["headers"].combine_chunks()),
    )
    return _Rows(records["offset"].to_numpy(), columns)


def _encoded(rows: _Rows, how: Encoding, reason: Reason | None) -> Iterator[Prepared]:
    row = 0
    for batch in encoded(rows.records, how):
        runs = runs_of(rows.offsets[row : row + batch.record_count])
        yield Prepared(batch, runs, reason)
        row += batch.record_count


def runs_of(offsets: Int64Array) -> tuple[SourceRun, ...]:
    borders = np.flatnonzero(np.diff(offsets) != 1) + 1
    firsts = np.append(0, borders)
    counts = np.diff(firsts, append=len(offsets))
    return tuple(map(SourceRun, offsets[firsts].tolist(), counts.tolist()))
