"""Restarts of connectors and tasks: what a request restarts, and when a failure is followed by one."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from typing import Final, Self

from headrace.config.connector_config import ConnectorConfig
from headrace.herder.answers import ConnectorStatus, State, StateInfo, TargetState
from headrace.herder.errors import NO_LEADER, ConflictError, NotFoundError, ServerError
from headrace.herder.queries import ConnectorQueries
from headrace.herder.request_queue import RequestQueue
from headrace.herder.requests import RestartRequest
from headrace.herder.services import LocalServices
from headrace.herder.statuses import HerderStatuses
from headrace.runtime.runs import LEAVE_SECONDS
from headrace.storage.protocols import StoredConnector

# A distributed worker's message about restarts.
_UNKNOWN_ON_RESTART: Final = "Unknown connector: {}"


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


def _is_chosen(info: StateInfo, request: RestartRequest) -> bool:
    return not request.only_failed or info.state is State.FAILED


def _restarting(info: StateInfo) -> StateInfo:
    # With the trace of the failure that caused it, as in Kafka Connect.
    return replace(info, state=State.RESTARTING)


class RestartRequests:
    """Requests to restart a connector or a task. Any thread may call.

    On the herder's thread, *require_owner* raises where another worker has to be asked, and *start_again* starts a new run of a
    connector; see ``Coordination.require_owner`` and ``Reconciler.restart``.
    """

    def __init__(
        self,
        local: LocalServices,
        queue: RequestQueue,
        queries: ConnectorQueries,
        *,
        require_owner: Callable[[str], None],
        start_again: Callable[[str, TargetState], Future[Exception | None]],
    ) -> None:
        self._require_owner = require_owner
        self._local = local
        self._queue = queue
        self._queries = queries
        self._start_again = start_again
        self._statuses = HerderStatuses(local)

    def restart(self, request: RestartRequest) -> ConnectorStatus | None:
        """Restart the parts that *request* selects; returns their states when it has flags.

        Without flags this returns when the connector has started, and raises ``ServerError`` when it cannot start.
        """
        has_flags = request.include_tasks or request.only_failed

        def act() -> tuple[ConnectorStatus, Future[Exception | None] | None]:
            stored = self._queries.stored(request.name, unknown=_UNKNOWN_ON_RESTART)
            self._require_owner(request.name)
            plan = restart_plan(request, self._queries.status(request.name))
            if plan.is_empty:
                return plan.status, None
            return plan.status, self._restart(stored, connector=plan.connector, tasks=plan.tasks)

        status, started = self._queue.ask(
            f"restarting connector {request.name}", act, connector=request.name
        )
        if has_flags:
            return status
        if started is not None:
            self._await_start(request.name, started)
        return None

    def restart_task(self, name: str, task: int) -> None:
        """Restart a task, and with it the run that it is a part of.

        Raises ``ConflictError`` for a STOPPED connector, which has no tasks, and ``NotFoundError`` for an
        unknown task.
        """

        def act() -> None:
            stored = self._queries.stored(name, unknown=_UNKNOWN_ON_RESTART)
            self._require_owner(name)
            if task >= 0 and stored.target_state == TargetState.STOPPED:
                # Distributed mode's answer: a task without a worker has no leader there.
                raise ConflictError(NO_LEADER)
            if task not in (each.id.task for each in self._queries.tasks(name)):
                raise NotFoundError(f"Unknown task: {name}-{task}")
            self._restart(stored, connector=False, tasks=[task])

        self._queue.ask(f"restarting task {name}-{task}", act, connector=name)

    def _await_start(self, name: str, started: Future[Exception | None]) -> None:
        """Raise ``ServerError`` when the connector could not start; a start that takes long continues."""
        try:
            failure = started.result(self._local.grace + LEAVE_SECONDS)
        except TimeoutError:
            return
        if failure is not None:
            raise ServerError(f"Failed to start connector: {name}") from failure

    def _restart(
        self, stored: StoredConnector, *, connector: bool, tasks: Sequence[int]
    ) -> Future[Exception | None]:
        target = TargetState(stored.target_state)
        if target is TargetState.RUNNING:
            self._statuses.restarting(stored.name, connector=connector, tasks=tasks)
        return self._start_again(stored.name, target)


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
