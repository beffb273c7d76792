"""Records as columns to be encoded, and what was made of them as a broker has it in its log."""

from __future__ import annotations

import io
from collections.abc import Iterable, Sequence

import numpy as np
import pyarrow as pa

from headrace.kafka.batches.encoding import RecordColumns, record_columns
from headrace.kafka.batches.header_sections import sections
from headrace.kafka.batches.producer_batch import UnstampedBatch, stamped
from headrace.kafka.batches.records import HEADERS
from record_batches import Row


def columns(written: Sequence[Row], *, large: bool = False) -> RecordColumns:
    """The columns of *written*, which lie in the middle of others."""
    kind = pa.large_binary() if large else pa.binary()
    values = pa.array([b"before", *(row.value for row in written), b"after" * 9], kind)
    keys = pa.array([None, *(row.key for row in written), b"after" * 9], kind)
    headers = [[("h", b"before")], *(list(row.headers) or None for row in written), None]
    times = np.array([0, *(row.timestamp for row in written), 0], np.int64)
    all_columns = record_columns(times, values, keys, sections(pa.array(headers, HEADERS)))
    return all_columns.part(1, len(written) + 1)


def logged(batches: Iterable[UnstampedBatch]) -> bytes:
    """The batches as a broker would have them in its log, one after the other."""
    log, offset = io.BytesIO(), 0
    for each in batches:
        parts = stamped(each, producer_id=5, epoch=0, sequence=0, transactional=False)
        data = bytearray(b"".join(bytes(part) for part in parts))
        data[:8] = offset.to_bytes(8, "big")
        log.write(data)
        offset += each.record_count
    return log.getvalue()


def numbered(written: Sequence[Row]) -> list[Row]:
    """*written* as it is read from a log that begins with it."""
    return [row._replace(offset=at, headers=list(row.headers)) for at, row in enumerate(written)]
