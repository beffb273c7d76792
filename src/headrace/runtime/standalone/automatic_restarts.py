"""Restarts of failed connectors without anybody's asking, with a pause that grows; off unless configured."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, Self

from headrace.runtime.settings.connector_config import ConnectorConfig

LONGEST_SECONDS: Final = 300.0
"""The longest pause; a run that lasted longer has not failed for the reason of the one before it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RestartPolicy:
    """How often in a row a connector is restarted by itself, and the first pause, which doubles."""

    attempts: int
    first_seconds: float

    @classmethod
    def of(cls, props: Mapping[str, str]) -> Self:
        """What a connector's valid configuration says."""
        config = ConnectorConfig.parse(props)
        return cls(
            attempts=config.restart_max_attempts, first_seconds=config.restart_backoff_ms / 1e3
        )

    def pause(self, failures: int) -> float | None:
        """Seconds until the next attempt after so many *failures* in a row; ``None`` for none. Pure."""
        if failures > self.attempts:
            return None
        return min(self.first_seconds * 2.0 ** (failures - 1), LONGEST_SECONDS)


class AutomaticRestarts:
    """Counts the failures of each connector. Used by the herder's thread."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._policies: dict[str, tuple[RestartPolicy, float]] = {}
        self._failures: dict[str, int] = {}

    def begins(self, name: str, props: Mapping[str, str]) -> None:
        """A run of the connector begins, with this configuration."""
        self._policies[name] = (RestartPolicy.of(props), self._clock())

    def forget(self, name: str) -> None:
        """Somebody has changed or restarted the connector: count anew."""
        self._failures.pop(name, None)
        self._policies.pop(name, None)

    def attempts(self, name: str) -> int:
        """How often in a row the connector is restarted at most."""
        return self._policies[name][0].attempts if name in self._policies else 0

    def pause_after_failure(self, name: str) -> float | None:
        """Seconds until the connector, which has failed, is to be restarted; ``None`` for never."""
        if name not in self._policies:
            return None
        policy, began = self._policies[name]
        lasted = self._clock() - began
        self._failures[name] = 1 if lasted > LONGEST_SECONDS else self._failures.get(name, 0) + 1
        return policy.pause(self._failures[name])
