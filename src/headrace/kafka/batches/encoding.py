"""Columns of records into record batches: laid out for all rows at once, compressed, and cut by size."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from headrace.kafka.batches.compression import NO_COMPRESSION, Compression, compressed
from headrace.kafka.batches.header_sections import Sections
from headrace.kafka.batches.headers import HEADER_BYTES, NEWEST_MAGIC, OVERHEAD_BYTES
from headrace.kafka.batches.joining import (
    WORD_BYTES,
    ZERO,
    Codes,
    Column,
    Pieces,
    Views,
    coded,
    inline,
    joined,
    octets_code,
    pieces_of,
    renumbered,
    same_view,
    whole,
    width,
)
from headrace.kafka.batches.producer_batch import UnstampedBatch
from headrace.kafka.batches.records import Tails
from headrace.kafka.batches.varints import INLINE_BYTES, VIEW, Int64Array, Octets

# Columns of so many rows fit into a processor's cache; so does what they are joined into.
_ROWS: Final = 16_384
_GROUP_BYTES: Final = 4 << 20
_SIZE: Final = np.uint64(0xFFFFFFFF)
_Layout: TypeAlias = tuple[list[Views], list[object], Int64Array]
_HEADER: Final = np.dtype(
    [
        ("base_offset", ">i8"),
        ("length", ">i4"),
        ("leader_epoch", ">i4"),
        ("magic", "i1"),
        ("crc", ">u4"),
        ("attributes", ">i2"),
        ("last_delta", ">i4"),
        ("base_timestamp", ">i8"),
        ("max_timestamp", ">i8"),
        ("producer_id", ">i8"),
        ("producer_epoch", ">i2"),
        ("sequence", ">i4"),
        ("count", ">i4"),
    ]
)


@dataclass(frozen=True, slots=True)
class RecordColumns:
    """Records in order, by columns of equal length.

    *timestamps* are milliseconds, -1 for none; without *keys* all are null. *headers* are those of each record with their number in
    front, or the same for all.
    """

    timestamps: Int64Array
    values: Pieces
    keys: Pieces | None
    headers: bytes | Pieces

    def __len__(self) -> int:
        return len(self.timestamps)

    def part(self, start: int, stop: int) -> RecordColumns:
        """The rows from *start* to before *stop*, without copying."""
        return self._rows(slice(start, stop))

    def take(self, rows: Int64Array) -> RecordColumns:
        """Those *rows*, in their order; no bytes are copied."""
        return self._rows(rows)

    def _rows(self, which: slice | Int64Array) -> RecordColumns:
        return RecordColumns(
            self.timestamps[which],
            self.values.rows(which),
            None if self.keys is None else self.keys.rows(which),
            self.headers if isinstance(self.headers, bytes) else self.headers.rows(which),
        )


def record_columns(
    timestamps: Int64Array, values: Column, keys: Column | None, headers: Sections
) -> RecordColumns:
    """Records of Arrow's columns; a null in *keys* or *values* is Kafka's null.

    *headers* come from :mod:`~headrace.kafka.batches.header_sections`.
    """
    has_keys = keys is not None and keys.null_count < len(keys)
    return RecordColumns(
        timestamps,
        pieces_of(values),
        pieces_of(keys) if has_keys else None,
        headers if isinstance(headers, bytes) else pieces_of(headers),
    )


@dataclass(frozen=True, slots=True)
class RecordTails:
    """Records in order whose key, value and headers are encoded already, and lie together in *buffers*.

    *tails* are Arrow's views of these bytes, *sizes* their numbers. *offsets* are those that the records had.
    """

    offsets: Int64Array
    timestamps: Int64Array
    sizes: Int64Array
    tails: Views
    buffers: Sequence[object]

    def __len__(self) -> int:
        return len(self.offsets)

    @property
    def nbytes(self) -> int:
        """Of all tails."""
        return int(self.sizes.sum())

    def part(self, start: int, stop: int) -> RecordTails:
        """The rows from *start* to before *stop*, without copying."""
        rows = slice(start, stop)
        return RecordTails(
            self.offsets[rows],
            self.timestamps[rows],
            self.sizes[rows],
            self.tails[rows],
            self.buffers,
        )


def record_tails(octets: Octets, found: Tails) -> RecordTails:
    """What was *found* in *octets*, which are not copied unless there are short tails."""
    if len(found.sizes) and found.sizes.min() > INLINE_BYTES:
        views = np.zeros(len(found.at), VIEW)
        views["size"], views["at"] = found.sizes, found.at
        tails, buffers = views.view(np.uint64).reshape(-1, 2), [octets.buffer]
    else:
        _, tails, buffers = pieces_of(octets.pieces(found.at, found.sizes))
    return RecordTails(found.offsets, found.timestamps, found.sizes, tails, buffers)


def concatenated(parts: Sequence[RecordTails]) -> RecordTails:
    """The records of *parts*, one after the other."""
    if len(parts) == 1:
        return parts[0]
    buffers, tails = list[object](), list[Views]()
    for part in parts:
        tails.append(renumbered(part.tails, len(buffers)))
        buffers += part.buffers
    offsets, timestamps, sizes = (
        np.concatenate(columns)
        for columns in zip(
            *((each.offsets, each.timestamps, each.sizes) for each in parts), strict=True
        )
    )
    return RecordTails(offsets, timestamps, sizes, np.concatenate(tails), buffers)


@dataclass(frozen=True, slots=True, kw_only=True)
class Encoding:
    """How records become batches.

    A batch has at most *batch_bytes* before it is compressed, and *batch_rows* records; a single record may have more, up to
    *max_bytes* as it is sent. A batch that does not become smaller is not compressed.
    """

    compression: Compression = NO_COMPRESSION
    batch_bytes: int = 1_000_000
    batch_rows: int = 1 << 20
    max_bytes: int = 1_048_576


class RecordTooLargeError(ValueError):
    """The record in *row* makes a batch of *size* bytes, which is more than may be sent."""

    def __init__(self, row: int, size: int) -> None:
        self.row = row
        self.size = size
        super().__init__(f"The record in row {row} makes a batch of {size} bytes.")


def encoded(
    columns: RecordColumns | RecordTails, how: Encoding, *, starts: Sequence[int] = ()
) -> Iterator[UnstampedBatch]:
    """The batches of *columns*, in order; each row is in one, and each of the rows *starts*, which ascend, begins one.

    Raises :class:`RecordTooLargeError` after all batches before that record.
    """
    row = 0
    for batch in _encoded(columns, how, starts):
        if len(batch.data) > how.max_bytes:
            raise RecordTooLargeError(row, len(batch.data))
        yield batch
        row += batch.record_count


def largest_sizes(columns: RecordColumns | RecordTails) -> Int64Array:
    """How many bytes each record has at most, uncompressed and without the header of its batch."""
    times = columns.timestamps
    spread = int(times.max()) - int(times.min())
    # Deltas of times that wrap around are no longer than all 64 bits.
    deltas = [1, min(_LONGEST_VARINT, width(spread)), width(len(columns))]
    if isinstance(columns, RecordTails):
        longest = width(int(columns.sizes.max()) + _LONGEST_FIELDS)
        return columns.sizes + longest + sum(deltas)
    keys = np.array([-1]) if columns.keys is None else columns.keys.sizes
    values = columns.values.sizes
    sizes = np.maximum(values, 0) + np.maximum(keys, 0) + _section_sizes(columns)
    widths = [width(int(most.max())) for most in (keys, values, sizes + _LONGEST_FIELDS)]
    return sizes + (sum(widths) + sum(deltas))


_LONGEST_VARINT: Final = 10
_LONGEST_FIELDS: Final = 2 * _LONGEST_VARINT + 3 * 5


def _section_sizes(columns: RecordColumns) -> Int64Array:
    headers = columns.headers
    return np.array([len(headers)]) if isinstance(headers, bytes) else headers.sizes


def _encoded(
    columns: RecordColumns | RecordTails, how: Encoding, starts: Sequence[int]
) -> Iterator[UnstampedBatch]:
    for borders in _groups(columns, how, starts):
        start = borders[0]
        part = columns.part(start, borders[-1])
        firsts = np.array(borders[:-1]) - start
        for batch in _uncompressed(part, firsts):
            yield _compressed(batch, how.compression) if how.compression.codec else batch


def _groups(
    columns: RecordColumns | RecordTails, how: Encoding, starts: Sequence[int]
) -> Iterator[list[int]]:
    """The rows at which batches begin, and after them the last one's end: of as many batches as are laid out together."""
    if not len(columns):
        return
    ends = np.cumsum(largest_sizes(columns))
    most = min(how.batch_bytes, how.max_bytes) - HEADER_BYTES
    borders, before = [0], 0
    coming = iter([*starts, len(ends)])
    start = next_start = used = 0
    while start < len(ends):
        while next_start <= start:
            next_start = next(coming)
        stop = int(ends.searchsorted(used + most, side="right"))
        start = max(start + 1, min(stop, start + how.batch_rows, next_start))
        used = int(ends[start - 1])
        borders.append(start)
        if start - borders[0] >= _ROWS or used - before >= _GROUP_BYTES:
            yield borders
            borders, before = [start], used
    if len(borders) > 1:
        yield borders


