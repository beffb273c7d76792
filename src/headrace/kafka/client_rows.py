"""Arrow columns as the rows that the client library takes, a bounded piece at a time. Pure."""

# The library's types do not list the functions of pyarrow.compute, nor what arrays hold.
# pyright: reportAttributeAccessIssue=false, reportUnknownParameterType=false

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import repeat
from typing import NamedTuple, cast

import pyarrow as pa
import pyarrow.compute as pc

from headrace.kafka.sender import EncodedRecords

# Python objects cost several times their Arrow bytes, so only this much of a batch exists twice; few
# enough rows to stay in a core's cache between being made and being copied by the client.
MAX_ROWS = 2_000
MAX_BYTES = 4_000_000

# Length, attributes, deltas and the batch's own header, rounded up: a record that fits without them
# could still be refused by the broker, too late to say which one it was.
OVERHEAD_BYTES = 100


def pieces(records: EncodedRecords, stop: int) -> Iterator[tuple[int, int]]:
    """Bounds of consecutive pieces of the first *stop* rows, each small enough to exist twice."""
    if stop == 0:
        return
    per_row = max(1, records.values.nbytes // len(records))
    rows = min(MAX_ROWS, max(1, MAX_BYTES // per_row))
    for start in range(0, stop, rows):
        yield start, min(stop, start + rows)


class Rows(NamedTuple):
    """What the client's ``produce`` takes of each row, a column each; all but *values* may be without end."""

    values: list[bytes | None]
    keys: Iterable[bytes | None]
    timestamps: Iterable[int]
    headers: Iterable[list[tuple[str, bytes | None]] | None]


def rows(records: EncodedRecords, start: int, stop: int) -> Rows:
    """Rows *start* to *stop* with everything they have."""
    headers = records.headers
    return Rows(
        values=_taken(records.values, start, stop),
        keys=repeat(None) if records.keys is None else _taken(records.keys, start, stop),
        timestamps=_timestamps(records, start, stop),
        headers=repeat(None)
        if headers is None
        else [list(each) or None for each in headers[start:stop]],
    )


def first_too_large(records: EncodedRecords, max_bytes: int) -> int | None:
    """The first row that a request of *max_bytes* cannot hold, ``None`` when all fit."""
    if records.headers is None and _at_most(records) <= max_bytes - OVERHEAD_BYTES:
        return None
    sizes = _sizes(records)
    for row in range(len(records)):
        if sizes[row] + _headers_size(records, row) > max_bytes - OVERHEAD_BYTES:
            return row
    return None


def _at_most(records: EncodedRecords) -> int:
    keys = 0 if records.keys is None else _largest(records.keys)
    return _largest(records.values) + keys


def _largest(column: pa.Array) -> int:
    return cast("int | None", pc.max(pc.binary_length(column)).as_py()) or 0


def _sizes(records: EncodedRecords) -> list[int]:
    sizes = pc.fill_null(pc.binary_length(records.values), 0)
    if records.keys is not None:
        sizes = pc.add(sizes, pc.fill_null(pc.binary_length(records.keys), 0))
    return cast("list[int]", sizes.to_pylist())


def _headers_size(records: EncodedRecords, row: int) -> int:
    if records.headers is None:
        return 0
    return sum(len(key) + len(value or b"") + 10 for key, value in records.headers[row])


def _timestamps(records: EncodedRecords, start: int, stop: int) -> Iterable[int]:
    given = records.timestamps
    if given is None or isinstance(given, int):
        return repeat(_timestamp(given))
    return [_timestamp(one) for one in cast("list[int | None]", given[start:stop].to_pylist())]


def _timestamp(given: int | None) -> int:
    if given is None or given < 0:
        return 0
    # To the client 0 means "now"; the first millisecond of 1970 is sent as the second.
    return max(1, given)


def _taken(column: pa.Array, start: int, stop: int) -> list[bytes | None]:
    return cast("list[bytes | None]", column.slice(start, stop - start).to_pylist())
