"""Connectors that make more tasks than they are told to (KIP-1004)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from headrace.connect.connector import Plan
from headrace.runtime.running.connector_run import ConnectorRun
from headrace.slot.work import Outcome, SlotReport
from headrace.storage.protocols import TaskCount
from headrace.testing.puppets import PolledPuppet, Puppet, puppet
from runtime.desk import SPEC, Desk


@pytest.fixture
def desk() -> Iterator[Desk]:
    """A connector whose slots find nothing."""
    made = Desk(lambda *_: SlotReport(outcome=Outcome.IDLE), lambda _: Plan())
    yield made
    made.channel.close()


def ran(desk: Desk, *, enforced: bool) -> ConnectorRun:
    """A connector that may have one task and makes two, run until it has read everything."""
    puppet("c", Puppet(tasks=2))
    spec = replace(SPEC, connector=PolledPuppet(), max_tasks=1, enforces_max_tasks=enforced)
    run = ConnectorRun(spec, desk.services())
    run.start()
    assert run.join(30.0)
    return run


def test_a_connector_that_makes_too_many_tasks_fails(desk: Desk) -> None:
    """With Kafka Connect's sentence, before any of them runs."""
    failure = ran(desk, enforced=True).failure

    assert (
        "The connector c has generated 2 tasks, which is greater than 1, the maximum number of tasks it is "
        "configured to create. This behaviour should be considered a bug and is disallowed. If necessary, it can "
        "be permitted by reconfiguring the connector with 'tasks.max.enforce' set to false; however, this option "
        "will be removed in a future release of Kafka Connect."
    ) == str(failure)
    assert [] == desk.engine.tickets


def test_all_of_them_run_where_it_is_not_enforced(
    desk: Desk, caplog: pytest.LogCaptureFixture
) -> None:
    """It is told in the log; and whatever any of them left open will be fenced."""
    assert None is ran(desk, enforced=False).failure

    assert 2 == len(desk.engine.tickets)
    assert "has generated 2 tasks, which is greater than 1" in caplog.text
    assert TaskCount(slots=2, clean=True) == desk.configs.task_count("c")
