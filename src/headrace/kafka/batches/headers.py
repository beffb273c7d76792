"""What the record batches in a Fetch answer say of themselves, and which of them hold records for a reader.

The layout is that of https://kafka.apache.org/documentation/#recordbatch. Nothing here decompresses or copies.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from headrace.kafka.batches.checksums import crc32c
from headrace.kafka.batches.errors import CorruptBatchError
from headrace.kafka.batches.varints import scalar
from headrace.kafka.topic_partition import TopicPartition

HEADER_BYTES: Final = 61
"""Bytes of a version 2 batch before its records."""
CRC_BEGINS: Final = 21
"""Where in a version 2 batch the bytes begin that its checksum covers."""
PREFIX: Final = struct.Struct(">qiibI")
"""How a version 2 batch begins: base offset, length, leader epoch, format, checksum."""
OVERHEAD_BYTES: Final = 12
"""Bytes of a batch that its length does not count."""
COMPRESSION: Final = 0x07
"""Bits of a batch's attributes that number its compression; the others here are one bit each."""
LOG_APPEND_TIME: Final = 0x08
TRANSACTIONAL: Final = 0x10
CONTROL: Final = 0x20
DELETE_HORIZON: Final = 0x40
NEWEST_MAGIC: Final = 2
"""The format of batches; before it there were messages."""

_REST: Final = struct.Struct(">hiqqqhii")
_MESSAGE: Final = struct.Struct(">qiIbB")
_MARKER: Final = struct.Struct(">hh")
_TIMESTAMP: Final = struct.Struct(">q")
# Of a version 0 message, the smallest thing there is.
_SMALLEST: Final = 14
_SMALLEST_WITH_TIME: Final = 22
_LARGEST_OFFSET: Final = (1 << 63) - 1
_ABORT: Final = 0


class BatchHeader(NamedTuple):
    """A complete record batch: where it lies, and its header.

    Of formats 0 and 1 (*magic*), a "batch" is one message, which may hold others, compressed. Its *base_offset* is the
    one that is written there, which for a compressed one is the offset of its **last** record; *record_count* is -1.
    Timestamps are milliseconds, or -1. With the delete horizon bit, *base_timestamp* is the time after which a cleaner
    may remove the batch's tombstones; the records' times count from it all the same (KIP-534). *leader_epoch* is that of
    the leader that appended it, -1 in old formats.
    """

    position: int
    length: int
    base_offset: int
    magic: int
    crc: int
    attributes: int
    last_offset: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    record_count: int
    leader_epoch: int = -1

    @property
    def end(self) -> int:
        """Where in the answer the batch ends."""
        return self.position + self.length

    @property
    def compression(self) -> int:
        """0 none, 1 gzip, 2 snappy, 3 lz4, 4 zstd."""
        return self.attributes & COMPRESSION

    @property
    def timestamp_type(self) -> int:
        """0 when producers set the timestamps, 1 when the broker did, -1 when the format has none."""
        return -1 if self.magic == 0 else int(self.attributes & LOG_APPEND_TIME != 0)

    @property
    def has_broker_time(self) -> bool:
        """Whether all its records have the time at which the broker appended it, which is *max_timestamp*."""
        return self.timestamp_type == 1

    @property
    def first_timestamp(self) -> int:
        """The time of its first record; where it does not say that, the largest of all."""
        has_other_base = self.magic >= NEWEST_MAGIC and self.attributes & DELETE_HORIZON
        return self.max_timestamp if self.has_broker_time or has_other_base else self.base_timestamp

    @property
    def is_transactional(self) -> bool:
        return self.magic >= NEWEST_MAGIC and self.attributes & TRANSACTIONAL != 0

    @property
    def is_control(self) -> bool:
        return self.magic >= NEWEST_MAGIC and self.attributes & CONTROL != 0


class AbortedTransaction(NamedTuple):
    """An entry of a Fetch answer's list: transactional batches of the producer are aborted, from this offset to its marker."""

    producer_id: int
    first_offset: int


def batch_headers(data: bytes | memoryview, place: TopicPartition) -> list[BatchHeader]:
    """The headers of the complete batches in *data*, the record bytes that one Fetch answer has for *place*.

    The broker cuts the last batch off where the answer is full; that one is not among them. Raises
    :class:`CorruptBatchError` when a header cannot be one, or offsets do not increase from batch to batch.
    """
    found, error = leading_headers(data, place)
    if error is not None:
        raise error
    return found


def leading_headers(
    data: bytes | memoryview, place: TopicPartition
) -> tuple[list[BatchHeader], CorruptBatchError | None]:
    """As ``batch_headers``, but what it raises comes with the headers before it: those batches can be read."""
    found: list[BatchHeader] = []
    position, last = 0, -1
    while len(data) - position >= PREFIX.size:
        try:
            header = _header(data, position, last, place)
        except CorruptBatchError as error:
            return found, error
        if header is None:
            break
        found.append(header)
        position, last = header.end, header.last_offset
    return found, None


