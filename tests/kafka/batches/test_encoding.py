"""Columns into record batches: whatever is written is what others read, in batches of any size."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.record.memory_records import MemoryRecords

from column_batches import columns, logged, numbered
from headrace.kafka.batches.compression import Compression
from headrace.kafka.batches.encoding import (
    Encoding,
    RecordTooLargeError,
    encoded,
    record_columns,
)
from headrace.kafka.batches.header_sections import NO_HEADERS, section, sections_of_rows
from headrace.kafka.batches.headers import batch_headers
from record_batches import COMPRESSIONS, GZIP, PLACE, ZSTD, Row, read, rows

encodings = st.builds(
    Encoding,
    compression=st.builds(
        Compression, st.sampled_from(COMPRESSIONS), st.none() | st.integers(1, 9)
    ),
    batch_bytes=st.sampled_from([1, 100, 1000, 20_000]),
    batch_rows=st.sampled_from([1, 2, 7, 1000]),
)
any_times = st.lists(st.integers(-(2**63), 2**63 - 1) | st.just(-1), min_size=1, max_size=20)


@given(rows(), encodings, st.booleans())
def test_what_is_encoded_is_read(written: list[Row], how: Encoding, large: bool) -> None:  # noqa: FBT001 (drawn)
    """Any keys, values, headers and times, in batches of any size, in order."""
    batches = list(encoded(columns(written, large=large), how))

    assert numbered(written) == read(logged(batches))
    assert all(each.record_count <= how.batch_rows for each in batches)


@given(rows(), st.integers(0, 40), encodings)
def test_columns_may_lie_in_several_places(written: list[Row], cut: int, how: Encoding) -> None:
    """As they do when they were decoded one after the other; nothing is copied to bring them together."""
    values, keys = (
        pa.chunked_array([each.slice(0, cut), each.slice(cut)])
        for each in (
            pa.array([row.value for row in written], pa.binary()),
            pa.array([row.key for row in written], pa.binary()),
        )
    )
    whole = columns(written)
    parts = replace(record_columns(whole.timestamps, values, keys, b""), headers=whole.headers)

    batches = encoded(parts, how)

    assert numbered(written) == read(logged(batches))


@given(rows(), encodings, st.sampled_from([0, GZIP, ZSTD]))
def test_another_client_reads_it(written: list[Row], how: Encoding, codec: int) -> None:
    """kafka-python checks lengths and checksums on its own; of the compressions, the standard library's and zstd."""
    how = replace(how, compression=Compression(codec))
    records = MemoryRecords(logged(list(encoded(columns(written), how))))
    found: list[Row] = []
    while records.has_next():
        batch = records.next_batch()
        assert batch is not None
        assert batch.validate_crc()
        found += [
            Row(each.offset, each.timestamp, each.key, each.value, [*map(tuple, each.headers)])
            for each in batch
        ]

    assert numbered(written) == found


@given(rows(), st.sampled_from([1, 100, 1000, 20_000]))
def test_batches_are_filled(written: list[Row], batch_bytes: int) -> None:
    """None has more bytes than asked for, but for a single record, and no two would fit into one with room to spare."""
    batches = list(encoded(columns(written), Encoding(batch_bytes=batch_bytes)))

    assert all(len(each.data) <= batch_bytes or each.record_count == 1 for each in batches)
    # What is not known before the cut: at most as many bytes as the varints of a record may have.
    spare = 16
    for one, other in pairwise(batches):
        counts = one.record_count + other.record_count
        assert len(one.data) + len(other.data) + spare * counts > batch_bytes


@given(any_times)
def test_any_time_is_written(times: list[int]) -> None:
    """-1 is none, and sums of 64 bits wrap around as Java's do."""
    written = [Row(at, time, None, b"v") for at, time in enumerate(times)]

    data = logged(list(encoded(columns(written), Encoding())))

    assert times == [row.timestamp for row in read(data)]
    assert [max(times)] == [header.max_timestamp for header in batch_headers(data, PLACE)]


@pytest.mark.parametrize("size", [0, 1, 11, 12, 13, 63, 64, 8191, 8192, 1 << 20, 3 << 20])
def test_lengths_of_every_width_are_written(size: int) -> None:
    """Of keys, values and headers, and so of records."""
    written = [
        Row(0, 0, b"k" * size, None, []),
        Row(1, 0, None, b"v" * size, []),
        Row(2, 0, None, b"", [("h", b"x" * size), ("n" * size, None)]),
        Row(3, 0, b"key", b"value", []),
    ]
    how = Encoding(batch_bytes=1 << 30, max_bytes=1 << 30)

    (batch,) = encoded(columns(written), how)

    assert written == read(logged([batch]))


