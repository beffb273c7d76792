"""Which parts of a connector a restart concerns."""

from __future__ import annotations

import pytest

from headrace.runtime.herder.answers import ConnectorStatus, Standing
from headrace.runtime.herder.requests import RestartRequest
from headrace.runtime.herder.states import State
from headrace.runtime.restarts import restart_plan


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
    """Of a connector that runs, with a task that has failed; what is chosen shows as RESTARTING."""
    status = ConnectorStatus(
        name="c",
        connector=Standing(state=State.RUNNING, worker_id="w", version="1"),
        tasks=[
            Standing(task=0, state=State.RUNNING, worker_id="w", version="1"),
            Standing(task=1, state=State.FAILED, worker_id="w", trace="it broke"),
        ],
        type="source",
    )
    asked = RestartRequest(name="c", include_tasks=include_tasks, only_failed=only_failed)
    plan = restart_plan(asked, status)

    assert (connector, tasks) == (plan.connector, plan.tasks)
    assert plan.is_empty is not (connector or bool(tasks))
    restarting = Standing(state=State.RESTARTING, worker_id="w")
    assert (restarting if connector else status.connector) == plan.status.connector
    for task, shown in enumerate(plan.status.tasks):
        chosen = Standing(task=task, state=State.RESTARTING, worker_id="w")
        assert (chosen if task in tasks else status.tasks[task]) == shown
