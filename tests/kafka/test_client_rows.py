"""Columns become rows piece by piece, and what cannot be sent is found before anything is handed over."""

from __future__ import annotations

from itertools import islice

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.kafka.client_sender import (
    MAX_BYTES,
    MAX_ROWS,
    pieces,
    rows,
)
from headrace.kafka.send_precheck import OVERHEAD_BYTES, first_too_large
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


def test_a_slice_of_a_column_is_respected() -> None:
    """Rows before the slice do not come back."""
    batch = EncodedRecords(topic="t", values=pa.array([b"a", b"b", b"c"]).slice(1))

    assert [b"c"] == rows(batch, 1, 2).values


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
        (None, b"k", 0, None),
        (b"3", b"", 0, None),
    ] == list(zip(*rows(batch, 0, 3), strict=True))


def test_what_a_batch_lacks_its_rows_lack() -> None:
    """No key, the client's now, and no headers."""
    assert [(b"1", None, 0, None)] == list(zip(*rows(records([b"1"]), 0, 1)))  # noqa: B905 (without end)


def test_one_timestamp_is_that_of_every_row() -> None:
    """Also the first millisecond of 1970, which the client would take for now."""
    assert [1, 1] == list(islice(rows(records([b"1", b"2"], timestamps=0), 0, 2).timestamps, 2))


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
