"""The records of many version 2 batches as Arrow columns.

One loop finds where each record begins; everything else is done for all records at once. See
https://kafka.apache.org/documentation/#record for the form of one.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from headrace.kafka.batches.errors import CorruptBatchError
from headrace.kafka.batches.headers import BatchHeader
from headrace.kafka.batches.varints import Int64Array, Octets, scalar
from headrace.kafka.topic_partition import TopicPartition

HEADERS: Final = pa.list_(
    pa.field(
        "element",
        pa.struct([pa.field("key", pa.string(), nullable=False), ("value", pa.binary())]),
    )
)
"""The headers of a record: in order, keys repeated as they were written; null when the record has none."""

RECORDS: Final = pa.schema(
    [
        pa.field("offset", pa.int64(), nullable=False),
        pa.field("timestamp", pa.int64(), nullable=False),
        pa.field("timestamp_type", pa.int8(), nullable=False),
        ("key", pa.binary()),
        ("value", pa.binary()),
    ]
)
"""The columns of what is decoded.

*timestamp* is in milliseconds, -1 where there is none; *timestamp_type* is 0 for a producer's, 1 for the time at which
the broker appended the record, -1 for none.
"""

RECORDS_WITH_HEADERS: Final = RECORDS.append(pa.field("headers", HEADERS))

_SURROGATES: Final = re.compile(rb"\xed[\xa0-\xbf][\x80-\xbf]")
_REPLACEMENT: Final = "\ufffd".encode()
_HEADERS_DO_NOT_FIT: Final = "the headers of a record are not as long as the record"
_FIELDS_DO_NOT_FIT: Final = "a record's fields are not as long as the record"
_MORE: Final = 0x80
_FEWEST_BYTES: Final = 6
# The lengths of the key and the value, and the number of headers.
_FEWEST_TAIL_BYTES: Final = 3
_LONGEST_INT_BYTES: Final = 5
_FEW_ROWS: Final = 16


class Span(NamedTuple):
    """Where the records of a batch lie in a buffer, uncompressed: each begins at one of *begins*, and the last ends at *ends*."""

    header: BatchHeader
    begins: Int64Array
    ends: int


def found_span(
    buffer: memoryview, header: BatchHeader, place: TopicPartition, *, begin: int, end: int
) -> Span:
    """The span of the batch *header*, whose records are *buffer*[*begin*:*end*].

    Raises :class:`CorruptBatchError` when their number or their lengths are not what the batch says. To be called directly after the
    bytes were checked or decompressed, while they are in the processor's cache.
    """
    begins = np.fromiter(_begins(buffer, begin, end), np.int64)
    if len(begins) != header.record_count or begins[-1] < 0:
        reason = f"it does not hold the {header.record_count} records that it claims"
        raise CorruptBatchError(place, header.base_offset, reason)
    return Span(header, begins, end)


class Tails(NamedTuple):
    """Records whose key, value and headers are left together, as the bytes that begin at *at*, as many as *sizes* says."""

    offsets: Int64Array
    timestamps: Int64Array
    at: Int64Array
    sizes: Int64Array


class Records:
    """The records of one batch or more, which lie in *buffer*."""

    def __init__(self, buffer: memoryview, spans: Sequence[Span], place: TopicPartition) -> None:
        self._place = place
        self._spans = spans
        self._octets = Octets(buffer)
        headers = [span.header for span in spans]
        counts = np.array([header.record_count for header in headers])
        self._begins = np.concatenate([span.begins for span in spans])
        self._ends = np.append(self._begins[1:], 0)
        self._ends[np.cumsum(counts) - 1] = [span.ends for span in spans]
        self._batches = np.repeat(np.arange(len(spans)), counts)
        self._base_offsets = np.array([header.base_offset for header in headers])
        self._last_offsets = np.array([header.last_offset for header in headers])
        self._timestamp_types = np.array([header.timestamp_type for header in headers], np.int8)
        self._base_timestamps = np.array([header.base_timestamp for header in headers])
        self._max_timestamps = np.array([header.max_timestamp for header in headers])
        self._last_read = -1

    def __len__(self) -> int:
        return len(self._batches)

    def columns(
        self,
        rows: slice,
        *,
        start: int,
        end: int | None,
        without: Collection[str] = (),
        with_headers: bool = False,
    ) -> pa.RecordBatch:
        """Those of *rows* whose offset is at least *start* and less than *end*; keys and values null *without* them.

        To be asked for from the first row to the last: offsets increase from one part to the next.
        """
        batches, ends = self._batches[rows], self._ends[rows]
        offsets, times, types, at = self._placed(rows)
        key_sizes, keys_at, at = self._pieces(at, ends, batches, "key")
        value_sizes, values_at, at = self._pieces(at, ends, batches, "value")
        header_counts, at = self._integers(at, batches)
        # Each header has at least the lengths of its key and its value.
        self._refuse(
            (header_counts < 0)
            | (at + 2 * header_counts > ends)
            | ((header_counts == 0) & (at != ends)),
            batches,
            _FIELDS_DO_NOT_FIT,
        )
        first, behind = np.searchsorted(offsets, [start, offsets[-1] + 1 if end is None else end])
        kept = slice(first, max(first, behind))
        found = [
            pa.array(offsets[kept]),
            pa.array(times[kept]),
            pa.array(types[kept]),
            *(
                pa.nulls(len(at), pa.binary())
                if name in without
                else self._octets.pieces(at, sizes)
                for name, at, sizes in (
                    ("key", keys_at[kept], key_sizes[kept]),
                    ("value", values_at[kept], value_sizes[kept]),
                )
            ),
        ]
        if not with_headers:
            return pa.RecordBatch.from_arrays(found, schema=RECORDS)
        headers = self._headers(at[kept], ends[kept], header_counts[kept], batches[kept])
        return pa.RecordBatch.from_arrays([*found, headers], schema=RECORDS_WITH_HEADERS)

    def tails(self, rows: slice, *, start: int) -> Tails:
        """Those of *rows* whose offset is at least *start*; to be asked for as ``columns``. What is in the tails is not looked at."""
        batches, ends = self._batches[rows], self._ends[rows]
        offsets, times, _, at = self._placed(rows)
        self._refuse(at + _FEWEST_TAIL_BYTES > ends, batches, _FIELDS_DO_NOT_FIT)
        kept = slice(int(np.searchsorted(offsets, start)), None)
        return Tails(offsets[kept], times[kept], at[kept], (ends - at)[kept])

    @property
    def octets(self) -> Octets:
        """The bytes in which they lie."""
        return self._octets

    def _placed(self, rows: slice) -> tuple[Int64Array, Int64Array, NDArray[np.int8], Int64Array]:
        """The offsets of *rows*, their times and the types of these, and where the rest of each begins."""
        batches = self._batches[rows]
        sizes, at = self._integers(self._begins[rows], batches)
        self._refuse(sizes < _FEWEST_BYTES, batches, "a record is shorter than any can be")
        # The attributes of a record have no bits yet.
        time_deltas, at = self._octets.integers(at + 1)
        offset_deltas, at = self._integers(at, batches)
        offsets = self._base_offsets[batches] + offset_deltas
        self._refuse(
            (offset_deltas < 0) | (offsets > self._last_offsets[batches]),
            batches,
            "a record's offset is outside the batch",
        )
        self._refuse(
            np.diff(offsets, prepend=self._last_read) <= 0,
            batches,
            "the offsets of its records do not increase",
        )
        self._last_read = offsets[-1]
        types = self._timestamp_types[batches]
        times = np.where(
            types == 1,
            self._max_timestamps[batches],
            self._base_timestamps[batches] + time_deltas,
        )
        return offsets, times, types, at

    def _integers(self, at: Int64Array, batches: Int64Array) -> tuple[Int64Array, Int64Array]:
        """Integers of 32 bits."""
        found, behind = self._octets.integers(at)
        self._refuse(behind > at + _LONGEST_INT_BYTES, batches, "an integer is too long")
        return found, behind

    def _pieces(
        self, at: Int64Array, ends: Int64Array, batches: Int64Array, what: str
    ) -> tuple[Int64Array, Int64Array, Int64Array]:
        """The lengths at *at* (-1 for null), where the bytes begin, and where they end, at *ends* at the latest."""
        sizes, begin = self._integers(at, batches)
        behind = begin + np.maximum(sizes, 0)
        self._refuse((sizes < -1) | (behind > ends), batches, f"a {what} is longer than its record")
        return sizes, begin, behind

    def _headers(
        self, at: Int64Array, ends: Int64Array, counts: Int64Array, batches: Int64Array
    ) -> pa.ListArray:
        found: list[tuple[Int64Array, ...]] = []
        rows = np.flatnonzero(counts)
        at, left = at[rows], counts[rows]
        # The first header of all rows, then the second of all that have two.
        while len(rows) > _FEW_ROWS:
            key_sizes, keys_at, at = self._pieces(at, ends[rows], batches[rows], "header's key")
            self._refuse(key_sizes < 0, batches[rows], "a header has no key")
            value_sizes, values_at, at = self._pieces(at, ends[rows], batches[rows], "header")
            found.append((rows, keys_at, key_sizes, values_at, value_sizes))
            left = left - 1
            over = left == 0
            self._refuse(over & (at != ends[rows]), batches[rows], _HEADERS_DO_NOT_FIT)
            rows, at, left = rows[~over], at[~over], left[~over]
        # What a few rows have more than all the others is read one after the other.
        for row, place, count in zip(rows.tolist(), at.tolist(), left.tolist(), strict=True):
            pieces = self._row_headers(place, count, end=int(ends[row]), batch=batches[row])
            found.append((np.full(count, row), *np.array(pieces, np.int64).T))
        if not found:
            return pa.nulls(len(counts), HEADERS)
        owners, *pieces = (np.concatenate(parts) for parts in zip(*found, strict=True))
        order = np.argsort(owners, kind="stable")
        keys_at, key_sizes, values_at, value_sizes = (piece[order] for piece in pieces)
        pairs = pa.StructArray.from_arrays(
            [
                _texts(self._octets.pieces(keys_at, key_sizes)),
                self._octets.pieces(values_at, value_sizes),
            ],
            fields=list(HEADERS.value_type),
        )
        borders = np.append(0, np.cumsum(counts)).astype(np.int32)
        return pa.ListArray.from_arrays(
            pa.array(borders), pairs, type=HEADERS, mask=pa.array(counts == 0)
        )

    def _row_headers(
        self, at: int, count: int, *, end: int, batch: int
    ) -> list[tuple[int, int, int, int]]:
        """Of the *count* headers from *at* to *end*: where the key is, its size, where the value is, its size."""
        buffer = self._octets.buffer
        found: list[tuple[int, int, int, int]] = []
        for _ in range(count):
            key_size, key_at = _scalar(buffer, at)
            value_size, value_at = _scalar(buffer, key_at + max(key_size, 0))
            at = value_at + max(value_size, 0)
            if key_size < 0 or value_size < -1 or at > end:
                raise self._corrupt(batch, "a header is longer than its record, or has no key")
            found.append((key_at, key_size, value_at, value_size))
        if at != end:
            raise self._corrupt(batch, _HEADERS_DO_NOT_FIT)
        return found

    def _refuse(self, wrong: NDArray[np.bool_], batches: Int64Array, reason: str) -> None:
        if wrong.any():
            raise self._corrupt(batches[int(np.argmax(wrong))], reason)

    def _corrupt(self, batch: int, reason: str) -> CorruptBatchError:
        return CorruptBatchError(self._place, self._spans[batch].header.base_offset, reason)


def _begins(octets: memoryview, at: int, end: int) -> Iterator[int]:
    """Where each record begins, from *at* on; -1 behind them when the last one does not end at *end*."""
    # This loop is half of what decoding costs: lengths of one and two bytes are read in place, and checked later.
    try:
        while at < end:
            yield at
            size = octets[at]
            if size < _MORE:
                at += (size >> 1) + 1
            elif (more := octets[at + 1]) < _MORE:
                at += (size >> 1) + (more << 6) - 62
            else:
                size, body = scalar(octets, at)
                at = body + max(size, 0)
    except (IndexError, ValueError):
        at = -1
    if at != end:
        yield -1


def _scalar(octets: memoryview, at: int) -> tuple[int, int]:
    """An integer, and the place behind it, which is behind all bytes when it does not end."""
    try:
        return scalar(octets, at)
    except ValueError:
        return 0, len(octets) + 1


def _texts(keys: pa.BinaryArray) -> pa.StringArray:
    """Keys of headers as Java decodes them: what is not UTF-8 becomes U+FFFD."""
    try:
        return keys.cast(pa.string())
    except pa.ArrowInvalid:
        return pa.array([_text(key) for key in keys.to_pylist()], pa.string())


def _text(key: bytes) -> str:
    # Java has one replacement for a surrogate's three bytes, Python one for each byte.
    return _SURROGATES.sub(_REPLACEMENT, key).decode("utf-8", "replace")
