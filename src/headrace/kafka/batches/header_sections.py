"""The headers at the end of records, as bytes: of one record, or of many by columns."""

# The library's types do not list the functions of pyarrow.compute, nor what arrays hold.
# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headrace.kafka.batches.joining import (
    Codes,
    coded,
    inline,
    joined,
    pieces_of,
    scalar_code,
)
from headrace.kafka.batches.records import HEADERS
from headrace.kafka.batches.varints import Int64Array

Pairs = Sequence[tuple[str, bytes | None]]
"""The headers of one record, in order; keys may be repeated."""

Sections = bytes | pa.BinaryArray
"""The bytes of the headers of each record, their number first; the same for all, or one for each."""

NO_HEADERS: Final = b"\0"


def section(headers: Pairs) -> bytes:
    """The bytes of one record's *headers*."""
    parts = [scalar_code(len(headers))]
    for key, value in headers:
        name = key.encode()
        parts += [scalar_code(len(name)), name]
        parts += [scalar_code(-1)] if value is None else [scalar_code(len(value)), value]
    return b"".join(parts)


def sections_of_rows(rows: Sequence[Pairs] | None) -> Sections:
    """The sections of *rows*, one sequence of headers for each record, or ``None`` when no record has any."""
    if rows is None or not len(rows):
        return NO_HEADERS
    first = rows[0]
    if all(each is first or each == first for each in rows):
        return section(first)
    return sections(pa.array([list(each) for each in rows], HEADERS))


def sections(column: pa.ListArray) -> Sections:
    """The sections of a column of headers, of the type ``HEADERS``."""
    counts: Int64Array = np.array(pc.fill_null(pc.list_value_length(column), 0), np.int64)
    if not counts.any():
        return NO_HEADERS
    with_headers = np.flatnonzero(counts)
    found = _joined_sections(column.flatten(), counts[with_headers])
    if len(with_headers) == len(counts):
        return found
    rows = np.cumsum(counts != 0) - 1
    chosen = pa.array(rows, pa.int64(), mask=counts == 0)
    return pc.fill_null(found.take(chosen), NO_HEADERS)


def _joined_sections(pairs: pa.StructArray, counts: Int64Array) -> pa.BinaryArray:
    """The sections of rows that have as many of *pairs* as *counts* says, at least one each."""
    keys, values = pairs.flatten()
    keys, values = pieces_of(keys.cast(pa.binary())), pieces_of(values)
    firsts = np.cumsum(counts) - counts
    buffers: list[object] = []
    key_views, value_views = keys.views_after(buffers), values.views_after(buffers)
    key_codes, value_codes = coded(keys.sizes), coded(values.sizes)
    count_codes = _in_rows(coded(counts), firsts, len(pairs))
    columns = [
        *inline([count_codes, key_codes]),
        key_views,
        *inline([value_codes]),
        value_views,
    ]
    sizes = np.broadcast_to(
        count_codes.widths + key_codes.widths + value_codes.widths, len(pairs)
    ).astype(np.int64)
    sizes += np.maximum(keys.sizes, 0) + np.maximum(values.sizes, 0)
    borders = np.append(0, np.cumsum(np.add.reduceat(sizes, firsts)))
    content = joined(columns, buffers, len(pairs))
    return pa.Array.from_buffers(
        pa.large_binary(), len(counts), [None, pa.py_buffer(borders), content]
    )


def _in_rows(codes: Codes, rows: Int64Array, count: int) -> Codes:
    """*codes* in those *rows* of *count*, and nothing in the others."""
    placed: list[np.ndarray] = []
    for each in (codes.low, codes.high, codes.widths):
        column = np.zeros(count, np.uint64)
        column[rows] = each
        placed.append(column)
    return Codes(placed[0], placed[1], placed[2], codes.longest)
