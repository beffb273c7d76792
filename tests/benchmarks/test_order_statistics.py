"""Intervals of medians."""

from __future__ import annotations

import pytest
from benchmarks.order_statistics import median_interval
from hypothesis import given
from hypothesis import strategies as st


def test_seven_values_need_their_extremes():
    """With seven pairs, 95 % are only covered by the smallest and the largest: 1 - 2/128."""
    found = median_interval([3, 1, 2, 7, 5, 6, 4])

    assert (4, 1, 7, 0.984375) == (found.median, found.low, found.high, found.coverage)


def test_more_values_make_it_narrower():
    """With nine values the second from each side is enough: 1 - 2·10/512."""
    found = median_interval(range(1, 10))

    assert (2, 8, 0.9609375) == (found.low, found.high, found.coverage)


def test_too_few_values_say_how_little_they_cover():
    """Three values cannot cover 95 %; what they do cover is shown."""
    assert 0.75 == median_interval([1, 2, 3]).coverage


def test_one_value_covers_nothing():
    """One value is its own median and has no spread."""
    found = median_interval([2.0])

    assert (2.0, 2.0, 2.0, 0.0) == (found.median, found.low, found.high, found.coverage)


def test_no_values_are_refused():
    """There is no median of nothing."""
    with pytest.raises(ValueError, match="at least one"):
        median_interval([])


@given(st.lists(st.floats(-1e9, 1e9), min_size=1))
def test_median_lies_inside(values: list[float]):
    """The interval holds the median, and both ends are among the values."""
    found = median_interval(values)

    assert found.low <= found.median <= found.high
    assert {found.low, found.high} <= set(values)