def test_many_rows_are_laid_out_in_groups() -> None:
    """More than are laid out at once: deltas of offsets get longer, and begin again with each batch."""
    written = [Row(at, at * 7 % 1000, b"%d" % at, b"v" * (at % 40)) for at in range(50_000)]

    batches = list(encoded(columns(written), Encoding(batch_bytes=400_000)))

    assert numbered(written) == read(logged(batches))
    assert {5, 6} >= {len(batches)}


def test_no_rows_make_no_batch() -> None:
    """An empty batch would be refused."""
    assert [] == list(encoded(columns([]), Encoding()))


@pytest.mark.parametrize("keys", [None, pa.nulls(2, pa.binary())])
def test_records_without_keys(keys: pa.BinaryArray | None) -> None:
    """No column of keys, or one of nulls, are the same."""
    values = pa.array([b"a", None])
    found = record_columns(np.array([1, 2]), values, keys, NO_HEADERS)

    (batch,) = encoded(found, Encoding())

    assert [Row(0, 1, None, b"a", []), Row(1, 2, None, None, [])] == read(logged([batch]))


def test_a_record_that_is_too_large_is_named() -> None:
    """By its row, after the batches before it; what counts is its size as it is sent."""
    written = [Row(at, 0, None, b"x" * size) for at, size in enumerate([10, 10, 5_000, 10])]
    how = Encoding(batch_bytes=50, max_bytes=2_000)

    batches = encoded(columns(written), how)
    assert [1, 1] == [next(batches).record_count for _ in range(2)]
    with pytest.raises(RecordTooLargeError) as caught:
        next(batches)

    assert (2, 5_000) < (caught.value.row, caught.value.size)
    packed = encoded(
        columns(written), Encoding(batch_bytes=50, max_bytes=2_000, compression=Compression(4))
    )
    assert numbered(written) == read(logged(list(packed)))


@pytest.mark.parametrize("compression", COMPRESSIONS[1:])
def test_what_does_not_become_smaller_is_not_compressed(compression: int) -> None:
    """So that no batch gets larger than the limit by being compressed."""
    written = [Row(0, 0, None, b"ab"), Row(1, 0, b"k", b"c")]

    (batch,) = encoded(columns(written), Encoding(compression=Compression(compression)))

    assert numbered(written) == read(logged([batch]))
    assert [0] == [header.compression for header in batch_headers(logged([batch]), PLACE)]


@given(st.lists(st.tuples(st.text(max_size=30), st.none() | st.binary(max_size=30)), max_size=4))
def test_the_same_headers_in_all_rows_are_written_once(headers: list[tuple[str, bytes | None]]):
    """They are bytes for all rows, however many there are, and not a column."""
    found = sections_of_rows([list(headers) for _ in range(3)])

    assert section(headers) == found
    values = pa.array([b"a", b"b", None])
    (batch,) = encoded(record_columns(np.zeros(3, np.int64), values, None, found), Encoding())
    assert [headers] * 3 == [row.headers for row in read(logged([batch]))]


@pytest.mark.parametrize("size", [0, 1, 2, 3, 4, 7, 8, 9, 40])
@pytest.mark.parametrize("rows_of_batch", [1, 2, 7])
@pytest.mark.parametrize("has_keys", [False, True])
def test_the_same_headers_end_each_record_of_each_batch(
    size: int, rows_of_batch: int, *, has_keys: bool
) -> None:
    """Short ones share their place with what begins the next record, or with the header of the next batch."""
    headers = [("h", b"x" * (size - 1))] if size else []
    values = pa.array([None, *(b"v" * at for at in range(1, 20))], pa.binary())
    keys = pa.array([b"k%d" % at if at % 3 else None for at in range(20)], pa.binary())
    found = record_columns(np.arange(20) * 70, values, keys if has_keys else None, section(headers))

    batches = list(encoded(found, Encoding(batch_rows=rows_of_batch)))

    rows = [
        Row(at % rows_of_batch, at * 70, keys[at].as_py() if has_keys else None, each, headers)
        for at, each in enumerate(values.to_pylist())
    ]
    assert -(-20 // rows_of_batch) == len(batches)
    assert rows == [
        row._replace(offset=row.offset % rows_of_batch) for row in read(logged(batches))
    ]


@given(st.lists(st.lists(st.tuples(st.text(max_size=8), st.none() | st.binary()), max_size=3)))
def test_headers_by_row_are_those_by_column(headers: list[list[tuple[str, bytes | None]]]) -> None:
    """And each row's are those that it has alone."""
    found = sections_of_rows(headers)

    rows = [found] * len(headers) if isinstance(found, bytes) else found.to_pylist()
    assert [section(each) for each in headers] == rows
    assert NO_HEADERS == sections_of_rows(None)