def _uncompressed(
    columns: RecordColumns | RecordTails, firsts: Int64Array
) -> Iterator[UnstampedBatch]:
    """The batches of *columns* that begin at the rows *firsts*."""
    rows = len(columns)
    counts = np.diff(firsts, append=rows)
    times = coded(columns.timestamps - np.repeat(columns.timestamps[firsts], counts))
    offsets = coded(np.arange(rows) - np.repeat(firsts, counts))
    ending = _short_ending(columns)
    (first, *others), buffers, sizes = (
        _tails_layout(columns, times, offsets)
        if isinstance(columns, RecordTails)
        else _layout(columns, octets_code(ending), times, offsets)
    )
    totals = np.add.reduceat(sizes, firsts) + HEADER_BYTES
    headers = _batch_headers(columns.timestamps, firsts, counts=counts, sizes=totals)
    first = _with_batch_headers(first, headers, firsts, ending=ending, buffers=buffers, rows=rows)
    last = same_view(ending, buffers)
    content = memoryview(joined([first, *others], buffers, rows, last=last))
    begin = 0
    # Python's integers: where batches are many and small, numpy's would cost as much as all else here.
    for size, count in zip(totals.tolist(), counts.tolist(), strict=True):
        yield UnstampedBatch(content[begin : begin + size], count)
        begin += size


