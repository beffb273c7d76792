"""Waiting in tests: for a condition, with a deadline, and never by a fixed sleep."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

_LOOK_SECONDS = 0.02


def until(
    condition: Callable[[], object],
    *,
    seconds: float = 60.0,
    clock: Callable[[], float] = time.monotonic,
) -> None:
    """Return when *condition* is true; raises ``AssertionError`` when it is not within *seconds*."""
    deadline = clock() + seconds
    ticks = threading.Event()
    while not condition():
        if clock() > deadline:
            raise AssertionError(f"What was waited for did not happen within {seconds:g} s.")
        ticks.wait(_LOOK_SECONDS)
