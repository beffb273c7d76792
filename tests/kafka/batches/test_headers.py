"""Which batches there are in an answer, and which of them hold records for a reader."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.kafka.batches.errors import CorruptBatchError
from headrace.kafka.batches.headers import AbortedTransaction, batch_headers, next_offset
from record_batches import PLACE, Row, batch, read, rows, sealed

COMMIT, ABORT = 1, 0


def records(*offsets: int) -> list[Row]:
    """One for each of *offsets*."""
    return [Row(offset, 1000 + offset, b"k", b"%d" % offset, []) for offset in offsets]


def marker(offset: int, producer_id: int, kind: int, *, horizon: int = 0) -> bytes:
    """The batch with which the broker ends a transaction; *horizon* as its cleaner rewrites it later (KIP-534)."""
    row = Row(offset, 1000, struct.pack(">hh", 0, kind), struct.pack(">hi", 0, 0))
    made = bytearray(batch([row], producer_id=producer_id, transactional=True, attributes=0x20))
    if horizon:
        rewritten = batch([Row(offset, horizon, None, None), row._replace(offset=offset + 1)])
        (length,) = struct.unpack_from(">b", rewritten, 61)
        second = bytearray(rewritten[61 + 1 + (length >> 1) :])
        # Its offset delta, after the length, the attributes and the timestamp delta.
        second[second.index(b"\x02\x08")] = 0
        made[61:] = second
        made[22] |= 0x40
        made[27:35] = struct.pack(">q", horizon)
    return sealed(made)


def empty(base_offset: int, last_offset: int) -> bytes:
    """What a cleaner leaves of a batch when it keeps the producer's last sequence."""
    made = bytearray(batch(records(base_offset, last_offset), producer_id=4))[:61]
    return sealed(made, count=0)


@given(rows(), rows(max_size=3), st.data())
def test_a_batch_that_is_cut_off_is_not_there(
    whole: list[Row], cut: list[Row], data: st.DataObject
) -> None:
    """Wherever the answer ends within it, and the next request begins with it."""
    first = batch(whole)
    gap = whole[-1].offset + 1 - cut[0].offset
    second = batch([row._replace(offset=row.offset + max(gap, 0)) for row in cut])
    kept = data.draw(st.integers(0, len(second) - 1))

    headers = batch_headers(memoryview(first + second[:kept]), PLACE)

    assert [(0, len(first), len(whole))] == [
        (header.position, header.length, header.record_count) for header in headers
    ]
    assert whole[-1].offset + 1 == next_offset(headers, whole[0].offset)
    assert [] == batch_headers(second[:kept], PLACE)
    assert 77 == next_offset([], 77)


def test_a_header_says_what_the_batch_is() -> None:
    """The fields, by their names in the protocol."""
    made = batch(records(5, 9), compression=3, producer_id=4, transactional=True, attributes=0x48)

    (header,) = batch_headers(made, PLACE)

    assert (5, 9, 2, 2) == (
        header.base_offset,
        header.last_offset,
        header.record_count,
        header.magic,
    )
    assert (3, 1, True, False) == (
        header.compression,
        header.timestamp_type,
        header.is_transactional,
        header.is_control,
    )
    assert (1005, 1009, 4, len(made)) == (
        header.base_timestamp,
        header.max_timestamp,
        header.producer_id,
        header.end,
    )


def test_the_next_offset_is_after_empty_batches_too() -> None:
    """Otherwise a reader would wait for ever where a cleaner has removed the last records."""
    headers = batch_headers(batch(records(1, 2)) + empty(3, 90), PLACE)

    assert 91 == next_offset(headers, 1)


def test_empty_batches_and_markers_hold_no_records() -> None:
    """Whether or not transactions are told apart."""
    data = (
        batch(records(1, 2), producer_id=4, transactional=True)
        + marker(3, 4, COMMIT)
        + empty(4, 8)
        + batch(records(9))
    )

    assert [1, 2, 9] == [row.offset for row in read(data)]


def transactions() -> bytes:
    """Producers 1 and 2, interleaved: 1 aborts and then commits, 2 commits; 3 takes part in no transaction."""
    return b"".join(
        [
            batch(records(0, 1), producer_id=1, transactional=True),
            batch(records(2), producer_id=2, transactional=True),
            batch(records(3), producer_id=1, transactional=True),
            batch(records(4), producer_id=3),
            batch(records(5)),
            marker(6, 1, ABORT),
            batch(records(7), producer_id=1, transactional=True),
            marker(8, 2, COMMIT),
            batch(records(9), producer_id=2, transactional=True),
            marker(10, 1, COMMIT),
        ]
    )


@pytest.mark.parametrize(
    ("aborted", "expected"),
    [
        ([], [0, 1, 2, 3, 4, 5, 7, 9]),
        ([(1, 0)], [2, 4, 5, 7, 9]),
        ([(2, 9), (1, 0)], [2, 4, 5, 7]),
        ([(1, 3)], [0, 1, 2, 4, 5, 7, 9]),
        ([(8, 0)], [0, 1, 2, 3, 4, 5, 7, 9]),
    ],
)
def test_aborted_batches_are_left_out(aborted: list[tuple[int, int]], expected: list[int]) -> None:
    """From the transaction's first offset to its marker, those of its producer only."""
    found = read(transactions(), aborted=[AbortedTransaction(*one) for one in aborted])

    assert expected == [row.offset for row in found]


def test_a_marker_before_the_start_ends_its_transaction() -> None:
    """The list is about the answer, which may begin with batches that are not asked for."""
    found = read(transactions(), start=7, aborted=[AbortedTransaction(1, 0)])

    assert [7, 9] == [row.offset for row in found]


def test_what_is_after_the_end_is_not_looked_at() -> None:
    """Another reader may have asked for it, who will see that it is damaged."""
    damaged = bytearray(batch(records(5)))
    damaged[-1] ^= 1
    data = batch(records(1, 2)) + bytes(damaged) + batch(records(6))

    assert [1, 2] == [row.offset for row in read(data, end=5)]


def test_a_marker_with_a_delete_horizon_ends_its_transaction() -> None:
    """Its timestamp delta then has many bytes."""
    data = (
        batch(records(1), producer_id=1, transactional=True)
        + marker(2, 1, ABORT, horizon=1_800_000_000_000)
        + batch(records(3), producer_id=1, transactional=True)
    )

    found = read(data, aborted=[AbortedTransaction(1, 1)])

    assert [3] == [row.offset for row in found]


def test_a_marker_that_is_none_is_refused() -> None:
    """Guessing that a transaction goes on would leave out committed records."""
    made = bytearray(marker(2, 1, ABORT))
    made[61:] = made[61:65]
    data = batch(records(1), producer_id=1, transactional=True) + sealed(made)

    with pytest.raises(CorruptBatchError, match=r"at offset 2 .* no transaction marker"):
        read(data, aborted=[AbortedTransaction(1, 1)])