def _short_ending(columns: RecordColumns | RecordTails) -> bytes:
    """The headers of each record, if they are the same for all, and so short that they share a view with what comes before the next key."""
    if isinstance(columns, RecordTails) or not isinstance(columns.headers, bytes):
        return b""
    return columns.headers if len(columns.headers) <= WORD_BYTES else b""


def _batch_headers(
    timestamps: Int64Array, firsts: Int64Array, *, counts: Int64Array, sizes: Int64Array
) -> NDArray[np.void]:
    """The headers of batches that begin at the rows *firsts*, and have so many records and bytes."""
    headers = np.zeros(len(firsts), _HEADER)
    headers["length"] = sizes - OVERHEAD_BYTES
    headers["leader_epoch"] = -1
    headers["magic"] = NEWEST_MAGIC
    headers["last_delta"] = counts - 1
    headers["base_timestamp"] = timestamps[firsts]
    headers["max_timestamp"] = np.maximum.reduceat(timestamps, firsts)
    headers["producer_id"] = headers["producer_epoch"] = headers["sequence"] = -1
    headers["count"] = counts
    return headers


def _tails_layout(columns: RecordTails, times: Codes, offsets: Codes) -> _Layout:
    """As ``_layout``."""
    sizes = columns.sizes + (ZERO.widths + times.widths + offsets.widths).astype(np.int64)
    length = coded(sizes)
    pieces = [*inline([length, ZERO, times, offsets]), columns.tails]
    return pieces, list(columns.buffers), sizes + length.widths.astype(np.int64)


