"""Record batches into Arrow columns: which are taken together, and what is checked of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from headrace.kafka.batches.headers import AbortedTransaction, BatchHeader
from headrace.kafka.topic_partition import TopicPartition

HEADERS: Final = pa.list_(
    pa.field(
        "element", pa.struct([pa.field("key", pa.string(), nullable=False), ("value", pa.binary())])
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Decoding:
    """How batches are decoded.

    *with_headers* adds the column of headers. *check_crcs* is ``check.crcs`` of Kafka's consumer. *group_bytes* is how
    many bytes of decompressed batches are held, and so the size of what is handed out at a time; one batch that is larger
    is decoded alone. *max_batch_bytes* bounds what one batch may decompress to.
    """

    with_headers: bool = False
    check_crcs: bool = True
    group_bytes: int = 4 << 20
    max_batch_bytes: int = 1 << 30

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
    how: Decoding | None = None,
) -> Iterator[pa.RecordBatch]:
    """The records of *place* with *start* <= offset < *end*, in the order of their offsets.

    *data* and *headers* are what :func:`~headrace.kafka.batches.headers.batch_headers` has read, *aborted* the list of the same
    answer, empty for who reads uncommitted records. Transaction markers and aborted records are left out. No record batch is
    empty, and none shares memory with *data*, which may be overwritten once the iterator has ended.

    Raises :class:`~headrace.kafka.batches.errors.CorruptBatchError` for a batch that contradicts itself or its checksum; what was
    handed out before it is right.
    """
    raise NotImplementedError
