"""Columns of numbers as Java writes them."""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.java.numbers import java_double, java_float, java_floats
from project.sampling import drawn

EDGES = [
    *(0.0, -0.0, 1e-3, 1e7, 9999999.0, 1e15, 1e23, 2e-44, 9.99e-4, 0.00012, 5e-324, 2e-323),
    *(2.2250738585072014e-308, 2.225073858507201e-308, 1.7976931348623157e308),
    *(math.nan, math.inf, -math.inf, 1e14, 123456789012345.0, 9007199254740993.0, 3e-5, -3e20),
]
SINGLE_EDGES = [0.5**149, 0.5**148, 0.5**126, 0.5**127, 3.4028234663852886e38, 16777216.0]


def of_bits(bits: int) -> float:
    """The number of 64 *bits*."""
    return struct.unpack("d", bits.to_bytes(8, "little"))[0]


def single_of_bits(bits: int) -> float:
    """The number of 32 *bits*."""
    return struct.unpack("f", bits.to_bytes(4, "little"))[0]


DOUBLES = st.integers(0, 2**64 - 1).map(of_bits) | st.floats() | st.sampled_from(EDGES)
SINGLES = st.integers(0, 2**32 - 1).map(single_of_bits) | st.sampled_from(SINGLE_EDGES)
POWERS = st.builds(lambda n, p: float(f"{n}e{p}"), st.integers(-999, 999), st.integers(-330, 306))


@settings(max_examples=drawn(300))
@given(st.lists(st.none() | DOUBLES | POWERS, max_size=12), st.integers(0, 3))
def test_a_column_of_doubles_is_written_as_each_of_them(
    numbers: Sequence[float | None], start: int
) -> None:
    """Whatever their bits, slices and nulls included."""
    column = pa.array(numbers, pa.float64()).slice(start)

    alone = [None if row is None else java_double(row) for row in column.to_pylist()]

    assert alone == java_floats(column).to_pylist()


@settings(max_examples=drawn(300))
@given(st.lists(st.none() | SINGLES, max_size=12))
def test_a_column_of_floats_is_written_as_each_of_them(numbers: Sequence[float | None]) -> None:
    """Whatever their bits."""
    column = pa.array(numbers, pa.float32())

    alone = [None if row is None else java_float(row) for row in column.to_pylist()]

    assert alone == java_floats(column).to_pylist()


@pytest.mark.parametrize("kind", [pa.float32(), pa.float64()])
def test_what_is_empty_or_null_stays_so(kind: pa.DataType) -> None:
    """In a column of text."""
    reported = [java_floats(pa.array(rows, kind)) for rows in ([], [None, None])]

    assert [pa.array([], pa.utf8()), pa.array([None, None], pa.utf8())] == reported
