"""Which parts of a connector a restart concerns (KIP-745); pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from headrace.runtime.herder.answers import ConnectorStatus, Standing
from headrace.runtime.herder.requests import RestartRequest
from headrace.runtime.herder.states import State


@dataclass(frozen=True, slots=True, kw_only=True)
class RestartPlan:
    """What is restarted: the connector itself, some of its tasks, or nothing at all."""

    connector: bool
    tasks: Sequence[int]
    status: ConnectorStatus
    """How everything is shown to whoever asked."""

    @property
    def is_empty(self) -> bool:
        """Whether nothing is to be restarted."""
        return not self.connector and not self.tasks


def restart_plan(request: RestartRequest, status: ConnectorStatus) -> RestartPlan:
    """What *request* chooses of a connector that is as *status* says."""
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
    return replace(standing, state=State.RESTARTING, version=None, trace=None)
