"""Pauses before something is tried again, each twice as long as the one before it."""

from __future__ import annotations

import threading

# A second micro-batch right after a lost one often loses for the same reason.
_FIRST_SECONDS = 0.25
_LAST_SECONDS = 10.0


class Backoff:
    """The pauses of one connector's run, cut short when it is *stopping*. Used by its thread."""

    def __init__(self, stopping: threading.Event) -> None:
        self._stopping = stopping
        self._seconds = 0.0

    def pause(self) -> None:
        """Wait before the next try."""
        self._seconds = min(max(self._seconds * 2, _FIRST_SECONDS), _LAST_SECONDS)
        self._stopping.wait(self._seconds)

    def reset(self) -> None:
        """Something has been got done: the next pause is a short one."""
        self._seconds = 0.0
