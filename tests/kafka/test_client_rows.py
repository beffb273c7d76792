"""Columns become rows piece by piece, and what cannot be sent is found before anything is handed over."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.kafka.client_rows import (
    MAX_BYTES,
    MAX_ROWS,
    OVERHEAD_BYTES,
    MessageRows,
    first_too_large,
    needs_rows,
    pieces,
    rows,
)
from headrace.kafka.sender import EncodedRecords


def records(values: list[bytes | None], **columns: object) -> EncodedRecords:
    """A batch for topic t."""
    return EncodedRecords(topic="t", values=pa.array(values, pa.binary()), **columns)  # type: ignore[arg-type]


@given(st.integers(0, 3 * MAX_ROWS), st.integers(1, 50_000))
def test_pieces_cover_every_row_once(count: int, size: int) -> None:
    """Pieces follow each other without a gap, each within its bounds."""
    values = pa.array([b"x" * size] * min(count, 200), pa.binary())
    batch = EncodedRecords(topic="t", values=values)
    bounds = list(pieces(batch, len(batch)))

    assert list(range(len(batch))) == [row for start, stop in bounds for row in range(start, stop)]
    assert all((stop - start) * size <= max(MAX_BYTES, size) for start, stop in bounds)


def test_rows_are_used_again() -> None:
    """The second piece overwrites the first, and keys do not linger in rows that have none."""
    made = MessageRows()
    keyed = records([b"1", None], keys=pa.array([b"k", None], pa.large_binary()))

    assert [{"value": b"1", "key": b"k"}, {"value": None, "key": None}] == made.filled(keyed, 0, 2)
    assert [{"value": b"2"}] == made.filled(records([b"2"]), 0, 1)
    assert [{"value": None, "key": None}] == made.filled(keyed, 1, 2)


def test_a_slice_of_a_column_is_respected() -> None:
    """Rows before the slice do not come back."""
    batch = EncodedRecords(topic="t", values=pa.array([b"a", b"b", b"c"]).slice(1))

    assert [{"value": b"c"}] == MessageRows().filled(batch, 1, 2)


def test_headers_and_timestamps_need_single_rows() -> None:
    """The client's batch call takes neither."""
    assert not needs_rows(records([b"1"]))
    assert needs_rows(records([b"1"], timestamps=5))
    assert needs_rows(records([b"1"], headers=[[]]))


def test_a_row_has_everything() -> None:
    """Value, key, time and headers stay together; no time and times before 1970 are the client's now."""
    batch = records(
        [b"1", None, b"3"],
        keys=pa.array([None, b"k", b""]),
        timestamps=pa.array([7, None, -1], pa.int64()),
        headers=[[("h", b"x"), ("h", None)], [], []],
    )

    assert [
        (b"1", None, 7, [("h", b"x"), ("h", None)]),
        (None, b"k", 0, []),
        (b"3", b"", 0, []),
    ] == list(rows(batch, 0, 3))


@pytest.mark.parametrize(("over", "expected"), [(0, None), (1, 2)])
def test_the_first_row_that_does_not_fit_is_found(over: int, expected: int | None) -> None:
    """Key and value count together, with room for what surrounds them."""
    limit = 1000 + OVERHEAD_BYTES
    keys = pa.array([b"k" * 900, b"", b"k" * (500 + over)])

    assert expected == first_too_large(records([b"v" * 100, None, b"v" * 500], keys=keys), limit)


def test_headers_count_too() -> None:
    """A small value with a large header does not fit either."""
    batch = records([b"", b""], headers=[[], [("h", b"x" * 1000)]])

    assert 1 == first_too_large(batch, 1000)


def test_an_empty_batch_fits() -> None:
    """No rows, no pieces, no refusal."""
    assert first_too_large(records([]), 1000) is None
    assert [] == list(pieces(records([]), 0))
