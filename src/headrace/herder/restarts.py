"""Restarts of connectors and tasks: what a request restarts, and when a failure is followed by one."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Self

from headrace.config.connector_config import ConnectorConfig
from headrace.herder.answers import ConnectorStatus, Standing, State
from headrace.herder.requests import RestartRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class RestartPlan:
    """What is restarted: the connector itself, some of its tasks, or nothing."""

    connector: bool
    tasks: Sequence[int]
    status: ConnectorStatus
    """The status to answer."""

    @property
    def is_empty(self) -> bool:
        """Whether nothing is to be restarted."""
        return not self.connector and not self.tasks


def restart_plan(request: RestartRequest, status: ConnectorStatus) -> RestartPlan:
    """What *request* selects of a connector with this *status*."""
    connector = _is_chosen(status.connector, request)
    tasks = [
        each.task
        for each in status.tasks
        if each.task is not None and request.include_tasks and _is_chosen(each, request)
    ]
    shown = replace(
        status,
        connector=_restarting(status.connector) if connector else status.connector,
        tasks=[_restarting(each) if each.task in tasks else each for each in status.tasks],
    )
    return RestartPlan(connector=connector, tasks=tasks, status=shown)


def _is_chosen(standing: Standing, request: RestartRequest) -> bool:
    return not request.only_failed or standing.state is State.FAILED


def _restarting(standing: Standing) -> Standing:
    # With the trace of the failure that caused it, as in Kafka Connect.
    return replace(standing, state=State.RESTARTING)


LONGEST_SECONDS: Final = 300.0
"""The longest pause; a failure after a longer run counts as the first one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RestartPolicy:
    """How often in a row a connector is restarted automatically, and the first pause, which doubles."""

    attempts: int
    first_seconds: float

    @classmethod
    def of(cls, props: Mapping[str, str]) -> Self:
        """The policy in a connector's valid configuration."""
        config = ConnectorConfig.parse(props)
        return cls(
            attempts=config.restart_max_attempts, first_seconds=config.restart_backoff_ms / 1e3
        )

    def pause(self, failures: int) -> float | None:
        """Seconds until the next attempt after this many *failures* in a row; ``None`` for none. Pure."""
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
        """The connector was changed or restarted on request: count from zero."""
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
