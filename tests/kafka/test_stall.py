"""A queue that does not move, against a clock that the test sets."""

from __future__ import annotations

import pytest

from headrace.kafka.producer import Stall


@pytest.mark.parametrize(
    ("lengths", "longest"),
    [
        pytest.param([9, 8, 7, 6], 1.0, id="slow"),
        pytest.param([10, 10, 10, 10], 4.0, id="stuck"),
        pytest.param([9, 8, 8, 8], 2.0, id="stuck in the end"),
        pytest.param([10, 10, 3, 2], 3.0, id="stuck at first"),
    ],
)
def test_the_longest_time_without_movement_counts(lengths: list[int], longest: float) -> None:
    """Looked at once a second, with ten records in the queue at first."""
    now = 0.0
    stall = Stall(lambda: now)
    stall.begin(10)
    for length in lengths:
        now += 1.0
        stall.see(length)

    assert longest == stall.longest


def test_the_time_between_two_waits_does_not_count() -> None:
    """Whoever reads a slow source keeps no broker from answering."""
    now = 0.0
    stall = Stall(lambda: now)
    stall.begin(1)
    stall.see(0)
    now = 100.0
    stall.begin(1)
    stall.see(0)

    assert 0.0 == stall.longest