def _header(
    data: bytes | memoryview, position: int, last: int, place: TopicPartition
) -> BatchHeader | None:
    """The header at *position*, after a batch that ends at the offset *last*; ``None`` if its batch is cut off."""
    base_offset, size, epoch, magic, crc = PREFIX.unpack_from(data, position)
    if base_offset < 0:
        raise CorruptBatchError(place, -1, f"its base offset is {base_offset}")
    if not 0 <= magic <= NEWEST_MAGIC:
        raise CorruptBatchError(place, base_offset, f"format {magic} is not known")
    least = (_SMALLEST, _SMALLEST_WITH_TIME, HEADER_BYTES - OVERHEAD_BYTES)[magic]
    if size < least:
        raise CorruptBatchError(place, base_offset, f"its length is {size}")
    length = size + OVERHEAD_BYTES
    if length > len(data) - position:
        return None
    if base_offset <= last:
        reason = f"it follows a batch that ends at offset {last}"
        raise CorruptBatchError(place, base_offset, reason)
    if magic < NEWEST_MAGIC:
        return _message(data, position, length)
    attributes, delta, base_timestamp, max_timestamp, producer_id, _, _, count = _REST.unpack_from(
        data, position + CRC_BEGINS
    )
    if delta < 0 or not 0 <= count <= delta + 1:
        reason = f"it claims {count} records in {delta + 1} offsets"
        raise CorruptBatchError(place, base_offset, reason)
    if base_offset + delta > _LARGEST_OFFSET:
        raise CorruptBatchError(place, base_offset, "its last offset has more than 63 bits")
    return BatchHeader(
        position=position,
        length=length,
        base_offset=base_offset,
        magic=magic,
        crc=crc,
        attributes=attributes,
        last_offset=base_offset + delta,
        base_timestamp=base_timestamp,
        max_timestamp=max_timestamp,
        producer_id=producer_id,
        record_count=count,
        leader_epoch=epoch,
    )


def _message(data: bytes | memoryview, position: int, length: int) -> BatchHeader:
    offset, _, crc, magic, attributes = _MESSAGE.unpack_from(data, position)
    timestamp = _TIMESTAMP.unpack_from(data, position + _MESSAGE.size)[0] if magic else -1
    return BatchHeader(
        position=position,
        length=length,
        base_offset=offset,
        magic=magic,
        crc=crc,
        attributes=attributes,
        last_offset=offset,
        base_timestamp=timestamp,
        max_timestamp=timestamp,
        producer_id=-1,
        record_count=-1,
    )


def check_crc(batch: memoryview, header: BatchHeader, place: TopicPartition) -> None:
    """Raise :class:`CorruptBatchError` when the checksum of a whole *batch* is not what its *header* says; old formats have none."""
    if header.magic < NEWEST_MAGIC:
        return
    found = crc32c(batch[CRC_BEGINS:])
    if found != header.crc:
        reason = f"its checksum is {found:#010x} and not {header.crc:#010x}"
        raise CorruptBatchError(place, header.base_offset, reason)


def next_offset(headers: Sequence[BatchHeader], start: int) -> int:
    """The offset to fetch from next, once these complete batches of an answer to a fetch at *start* are there."""
    return max(start, headers[-1].last_offset + 1) if headers else start


def with_records(
    data: bytes | memoryview,
    headers: Iterable[BatchHeader],
    *,
    place: TopicPartition,
    start: int,
    end: int | None = None,
    aborted: Sequence[AbortedTransaction] = (),
) -> Iterator[BatchHeader]:
    """The batches that may hold records for a reader of offsets from *start* to before *end*.

    Left out are batches outside, empty ones (a cleaner keeps them for their producer's sequence), transaction markers, and
    those of *aborted* transactions, the list that came in the same answer; it is empty when uncommitted records are read.
    """
    pending = sorted(aborted, key=lambda transaction: transaction.first_offset, reverse=True)
    aborting: set[int] = set()
    for header in headers:
        # Where a compressed message of an old format begins is only known once it is decompressed.
        if end is not None and header.magic >= NEWEST_MAGIC and header.base_offset >= end:
            return
        while pending and pending[-1].first_offset <= header.last_offset:
            aborting.add(pending.pop().producer_id)
        if header.is_control:
            if header.producer_id in aborting and _is_abort_marker(data, header, place):
                aborting.remove(header.producer_id)
        elif header.is_transactional and header.producer_id in aborting:
            continue
        elif header.record_count != 0 and header.last_offset >= start:
            yield header


def _is_abort_marker(data: bytes | memoryview, header: BatchHeader, place: TopicPartition) -> bool:
    """Whether the one record of a control batch has the key (version, type) of an abort."""
    if header.record_count == 0:
        return False
    octets = bytes(data[header.position + HEADER_BYTES : header.end])
    try:
        _, attributes_at = scalar(octets, 0)
        _, at = scalar(octets, attributes_at + 1)
        _, at = scalar(octets, at)
        _, at = scalar(octets, at)
        _, kind = _MARKER.unpack_from(octets, at)
    except (ValueError, struct.error) as error:
        reason = "it is no transaction marker, though it claims to be one"
        raise CorruptBatchError(place, header.base_offset, reason) from error
    return kind == _ABORT
