"""Record batches into Arrow columns: which are decoded together, and in how much memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final

import pyarrow as pa

from headrace.kafka.batches.compression import (
    TooSmallError,
    decompress_into,
    decompressed,
    writable,
)
from headrace.kafka.batches.encoding import RecordTails, record_tails
from headrace.kafka.batches.errors import CorruptBatchError
from headrace.kafka.batches.headers import (
    HEADER_BYTES,
    NEWEST_MAGIC,
    AbortedTransaction,
    BatchHeader,
    check_crc,
    with_records,
)
from headrace.kafka.batches.messages import MessageReader
from headrace.kafka.batches.records import RECORDS, RECORDS_WITH_HEADERS, Records, Span, found_span
from headrace.kafka.topic_partition import TopicPartition

# Columns of so many rows fit into a processor's cache.
_ROWS: Final = 16_384


@dataclass(frozen=True, slots=True, kw_only=True)
class Decoding:
    """How batches are decoded.

    *with_headers* adds the column of headers. *without* names columns, of key and value, that are not needed: they are
    null, which costs less. *check_crcs* is ``check.crcs`` of Kafka's consumer. *group_bytes* is how
    many bytes of records are decompressed before they are handed out; what is handed out at a time has at most twice as many, and
    when one batch alone is larger, as many as that. *max_batch_bytes* bounds what one batch may decompress to, and is
    below 2 GiB; users know it as ``max.record.batch.bytes``. Where all records are of the fewest bytes, the places at which they
    begin take some times as much again.
    """

    with_headers: bool = False
    without: frozenset[str] = frozenset()
    check_crcs: bool = True
    group_bytes: int = 4 << 20
    max_batch_bytes: int = 128 << 20

    def __post_init__(self) -> None:
        # Arrow's offsets in a binary column have 32 bits.
        assert 0 < self.group_bytes < 1 << 30
        assert 0 < self.max_batch_bytes < 1 << 31

    @property
    def schema(self) -> pa.Schema:
        return RECORDS_WITH_HEADERS if self.with_headers else RECORDS


def decoded(
    data: bytes | memoryview,
    headers: Sequence[BatchHeader],
    *,
    place: TopicPartition,
    start: int,
    end: int | None = None,
    aborted: Sequence[AbortedTransaction] = (),
    how: Decoding = Decoding(),
) -> Iterator[pa.RecordBatch]:
    """The records of *place* with *start* <= offset < *end*, in the order of their offsets.

    *data* and *headers* are what :func:`~headrace.kafka.batches.headers.batch_headers` has read, *aborted* the list of the same
    answer, which is empty when uncommitted records are read. Transaction markers and aborted records are left out. No record batch is
    empty, and none shares memory with *data*, which may be overwritten once the iterator has ended.

    Raises :class:`~headrace.kafka.batches.errors.CorruptBatchError` for a batch that contradicts itself or its checksum, after all
    records before it have been handed out.
    """
    octets = memoryview(data)
    position = start
    try:
        for columns in _decoded(octets, headers, place, how, start=start, end=end, aborted=aborted):
            position = columns["offset"][-1].as_py() + 1
            yield columns
    except CorruptBatchError as error:
        # Others that were decoded together with it are right.
        before = [header for header in headers if header.last_offset < error.offset]
        if before:
            yield from decoded(
                data, before, place=place, start=position, end=end, aborted=aborted, how=how
            )
        raise


def undivided(
    data: bytes | memoryview,
    headers: Sequence[BatchHeader],
    *,
    place: TopicPartition,
    start: int,
    how: Decoding = Decoding(),
) -> Iterator[RecordTails]:
    """As ``decoded``, of batches of format 2, with what follows a record's time and offset left together and unopened.

    All *headers* are of batches with records, which are wanted. What is handed out refers to *data*. Nothing of a batch is handed
    out before all of its records are checked; some forty bytes are held for each of them meanwhile.
    """
    octets = memoryview(data)
    position = start
    try:
        checked = _checked(octets, headers, place, None) if how.check_crcs else iter(headers)
        is_packed = any(header.compression for header in headers)
        groups = (
            _decompressed(octets, checked, place, how, is_kept=True)
            if is_packed
            else _in_place(octets, checked, place, how)
        )
        for records in groups:
            # Positions are stored by whole batches: what was sent of a damaged one would be sent again.
            parts = [
                record_tails(records.octets, records.tails(rows, start=start))
                for rows in _parts(records)
            ]
            for found in parts:
                if len(found):
                    position = int(found.offsets[-1]) + 1
                    yield found
    except CorruptBatchError as error:
        before = [header for header in headers if header.last_offset < error.offset]
        if before:
            yield from undivided(data, before, place=place, start=position, how=how)
        raise


def _decoded(
    octets: memoryview,
    headers: Sequence[BatchHeader],
    place: TopicPartition,
    how: Decoding,
    *,
    start: int,
    end: int | None,
    aborted: Sequence[AbortedTransaction],
) -> Iterator[pa.RecordBatch]:
    checked = _checked(octets, headers, place, end) if how.check_crcs else headers
    wanted = with_records(octets, checked, place=place, start=start, end=end, aborted=aborted)
    packed = _decompressed if any(header.compression for header in headers) else _in_place
    for is_old, run in groupby(wanted, key=lambda header: header.magic < NEWEST_MAGIC):
        if is_old:
            reader = MessageReader(
                octets=octets,
                place=place,
                with_headers=how.with_headers,
                check_crcs=how.check_crcs,
                max_wrapper_bytes=how.max_batch_bytes,
            )
            found = reader.columns(run, start=start, end=end)
        else:
            groups = packed(octets, run, place, how)
            found = _columns(groups, how, start=start, end=end)
        yield from (columns for columns in found if len(columns))


def _checked(
    octets: memoryview, headers: Sequence[BatchHeader], place: TopicPartition, end: int | None
) -> Iterator[BatchHeader]:
    # Before anything of a header is believed: a batch may claim to be a marker, or to be empty.
    for header in headers:
        if end is None or header.base_offset < end:
            check_crc(octets[header.position : header.end], header, place)
        yield header


def _columns(
    groups: Iterator[Records], how: Decoding, *, start: int, end: int | None
) -> Iterator[pa.RecordBatch]:
    for records in groups:
        for rows in _parts(records):
            yield records.columns(
                rows, start=start, end=end, without=how.without, with_headers=how.with_headers
            )


def _parts(records: Records) -> Iterator[slice]:
    parts = -(-len(records) // _ROWS)
    for part in range(parts):
        yield slice(len(records) * part // parts, len(records) * (part + 1) // parts)


def _in_place(
    octets: memoryview, headers: Iterator[BatchHeader], place: TopicPartition, how: Decoding
) -> Iterator[Records]:
    """The records of several batches at a time, where they are."""
    spans: list[Span] = []
    for header in headers:
        begin = header.position + HEADER_BYTES
        spans.append(found_span(octets, header, place, begin=begin, end=header.end))
        if header.end - spans[0].header.position >= how.group_bytes:
            yield Records(octets, spans, place)
            spans = []
    if spans:
        yield Records(octets, spans, place)


def _decompressed(
    octets: memoryview,
    headers: Iterator[BatchHeader],
    place: TopicPartition,
    how: Decoding,
    *,
    is_kept: bool = False,
) -> Iterator[Records]:
    """The records of several batches at a time, decompressed into a buffer, which is used again for the next unless it *is_kept*."""
    buffer = writable(2 * how.group_bytes + 8)
    spans: list[Span] = []
    used = 0
    for header in headers:
        records = octets[header.position + HEADER_BYTES : header.end]
        try:
            size = decompress_into(header.compression, records, buffer[used:])
        except ValueError as error:
            raise CorruptBatchError(place, header.base_offset, str(error)) from error
        except TooSmallError:
            if spans:
                yield Records(buffer, spans, place)
            alone = _decompressed_alone(header, records, place, how.max_batch_bytes)
            yield Records(alone, [found_span(alone, header, place, begin=0, end=len(alone))], place)
            spans, used = [], 0
            if is_kept:
                buffer = writable(len(buffer))
            continue
        spans.append(found_span(buffer, header, place, begin=used, end=used + size))
        used += size
        if used >= how.group_bytes:
            yield Records(buffer, spans, place)
            spans, used = [], 0
            if is_kept:
                buffer = writable(len(buffer))
    if spans:
        yield Records(buffer, spans, place)


def _decompressed_alone(
    header: BatchHeader, records: memoryview, place: TopicPartition, max_bytes: int
) -> memoryview:
    try:
        return decompressed(header.compression, records, max_bytes)
    except ValueError as error:
        raise CorruptBatchError(place, header.base_offset, str(error)) from error
