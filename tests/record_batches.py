"""Record batches as kafka-python's builder writes them, and the records in them as plain values."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import cramjam
import google_crc32c
import pyarrow as pa
from hypothesis import strategies as st
from kafka.record.default_records import DefaultRecordBatchBuilder

from headrace.kafka.batches.decoding import Decoding, decoded
from headrace.kafka.batches.headers import AbortedTransaction, batch_headers
from headrace.kafka.topic_partition import TopicPartition

PLACE = TopicPartition("orders", 3)
GZIP, SNAPPY, LZ4, ZSTD = 1, 2, 3, 4
COMPRESSIONS = (0, GZIP, SNAPPY, LZ4, ZSTD)
Header = tuple[str, bytes | None]


class Row(NamedTuple):
    """A record that was written, or read."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Sequence[Header] = ()
    timestamp_type: int = 0


octets = st.binary(max_size=20) | st.binary(min_size=50, max_size=200) | st.just(b"z" * 9000)
header = st.tuples(st.text(max_size=8), st.none() | st.binary(max_size=20))
times = st.integers(0, 2_000_000_000_000) | st.integers(1_700_000_000_000, 1_700_000_010_000)


@st.composite
def rows(draw: st.DrawFn, *, max_size: int = 40) -> list[Row]:
    """Records with increasing offsets, with gaps."""
    gaps = draw(st.lists(st.sampled_from([0, 0, 0, 1, 70, 9000]), min_size=1, max_size=max_size))
    written: list[Row] = []
    offset = draw(st.integers(0, 1 << 40))
    for gap in gaps:
        offset += gap
        written.append(
            Row(
                offset,
                draw(times),
                draw(st.none() | octets),
                draw(st.none() | octets),
                draw(st.lists(header, max_size=3)),
            )
        )
        offset += 1
    return written


def batch(
    rows: Sequence[Row],
    *,
    compression: int = 0,
    producer_id: int = -1,
    transactional: bool = False,
    attributes: int = 0,
    fields: Mapping[str, int] | None = None,
) -> bytes:
    """One batch of *rows*; *attributes* are set besides, *fields* overwrite what is in the header."""
    builder = DefaultRecordBatchBuilder(
        magic=2,
        compression_type=0,
        is_transactional=transactional,
        producer_id=producer_id,
        producer_epoch=0 if producer_id >= 0 else -1,
        base_sequence=0 if producer_id >= 0 else -1,
        batch_size=1 << 30,
    )
    base = rows[0].offset if rows else 0
    for row in rows:
        appended = builder.append(
            row.offset - base,
            timestamp=row.timestamp,
            key=row.key,
            value=row.value,
            headers=list(row.headers),
        )
        assert appended is not None
    made = bytearray(builder.build())
    made[:8] = struct.pack(">q", base)
    made[22] |= attributes
    if rows:
        made[23:27] = struct.pack(">i", rows[-1].offset - base)
    made[22] |= compression
    made[61:] = compressed(compression, bytes(made[61:]))
    return sealed(made, **(fields or {}))


def compressed(compression: int, records: bytes) -> bytes:
    """The records of a batch as the client library compresses them."""
    compress = {
        0: bytes,
        GZIP: cramjam.gzip.compress,
        SNAPPY: cramjam.snappy.compress_raw,
        LZ4: cramjam.lz4.compress,
        ZSTD: cramjam.zstd.compress,
    }
    return bytes(compress[compression](records))


def xerial(records: bytes, *, block_bytes: int = 32) -> bytes:
    """The records of a batch as Java's snappy library frames them."""
    blocks = [
        bytes(cramjam.snappy.compress_raw(records[at : at + block_bytes]))
        for at in range(0, len(records), block_bytes)
    ]
    framed = [struct.pack(">i", len(block)) + block for block in blocks]
    return b"\x82SNAPPY\x00" + struct.pack(">ii", 1, 1) + b"".join(framed)


FIELDS = {
    "base_offset": (0, ">q"),
    "last_delta": (23, ">i"),
    "max_timestamp": (35, ">q"),
    "count": (57, ">i"),
}


def sealed(made: bytearray, **fields: int) -> bytes:
    """The batch with *fields* overwritten, its length as it is, and its checksum right."""
    made[8:12] = struct.pack(">i", len(made) - 12)
    for name, value in fields.items():
        at, form = FIELDS[name]
        made[at : at + struct.calcsize(form)] = struct.pack(form, value)
    made[17:21] = struct.pack(">I", google_crc32c.value(bytes(made[21:])))
    return bytes(made)


def read(
    data: bytes,
    *,
    start: int = 0,
    end: int | None = None,
    aborted: Sequence[AbortedTransaction] = (),
    how: Decoding | None = None,
) -> list[Row]:
    """What is decoded of *data*."""
    how = how or Decoding(with_headers=True)
    headers = batch_headers(data, PLACE)
    found: list[Row] = []
    for columns in decoded(
        data, headers, place=PLACE, start=start, end=end, aborted=aborted, how=how
    ):
        columns.validate(full=True)
        assert columns.schema.equals(how.schema)
        assert len(columns)
        found += rows_in(columns)
    return found


def rows_in(columns: pa.RecordBatch) -> list[Row]:
    """The records in *columns*."""
    return [
        Row(
            offset=row["offset"],
            timestamp=row["timestamp"],
            key=row["key"],
            value=row["value"],
            headers=[(entry["key"], entry["value"]) for entry in row.get("headers") or ()],
            timestamp_type=row["timestamp_type"],
        )
        for row in columns.to_pylist()
    ]
