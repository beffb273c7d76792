"""What a fetch has brought, as what a mirror's task returns: whole record batches, or decoded records. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Final, NamedTuple

import pyarrow as pa

from headrace.connect.batch import BatchOffsets, SourceBatch
from headrace.connect.encoded import EncodedBatches, EncodedHeader
from headrace.connect.partition import SourcePartition
from headrace.connect.record import Header, Headers
from headrace.connect.schema import BYTES, OPTIONAL_BYTES
from headrace.kafka.batches.decoding import Decoding, decoded
from headrace.kafka.batches.errors import CorruptBatchError
from headrace.kafka.batches.headers import BatchHeader, check_crc, with_records
from headrace.kafka.topic_partition import TopicPartition
from headrace.kafka.wire.fetcher import FetchedRecords
from headrace.mirror.offset_checks import OFFSET
from headrace.mirror.positions import Position

_UNKNOWN_EPOCH: Final = -1


class Copied(NamedTuple):
    """One source partition that is copied, and the remote partition that it is copied to.

    *position* is where it is now; what identifies the source's log is in it.
    """

    source: SourcePartition
    remote: TopicPartition
    position: Position

    def at(self, next_offset: int, leader_epoch: int | None) -> Copied:
        """The same one, further on."""
        moved = self.position._replace(next=next_offset, leader_epoch=leader_epoch)
        return self._replace(position=moved)


def encoded_batches(answer: FetchedRecords, copied: Copied) -> Iterator[EncodedBatches]:
    """The committed batches in *answer*, unopened; without one where it has only markers, or aborted batches.

    One piece for each leader epoch, since the offsets of a piece share it. Raises
    :class:`~headrace.kafka.batches.errors.CorruptBatchError` after the pieces before the damage; what is handed on is not
    looked into here.
    """
    try:
        wanted = _with_records(answer)
    except CorruptBatchError as error:
        before = [header for header in answer.headers if header.last_offset < error.offset]
        yield from encoded_batches(replace(answer, headers=before), copied)
        raise
    start = answer.fetch_offset
    for epoch, headers in groupby(answer.headers, key=_epoch):
        run = list(headers)
        kept = [header for header in run if header.position in wanted]
        reached = max(start, run[-1].last_offset + 1)
        yield EncodedBatches(
            topic=copied.remote.topic,
            partition=copied.remote.partition,
            source_partition=copied.source,
            data=[answer.data[header.position : header.end] for header in kept],
            headers=[
                EncodedHeader(header.base_offset, header.last_offset, header.record_count)
                for header in kept
            ],
            start=start,
            next_offset=reached,
            offset=copied.at(reached, epoch).position.offset,
        )
        start = reached


def _with_records(answer: FetchedRecords) -> frozenset[int]:
    """Where the batches lie that are to be copied."""
    wanted = frozenset(
        header.position
        for header in with_records(
            answer.data,
            answer.headers,
            place=answer.place,
            start=answer.fetch_offset,
            aborted=answer.aborted,
        )
    )
    for header in answer.headers:
        # A damaged one may only claim to be a marker, to be empty, or to be of an aborted transaction.
        if header.position not in wanted:
            check_crc(answer.data[header.position : header.end], header, answer.place)
    return wanted


def without_batches(copied: Copied) -> EncodedBatches:
    """Moves the position, and sends nothing."""
    return EncodedBatches(
        topic=copied.remote.topic,
        partition=copied.remote.partition,
        source_partition=copied.source,
        data=(),
        headers=(),
        start=copied.position.next,
        next_offset=copied.position.next,
        offset=copied.position.offset,
    )


def source_batches(answer: FetchedRecords, copied: Copied, how: Decoding) -> Iterator[SourceBatch]:
    """The committed records in *answer*, decoded; *how* has to have their headers.

    Raises :class:`~headrace.kafka.batches.errors.CorruptBatchError` after the records before the damage.
    """
    assert how.with_headers
    found = decoded(
        answer.data,
        answer.headers,
        place=answer.place,
        start=answer.fetch_offset,
        aborted=answer.aborted,
        how=how,
    )
    epoch = last_epoch(answer.headers)
    constant = copied.at(0, epoch).position.identity
    for records in found:
        yield SourceBatch(
            topic=copied.remote.topic,
            partition=copied.remote.partition,
            source_partition=copied.source,
            offsets=BatchOffsets(constant=constant, columns={OFFSET: records["offset"]}),
            keys=records["key"],
            key_schema=OPTIONAL_BYTES,
            values=records["value"],
            value_schema=OPTIONAL_BYTES,
            headers=_headers(records["headers"]),
            timestamps=records["timestamp"],
        )


def last_epoch(headers: Sequence[BatchHeader]) -> int | None:
    """The leader epoch in which the last of the batches was appended; ``None`` where it does not say so."""
    return _epoch(headers[-1]) if headers else None


def _epoch(header: BatchHeader) -> int | None:
    return None if header.leader_epoch == _UNKNOWN_EPOCH else header.leader_epoch


def _headers(column: pa.ListArray) -> Sequence[Headers] | None:
    if column.null_count == len(column):
        return None
    return [_of_record(row) for row in column.to_pylist()]


def _of_record(row: Sequence[dict[str, object]] | None) -> Headers:
    return tuple(Header(str(each["key"]), each["value"], BYTES) for each in row or ())
