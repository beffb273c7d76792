"""Record batches into columns: what was written is what is read."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.kafka.batches.decoding import Decoding, decoded
from headrace.kafka.batches.headers import batch_headers
from record_batches import COMPRESSIONS, PLACE, Row, batch, read, rows, rows_in, sealed


@given(rows(), st.integers(0, 30), st.sampled_from(COMPRESSIONS))
def test_what_was_written_is_read(written: list[Row], cut: int, compression: int) -> None:
    """Any keys, values, headers, times and gaps, in two batches, however many are decoded together."""
    batches = [part for part in (written[:cut], written[cut:]) if part]
    data = b"".join(batch(part, compression=compression) for part in batches)

    assert written == read(data)
    assert written == read(data, how=Decoding(with_headers=True, group_bytes=64))


@given(rows(), st.data())
def test_only_the_asked_offsets_are_read(written: list[Row], data: st.DataObject) -> None:
    """A batch may begin before the first and end after the last of them."""
    offsets = st.sampled_from([row.offset for row in written])
    start = data.draw(offsets)
    end = data.draw(st.none() | offsets.map(lambda offset: offset + 1))

    expected = [row for row in written if start <= row.offset and (end is None or row.offset < end)]
    assert expected == read(batch(written), start=start, end=end)


@given(rows())
def test_headers_are_left_out_when_no_one_asks(written: list[Row]) -> None:
    """The other columns are the same."""
    expected = [row._replace(headers=[]) for row in written]

    assert expected == read(batch(written), how=Decoding())


@given(rows())
def test_keys_and_values_that_no_one_needs_are_null(written: list[Row]) -> None:
    """The other columns are the same."""
    data = batch(written)
    values = [row._replace(headers=[], key=None) for row in written]
    neither = [row._replace(value=None) for row in values]

    assert values == read(data, how=Decoding(without=frozenset({"key"})))
    assert neither == read(data, how=Decoding(without=frozenset({"key", "value"})))


@given(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=20))
def test_any_time_is_read(times: list[int]) -> None:
    """Deltas of up to ten bytes; Java's sums of 64 bits wrap around, and so do these."""
    base = times[0]
    deltas = [(time - base + 2**63) % 2**64 - 2**63 for time in times]
    written = [Row(at, base % 3 + delta, b"k", None, []) for at, delta in enumerate(deltas)]
    made = bytearray(batch(written))
    made[27:35] = struct.pack(">q", base)

    assert times == [row.timestamp for row in read(sealed(made))]


@pytest.mark.parametrize("size", [0, 1, 63, 64, 8191, 8192, 1 << 20, 3 << 20])
def test_lengths_of_every_width_are_read(size: int) -> None:
    """Of keys, values and headers, and so of records."""
    written = [
        Row(0, 0, b"k" * size, None, []),
        Row(1, 0, None, b"v" * size, []),
        Row(2, 0, None, b"", [("h", b"x" * size), ("n" * size, None)]),
        Row(3, 0, b"key", b"value", []),
    ]

    assert written == read(batch(written))


@pytest.mark.parametrize("counts", [[2000], [0, 3, 300, 1] * 20, [1] * 16, [2] * 17, [5] * 40])
def test_headers_in_any_number_are_read(counts: list[int]) -> None:
    """Few on all records, and many on some."""
    written = [
        Row(at, at, b"k", b"v", [(f"h{number % 7}", b"%d" % number) for number in range(count)])
        for at, count in enumerate(counts)
    ]

    assert written == read(batch(written) + batch([Row(9000, 0, None, None, [("h", None)])]))[:-1]


def test_the_broker_s_time_counts_for_every_record() -> None:
    """With log-append time, what the producer wrote in the records is not it (KIP-32)."""
    written = [Row(at, 1000 + at, b"k", b"v", []) for at in range(3)]
    data = batch(written, attributes=0x08, fields={"max_timestamp": 7777})

    assert [row._replace(timestamp=7777, timestamp_type=1) for row in written] == read(data)


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        (b"\xff\xfe", "\ufffd\ufffd"),
        (b"a\xe2\x82", "a\ufffd"),
        (b"\xed\xa0\x80z", "\ufffdz"),
        ("größe".encode(), "größe"),
    ],
)
def test_keys_of_headers_are_text_as_java_decodes_it(written: bytes, expected: str) -> None:
    """What is not UTF-8 becomes the replacement character, and is no error."""
    stand_in = "?" * len(written)
    made = batch([Row(0, 0, None, None, [("before", b"1"), (stand_in, b"2")])])
    made = sealed(bytearray(made.replace(stand_in.encode(), written)))

    assert [("before", b"1"), (expected, b"2")] == read(made)[0].headers


def test_columns_do_not_share_memory_with_the_answer() -> None:
    """Its buffer may be used for the next one."""
    written = [Row(at, at, b"key" * 9, b"value" * 99, [("h", b"x")]) for at in range(50)]
    data = bytearray(batch(written))
    headers = batch_headers(memoryview(data), PLACE)
    how = Decoding(with_headers=True)

    (columns,) = decoded(memoryview(data), headers, place=PLACE, start=0, how=how)
    data[:] = bytes(len(data))

    assert written == rows_in(columns)


def test_memory_does_not_grow_with_the_answer() -> None:
    """What is handed out at a time is bounded, however many batches there are and however well they compress."""
    for compression in COMPRESSIONS:
        parts = [
            batch([Row(at, 0, b"k", bytes(10_000))], compression=compression) for at in range(100)
        ]
        data = b"".join(parts)
        headers = batch_headers(data, PLACE)
        how = Decoding(group_bytes=50_000)

        sizes = [one.nbytes for one in decoded(data, headers, place=PLACE, start=0, how=how)]

        assert 1_000_000 < sum(sizes)
        assert max(sizes) < 100_000
