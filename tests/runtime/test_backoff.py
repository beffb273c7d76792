"""Pauses before something is tried again."""

from __future__ import annotations

import threading
import time

from headrace.runtime.backoff import Backoff


class Waits(threading.Event):
    """An event that notes how long it was waited for, and waits for nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.seconds: list[float | None] = []

    def wait(self, timeout: float | None = None) -> bool:
        """Return at once."""
        self.seconds.append(timeout)
        return False


def test_each_pause_is_twice_the_one_before_it() -> None:
    """Up to ten seconds."""
    waits = Waits()
    backoff = Backoff(waits)

    for _ in range(8):
        backoff.pause()

    assert [0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 10.0, 10.0] == waits.seconds


def test_after_something_was_got_done_pauses_begin_again() -> None:
    """What failed before has nothing to do with what fails now."""
    waits = Waits()
    backoff = Backoff(waits)
    backoff.pause()
    backoff.pause()

    backoff.reset()
    backoff.pause()

    assert [0.25, 0.5, 0.25] == waits.seconds


def test_a_run_that_is_to_stop_does_not_wait() -> None:
    """However long the pause would be."""
    stopping = threading.Event()
    stopping.set()
    backoff = Backoff(stopping)
    began = time.monotonic()

    for _ in range(8):
        backoff.pause()

    assert time.monotonic() - began < 5.0
