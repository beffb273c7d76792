"""Messages of formats 0 and 1, which brokers wrote before 0.11, by kafka-python's reader: one at a time.

A message may be a wrapper, whose value is other messages, compressed (KIP-31, KIP-32).
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

import pyarrow as pa
from kafka.record.legacy_records import LegacyRecord, LegacyRecordBatch

from headrace.kafka.batches.compression import decompressed
from headrace.kafka.batches.errors import CorruptBatchError
from headrace.kafka.batches.headers import BatchHeader, batch_headers
from headrace.kafka.batches.records import HEADERS, RECORDS, RECORDS_WITH_HEADERS
from headrace.kafka.topic_partition import TopicPartition

_DOES_NOT_FIT: Final = "its key and value are not as long as the message"
_ATTRIBUTES_AT: Final = 17
_COMPRESSION: Final = 0x07
_FIXED_BYTES: Final = (26, 34)
_MANY_BYTES: Final = 1 << 20
_LZ4: Final = 3
_LZ4_FLAGS_AT: Final = 4
_LZ4_HAS_SIZE: Final = 0x08

Row = tuple[int, int, int, bytes | None, bytes | None]
"""The columns ``RECORDS`` of one message."""


class MessageReader(NamedTuple):
    """Reads the messages of *place* in *octets*. What a wrapper holds may have *max_wrapper_bytes*.

    The column of headers is there *with_headers*, and null: these formats have none.
    """

    octets: memoryview
    place: TopicPartition
    with_headers: bool
    check_crcs: bool
    max_wrapper_bytes: int

    def columns(
        self, headers: Iterable[BatchHeader], *, start: int, end: int | None
    ) -> Iterator[pa.RecordBatch]:
        """The records of *headers* with offsets from *start* to before *end*, many at a time."""
        rows: list[Row] = []
        size = 0
        for header in headers:
            try:
                found = list(self._rows(header))
            except CorruptBatchError as error:
                # Offsets within a wrapper may count from its beginning.
                raise CorruptBatchError(self.place, header.base_offset, error.reason) from error
            except ValueError as error:
                raise CorruptBatchError(self.place, header.base_offset, str(error)) from error
            rows += [row for row in found if start <= row[0] and (end is None or row[0] < end)]
            size += header.length
            if rows and (header.compression or size >= _MANY_BYTES):
                yield self._batch(rows)
                rows, size = [], 0
        if rows:
            yield self._batch(rows)

    def _batch(self, rows: list[Row]) -> pa.RecordBatch:
        arrays = [
            pa.array(column, kind)
            for column, kind in zip(zip(*rows, strict=True), RECORDS.types, strict=True)
        ]
        if not self.with_headers:
            return pa.RecordBatch.from_arrays(arrays, schema=RECORDS)
        arrays.append(pa.nulls(len(rows), HEADERS))
        return pa.RecordBatch.from_arrays(arrays, schema=RECORDS_WITH_HEADERS)

    def _rows(self, header: BatchHeader) -> Iterator[Row]:
        outer = self._message(self.octets, header)
        if not header.compression:
            yield (
                header.base_offset,
                header.max_timestamp,
                header.timestamp_type,
                outer.key,
                outer.value,
            )
            return
        inside = memoryview(_unwrapped(header, outer.value or b"", self.max_wrapper_bytes))
        inner_headers = batch_headers(inside, self.place)
        if not inner_headers or inner_headers[-1].end != len(inside):
            raise ValueError("its last message is cut off")
        # Format 1 counts them from the first one; what the broker has assigned is the offset of the last.
        shift = header.base_offset - inner_headers[-1].base_offset if header.magic else 0
        for inner in inner_headers:
            if inner.compression or inner.magic != header.magic:
                raise ValueError("it holds messages that are not plain ones of its own format")
            message = self._message(inside, inner)
            time = header.max_timestamp if header.has_broker_time else inner.max_timestamp
            yield inner.base_offset + shift, time, header.timestamp_type, message.key, message.value

    def _message(self, octets: memoryview, header: BatchHeader) -> LegacyRecord:
        """Key and value as they are, also of a wrapper: what it holds is decompressed elsewhere."""
        message = bytearray(octets[header.position : header.end])
        if self.check_crcs and not LegacyRecordBatch(message, header.magic).validate_crc():
            raise ValueError("its checksum does not fit")
        message[_ATTRIBUTES_AT] &= ~_COMPRESSION
        try:
            record: LegacyRecord = next(iter(LegacyRecordBatch(message, header.magic)))
        except struct.error as error:
            raise ValueError(_DOES_NOT_FIT) from error
        # The library cuts off what does not fit, and takes no notice of what remains.
        size = _FIXED_BYTES[header.magic] + len(record.key or b"") + len(record.value or b"")
        if size != header.length:
            raise ValueError(_DOES_NOT_FIT)
        return record


def _unwrapped(header: BatchHeader, value: bytes, max_bytes: int) -> memoryview:
    if header.magic == 0 and header.compression == _LZ4 and len(value) > _LZ4_FLAGS_AT:
        return _unwrapped_old_lz4(value, max_bytes)
    return decompressed(header.compression, memoryview(value), max_bytes)


def _unwrapped_old_lz4(value: bytes, max_bytes: int) -> memoryview:
    """What is in an lz4 frame whose header has any checksum: of one byte, and in format 0 made of the wrong bytes (KAFKA-3160)."""
    at = 14 if value[_LZ4_FLAGS_AT] & _LZ4_HAS_SIZE else 6
    for checksum in range(256):
        frame = value[:at] + bytes([checksum]) + value[at + 1 :]
        try:
            return decompressed(_LZ4, memoryview(frame), max_bytes)
        except ValueError as error:
            if "headerChecksum" not in str(error):
                raise
    raise ValueError("the header of its lz4 frame is damaged")
