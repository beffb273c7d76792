"""Who is told how a connector's run goes on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol


class RunWatcher(Protocol):
    """Hears from one run, on the run's thread; returns soon and never raises."""

    def has_tasks(self, configs: Sequence[Mapping[str, str]]) -> None:
        """The connector has these tasks now, each with its configuration, secrets resolved."""
        ...

    def has_ended(self, failure: Exception | None) -> None:
        """The run is over: nothing of it writes any more. Told once, last of all."""
        ...


class NobodyWatches:
    """A :class:`RunWatcher` for runs that somebody joins."""

    def has_tasks(self, configs: Sequence[Mapping[str, str]]) -> None:
        """Nothing."""

    def has_ended(self, failure: Exception | None) -> None:
        """Nothing."""
