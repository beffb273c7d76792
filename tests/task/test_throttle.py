"""The rate of a slot, against a clock that only waiting moves."""

from __future__ import annotations

import pytest

from headrace.task.poll_loop import Throttle
from task.loop import batch

EVEN = [0.1] * 9


class Paced:
    """A throttle of ten records a second. While it is *hurried*, waiting returns at once."""

    def __init__(self) -> None:
        self.now = 0.0
        self.hurried = False
        self._throttle = Throttle(10, clock=lambda: self.now)

    def pauses(self) -> list[float]:
        """Pace ten rows; how long each had to wait, in seconds."""
        waits: list[float] = []

        def wait(seconds: float) -> None:
            waits.append(seconds)
            self.now += 0.0 if self.hurried else seconds

        assert 10 == sum(map(len, self._throttle.paced(batch(*"0123456789", end=10), wait)))
        return waits


def test_records_keep_their_distance() -> None:
    """Across batches, too."""
    paced = Paced()

    assert pytest.approx([0.0, *EVEN]) == paced.pauses()
    assert pytest.approx([0.1, *EVEN]) == paced.pauses()


def test_a_source_that_was_idle_has_saved_nothing_up() -> None:
    """What comes after a pause is held to the rate like everything else."""
    paced = Paced()
    paced.pauses()
    paced.now += 60.0

    assert pytest.approx([0.0, *EVEN]) == paced.pauses()


def test_what_was_not_waited_for_is_still_owed() -> None:
    """A slot that is in a hurry does not get its records for nothing."""
    paced = Paced()
    paced.hurried = True
    paced.pauses()
    paced.hurried = False

    assert pytest.approx([1.0, *EVEN]) == paced.pauses()
