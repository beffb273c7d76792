"""The header of a batch that leaves: producer id, epoch, sequence, the transactional bit, and the checksum over them."""

from __future__ import annotations

import struct
from typing import Final, NamedTuple

from headrace.kafka.batches.checksums import Bytes, crc32c, crc32c_of_replaced
from headrace.kafka.batches.headers import (
    COMPRESSION,
    CONTROL,
    CRC_BEGINS,
    HEADER_BYTES,
    LOG_APPEND_TIME,
    NEWEST_MAGIC,
    OVERHEAD_BYTES,
    PREFIX,
    TRANSACTIONAL,
)

_HEADER: Final = struct.Struct(">qiibIhiqqqhii")
_NO_LEADER_EPOCH: Final = -1
_LARGEST_EPOCH: Final = (1 << 15) - 1
_LARGEST_SEQUENCE: Final = (1 << 31) - 1


class UnstampedBatch(NamedTuple):
    """One whole batch of format 2 (header and records) that no producer has signed yet.

    Of its header count the length, the compression, the last offset delta, the two times and the number of records, which is
    *record_count*; what else is there, :func:`stamped` overwrites. So it may be a batch as it was fetched, which *has_checksum*:
    the new one is then made of that, and if it is wrong, so is the new one, and the broker refuses the batch. The bytes are not
    to be changed until the broker has acknowledged them.
    """

    data: Bytes
    record_count: int
    has_checksum: bool = False


def stamped(
    batch: UnstampedBatch, *, producer_id: int, epoch: int, sequence: int, transactional: bool
) -> list[Bytes]:
    """The bytes of *batch* as a producer sends them: a header of its own, and the records, which are not copied.

    *sequence* is that of its first record. The bit for a delete horizon is not kept: the base timestamp is then not a time, but
    the records' times count from it all the same (KIP-534).

    Nothing else writes a producer's fields: the broker takes a batch without a producer id, or without the transactional bit, out
    of any transaction, and readers see it at once. So this raises ``ValueError`` for a negative id, epoch or sequence; and for
    what would be other records at the target, or which the broker refuses for certain: a batch that is not whole, or not of
    format 2, a transaction marker, one with the broker's time, and one with gaps between offsets.
    """
    if (
        producer_id < 0
        or not 0 <= epoch <= _LARGEST_EPOCH
        or not 0 <= sequence <= _LARGEST_SEQUENCE
    ):
        raise ValueError(f"{producer_id}, {epoch}, {sequence} are no producer id, epoch, sequence")
    data = memoryview(batch.data)
    if len(data) <= HEADER_BYTES:
        raise ValueError(f"{len(data)} bytes are no batch with records")
    _, length, _, magic, crc, attributes, delta, base_time, max_time, _, _, _, count = (
        _HEADER.unpack_from(data)
    )
    if length + OVERHEAD_BYTES != len(data) or magic != NEWEST_MAGIC:
        raise ValueError(f"{len(data)} bytes are no batch of {length + OVERHEAD_BYTES} in format 2")
    if attributes & (CONTROL | LOG_APPEND_TIME):
        raise ValueError("a transaction marker, or a batch with the broker's time, is not sent")
    if not count == batch.record_count == delta + 1:
        raise ValueError(f"a batch with {count} records in {delta + 1} offsets is not sent")
    header = bytearray(HEADER_BYTES)
    kept = attributes & COMPRESSION | (TRANSACTIONAL if transactional else 0)
    _HEADER.pack_into(
        header, 0, 0, length, _NO_LEADER_EPOCH, NEWEST_MAGIC, 0,
        kept, delta, base_time, max_time, producer_id, epoch, sequence, count,
    )  # fmt: skip
    records, covered = data[HEADER_BYTES:], memoryview(header)[CRC_BEGINS:]
    checksum = (
        crc32c_of_replaced(crc, data[CRC_BEGINS:HEADER_BYTES], covered, len(records))
        if batch.has_checksum
        else crc32c(records, crc32c(covered))
    )
    PREFIX.pack_into(header, 0, 0, length, _NO_LEADER_EPOCH, NEWEST_MAGIC, checksum)
    return [header, records]
