"""Runs that are ended together."""

from __future__ import annotations

from dataclasses import dataclass, field

from headrace.runtime.runs import LEAVE_SECONDS, stop_all


@dataclass
class Run:
    """A run that notes what is asked of it, in a list that several share."""

    name: str
    asked: list[str]
    waits: list[float | None] = field(default_factory=list[float | None])

    def start(self) -> None:
        """Nothing."""

    def silence(self) -> None:
        """Nothing."""

    def ask_to_stop(self) -> None:
        """Note it."""
        self.asked.append(f"stop {self.name}")

    def join(self, timeout_seconds: float | None = None) -> bool:
        """Note it; the run never ends."""
        self.asked.append(f"join {self.name}")
        self.waits.append(timeout_seconds)
        return False


def test_all_are_asked_before_one_is_waited_for() -> None:
    """So that they end at the same time."""
    asked = list[str]()

    stop_all([Run("a", asked), Run("b", asked)], grace=1.0)

    assert ["stop a", "stop b", "join a", "join b"] == asked


def test_they_share_one_deadline() -> None:
    """Two that hang take no longer than one, and no one is waited for when the time is over."""
    runs = [Run(name, []) for name in "abc"]
    now = iter([100.0, 100.0, 107.0, 200.0])

    stop_all(runs, grace=5.0, clock=lambda: next(now))

    whole = 5.0 + LEAVE_SECONDS
    assert [whole, whole - 7.0, 0.0] == [each.waits[0] for each in runs]
