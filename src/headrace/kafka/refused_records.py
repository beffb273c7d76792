"""Copied records that are not written: refused by their target, or damaged at their source. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headrace.connect.encoded import EncodedBatches
from headrace.connect.errors import RecordError
from headrace.connect.record import BadRecord
from headrace.kafka.batches.compression import Compression
from headrace.kafka.batches.decoding import Decoding, decoded
from headrace.kafka.batches.encoding import Encoding
from headrace.kafka.batches.errors import CorruptBatchError, UnforwardableError
from headrace.kafka.batches.forwarding import (
    Prepared,
    SourceRun,
    encoded_records,
    source_place,
)
from headrace.kafka.batches.headers import batch_headers
from headrace.kafka.batches.producer_batch import UnstampedBatch
from headrace.kafka.topic_partition import TopicPartition

# What is refused was decoded, or can be; a checksum is not right before a producer has signed the batch.
_UNCHECKED: Final = Decoding(with_headers=True, check_crcs=False)
# A part of a batch fits into one.
_ONE_BATCH: Final = 1 << 30

RefusedError = UnforwardableError | CorruptBatchError


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusedRecords:
    """Records of *batches* from the source offset *first* to *last*, which are not written, and why.

    The bytes of *batches* are released. *records* has their offsets, keys and values; without it the bytes of their batch, *data*,
    cannot be read. *handed_over* of them counted as sent.
    """

    batches: EncodedBatches
    error: RefusedError
    first: int
    last: int
    records: pa.Table | None = None
    data: bytes | None = None
    handed_over: int = 0

    @property
    def place(self) -> TopicPartition:
        """Where they come from."""
        return source_place(self.batches)

    @property
    def nbytes(self) -> int:
        """How many bytes it keeps in memory."""
        return len(self.data or b"") + (0 if self.records is None else self.records.nbytes)

    def errors(self) -> Iterator[tuple[bytes | None, RecordError]]:
        """The key and the error of each record; only one error, with the bytes of the batch, where these cannot be read."""
        if self.records is None:
            where = f"offsets {self.first} to {self.last}"
            yield None, self._error(where, self.last, self.data)
            return
        for offset, key, value in zip(
            *(self.records[name].to_pylist() for name in ("offset", "key", "value")), strict=True
        ):
            yield key, self._error(f"offset {offset}", offset, value)

    def _error(self, position: str, offset: int, raw: bytes | None) -> RecordError:
        advice = self.error.advice if isinstance(self.error, UnforwardableError) else None
        batches, place = self.batches, self.place
        return RecordError(
            f"{self.error.reason.rstrip('.')}.",
            native_key=f"{place}",
            position=position,
            advice=advice,
            bad=BadRecord(
                source_partition=batches.source_partition,
                source_offset=batches.offset_at(offset + 1),
                topic=batches.topic,
                raw=raw,
                reference={
                    "topic": place.topic,
                    "partition": place.partition,
                    "firstOffset": self.first if self.records is None else offset,
                    "lastOffset": offset,
                },
            ),
        )


def refused_by_broker(
    batches: EncodedBatches,
    runs: Sequence[SourceRun],
    batch: UnstampedBatch,
    error: UnforwardableError,
    *,
    rows: Sequence[int],
) -> tuple[RefusedRecords, Prepared | None]:
    """The records of *batch*, which the broker has refused, and what it may take of it.

    *runs* are their source offsets, *batches* those of which they are, without their bytes.

    The broker takes a batch as a whole: where it has said which *rows* are the reason, the others may be sent again.
    """
    offsets = np.concatenate([np.arange(run.first, run.first + run.records) for run in runs])
    place = source_place(batches)
    records = _records(batch.data, place)
    if records is None or len(records) != len(offsets):
        first, last = int(offsets[0]), int(offsets[-1])
        data = bytes(batch.data)
        return RefusedRecords(
            batches=batches,
            error=error,
            first=first,
            last=last,
            data=data,
            handed_over=len(offsets),
        ), None
    index = records.schema.get_field_index("offset")
    records = records.set_column(index, "offset", pa.array(offsets, pa.int64()))
    is_refused = np.full(len(offsets), not rows)
    is_refused[list(rows)] = True
    refused = offsets[is_refused]
    found = RefusedRecords(
        batches=batches,
        error=error,
        first=int(refused[0]),
        last=int(refused[-1]),
        records=records.filter(pa.array(is_refused)),
        handed_over=len(refused),
    )
    if is_refused.all():
        return found, None
    return found, _anew(records.filter(pa.array(~is_refused)), batch, place)


def _anew(records: pa.Table, batch: UnstampedBatch, place: TopicPartition) -> Prepared:
    """*records* of *batch* in one batch, with its compression."""
    (header,) = batch_headers(memoryview(batch.data), place)
    how = Encoding(
        compression=Compression(header.compression),
        batch_bytes=_ONE_BATCH,
        max_bytes=_ONE_BATCH,
    )
    (found,) = encoded_records(records, how, None)
    return found


def without_tolerance(damage: CorruptBatchError, last: int) -> str:
    """Why a partition is not read on after a damaged batch, which says of itself that it ends with the offset *last*."""
    return (
        f"{damage} With errors.tolerance=all it is passed over, up to its last offset {last}, with a dead letter or a line in the "
        "log."
    )


class Unsent(NamedTuple):
    """What of encoded batches is not sent yet: all *before* the *refused* records, these, and the *rest*."""

    before: EncodedBatches | None
    refused: RefusedRecords
    rest: EncodedBatches | None


def refused_unsent(batches: EncodedBatches, error: RefusedError, reached: int) -> Unsent:
    """What of *batches*, which are sent up to the source offset *reached*, comes before the records of *error*, these, and the rest.

    Raises *error* where it does not say which records it is about, or where some of a damaged batch are sent: no position that
    could be committed lies after them.
    """
    index = _index(batches, error.offset)
    if index is None:
        raise error
    header, data = batches.headers[index], batches.data[index]
    records = None
    if isinstance(error, UnforwardableError):
        first = last = error.offset
        found = _records(data, source_place(batches))
        records = None if found is None else found.filter(pc.equal(found["offset"], first))
        if records is not None and records.num_rows != 1:
            raise error
    else:
        first, last = max(header.base_offset, batches.start), header.last_offset
        if reached > first:
            raise error
    refused = RefusedRecords(
        batches=batches.released(),
        error=error,
        first=first,
        last=last,
        records=records,
        data=bytes(data) if records is None else None,
    )
    before, rest = _part(batches, reached, index), _part(batches, last + 1, len(batches))
    return Unsent(before, refused, rest)


def before_damage(batches: EncodedBatches, damage: CorruptBatchError) -> EncodedBatches | None:
    """Those of *batches* that come before the damaged one; ``None`` where there is none."""
    index = _index(batches, damage.offset)
    assert index is not None, "it was found in them"
    return _part(batches, batches.start, index)


def _index(batches: EncodedBatches, offset: int) -> int | None:
    """Which batch has the source *offset*; that of an old format only says its last one."""
    ends = enumerate(header.last_offset for header in batches.headers)
    return next((index for index, last in ends if 0 <= offset <= last), None)


def _part(batches: EncodedBatches, start: int, end: int) -> EncodedBatches | None:
    """Those before the index *end* with something from the source offset *start* on."""
    begin = next(
        (index for index in range(end) if batches.headers[index].last_offset >= start), None
    )
    if begin is None:
        return None
    part = batches.slice(begin, end - begin)
    return part if part.start >= start else replace(part, start=start)


def _records(data: bytes | memoryview | bytearray, place: TopicPartition) -> pa.Table | None:
    """Offsets, keys and values; ``None`` where they cannot be read."""
    octets = memoryview(data)
    try:
        found = decoded(octets, batch_headers(octets, place), place=place, start=0, how=_UNCHECKED)
        return pa.Table.from_batches(list(found), _UNCHECKED.schema)
    except CorruptBatchError:
        return None
