"""Which parts of a connector a restart concerns."""

from __future__ import annotations

from dataclasses import replace

import pytest

from headrace.herder.answers import ConnectorStatus, State, StateInfo
from headrace.herder.requests import RestartRequest
from headrace.herder.restarts import restart_plan


@pytest.mark.parametrize(
    ("include_tasks", "only_failed", "connector", "tasks"),
    [
        (False, False, True, []),
        (True, False, True, [0, 1]),
        (False, True, False, []),
        (True, True, False, [1]),
    ],
)
def test_flags_choose_what_is_restarted(
    include_tasks: bool,  # noqa: FBT001
    only_failed: bool,  # noqa: FBT001
    connector: bool,  # noqa: FBT001
    tasks: list[int],
) -> None:
    """Of a connector that runs, with a task that has failed; what is chosen shows as RESTARTING, trace and all."""
    status = ConnectorStatus(
        name="c",
        connector=StateInfo(state=State.RUNNING, worker_id="w", version="1"),
        tasks=[
            StateInfo(task=0, state=State.RUNNING, worker_id="w", version="1"),
            StateInfo(task=1, state=State.FAILED, worker_id="w", trace="it broke"),
        ],
        type="source",
    )
    asked = RestartRequest(name="c", include_tasks=include_tasks, only_failed=only_failed)
    plan = restart_plan(asked, status)

    assert (connector, tasks) == (plan.connector, plan.tasks)
    assert plan.is_empty is not (connector or bool(tasks))
    restarting = replace(status.connector, state=State.RESTARTING)
    assert (restarting if connector else status.connector) == plan.status.connector
    for task, shown in zip(status.tasks, plan.status.tasks, strict=True):
        chosen = replace(task, state=State.RESTARTING)
        assert (chosen if task.task in tasks else task) == shown
