"""A worker that is asked to stop, from wherever."""

from __future__ import annotations

import sys
import threading
from dataclasses import dataclass
from types import FrameType, SimpleNamespace
from typing import Any

from headrace.runtime.runs import Worker
from headrace.runtime.services import Timing

PATIENCE_SECONDS = 5.0


@dataclass
class Run:
    """A connector that runs until it is asked to stop."""

    name: str = "c"
    failure: Exception | None = None
    asked: bool = False

    def join(self, timeout_seconds: float | None = None) -> bool:
        """Whether it has ended."""
        if not self.asked and timeout_seconds:
            threading.Event().wait(0.001)
        return self.asked

    def ask_to_stop(self) -> None:
        """End."""
        self.asked = True


def worker() -> Worker:
    """A worker of one connector."""
    services: Any = SimpleNamespace(timing=Timing())
    made = Worker(services)
    connector: Any = Run()
    made._runs.append(connector)
    return made


def wait_interrupted_at(step: int) -> bool:
    """Let a signal's handler ask for the stop at that step of ``wait``; whether ``wait`` came to its end.

    Python runs handlers between any two steps of the thread that is interrupted, whatever it holds then.
    """
    waiting, left = worker(), [step]

    def trace(frame: FrameType, event: str, _: object) -> Any:  # noqa: ANN401 (as settrace has it)
        if event == "line":
            left[0] -= 1
            if left[0] == 0:
                waiting.ask_to_stop()
        return trace

    def wait() -> None:
        sys.settrace(trace)
        try:
            waiting.wait()
        finally:
            sys.settrace(None)

    thread = threading.Thread(target=wait, daemon=True)
    thread.start()
    thread.join(PATIENCE_SECONDS)
    return not thread.is_alive()


def test_a_stop_may_be_asked_for_wherever_the_wait_is_interrupted() -> None:
    """A lock that the interrupted thread holds would never be free for its own handler."""
    for step in range(1, 60):
        assert wait_interrupted_at(step), step


def test_a_stop_that_comes_before_the_wait_counts() -> None:
    """A signal may be early."""
    early = worker()
    early.ask_to_stop()

    assert {} == early.wait()