def _layout(columns: RecordColumns, before: Codes, times: Codes, offsets: Codes) -> _Layout:
    """The pieces of which records are made, their buffers, and how many bytes each record has.

    They begin with *before*, the short ending of the record before, which is counted as that of this one. *times* and *offsets* are
    what records differ by from the first of their batch.
    """
    buffers, keys, values = list[object](), columns.keys, columns.values
    value_length = coded(values.sizes)
    sizes = np.maximum(values.sizes, 0) + _section_sizes(columns)
    if keys is None:
        key_length = coded(np.array([-1]))
        middle, key_views = [key_length, value_length], list[Views]()
    else:
        key_length = coded(keys.sizes)
        sizes = sizes + np.maximum(keys.sizes, 0)
        middle = [key_length]
        key_views = [keys.views_after(buffers), *inline([value_length])]
    widths = ZERO.widths + times.widths + offsets.widths + key_length.widths + value_length.widths
    sizes = sizes + widths.astype(np.int64)
    length = coded(sizes)
    pieces = [
        *inline([before, length, ZERO, times, offsets, *middle]),
        *key_views,
        values.views_after(buffers),
    ]
    if not isinstance(columns.headers, bytes):
        pieces.append(columns.headers.views_after(buffers))
    elif not before.longest:
        pieces.append(same_view(columns.headers, buffers))
    return pieces, buffers, sizes + length.widths.astype(np.int64)


def _with_batch_headers(
    views: Views,
    headers: NDArray[np.void],
    firsts: Int64Array,
    *,
    ending: bytes,
    buffers: list[object],
    rows: int,
) -> Views:
    """*views* of short pieces, which begin with the *ending* of the record before; in the rows *firsts* with a batch's header after that."""
    found = np.empty((rows, 2), np.uint64)
    whole(found)[:] = whole(views)
    pieces = found[firsts].view(np.uint8).reshape(-1, VIEW.itemsize)
    begin, end = len(ending), len(ending) + HEADER_BYTES
    content = np.empty((len(firsts), HEADER_BYTES + INLINE_BYTES), np.uint8)
    content[:, :begin] = np.frombuffer(ending, np.uint8)
    content[:, begin:end] = headers.view(np.uint8).reshape(-1, HEADER_BYTES)
    content[:, end:] = pieces[:, VIEW.itemsize - INLINE_BYTES + begin :]
    at = np.arange(len(firsts), dtype=np.uint64) * content.shape[1]
    # No record is before the first one.
    at[0] = begin
    found[firsts, 0] = (found[firsts, 0] & _SIZE) + HEADER_BYTES
    found[0, 0] -= begin
    found[firsts, 1] = len(buffers) + (at << np.uint64(32))
    buffers.append(content)
    return found


def _compressed(batch: UnstampedBatch, how: Compression) -> UnstampedBatch:
    octets = memoryview(batch.data)
    packed = compressed(octets[HEADER_BYTES:], how)
    if HEADER_BYTES + len(packed) >= len(octets):
        return batch
    header = np.frombuffer(octets[:HEADER_BYTES], _HEADER).copy()
    header["length"] = HEADER_BYTES - OVERHEAD_BYTES + len(packed)
    header["attributes"] = how.codec
    return UnstampedBatch(header.tobytes() + packed, batch.record_count)
