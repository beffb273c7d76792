"""Waiting for a condition, with a deadline."""

from __future__ import annotations

import time
from collections.abc import Callable

# Often enough that nobody notices, rarely enough that it costs nothing.
LOOK_SECONDS = 0.05


def until(condition: Callable[[], bool], *, seconds: float) -> bool:
    """Wait until *condition* is true, at most *seconds*; tells whether it became true."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(LOOK_SECONDS)
    return True
