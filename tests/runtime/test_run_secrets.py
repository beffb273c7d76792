"""A run tells and writes nothing that is hidden, whoever said it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from doubles.puppets import Puppet, puppet
from doubles.run_watcher import NoRunWatcher
from headrace.connect.connector import Plan, PlanRequest
from headrace.connect.partition import SourcePartition
from headrace.connect.task import Split
from headrace.observe.events import ConnectorFailed, TaskFailed
from headrace.observe.secret_masking import Secrets
from headrace.runtime.connector_run import ConnectorRun
from headrace.task.slot_report import Outcome, SlotReport
from runtime.desk import SPEC, Desk

SECRET = "hunter" + "2" * 3
SPECIFIED = replace(SPEC, secrets=Secrets(values={SECRET: "${env:A}"}))


def failing(_: PlanRequest) -> Plan:
    """A connector that another program wrote."""
    raise ValueError(f"no login with {SECRET}")


def working(_: PlanRequest) -> Plan:
    """Work for one slot."""
    return Plan(shares=[[Split(partition=SourcePartition(a=1))]])


@pytest.mark.parametrize("plan", [failing, working])
def test_a_run_that_fails_tells_no_secret(plan: object):
    """In its events, its statuses and its error, though the slot's own report has it."""
    report = SlotReport(
        outcome=Outcome.FAILED, surprising=True, reason=f"no {SECRET}", trace=f"it was {SECRET}"
    )
    desk = Desk(lambda *_: report, failing)
    puppet("c", Puppet(plan=failing if plan is failing else working))
    run = ConnectorRun(SPECIFIED, desk.services(), watcher=NoRunWatcher())
    run.start()
    assert run.join(20)

    statuses = desk.statuses.statuses("c")
    assert "${env:A}" in str(statuses[None].trace)
    assert "${env:A}" in str(run.failure)
    assert desk.heard(ConnectorFailed)
    assert (plan is working) == bool(desk.heard(TaskFailed))
    assert SECRET not in repr([*desk.events, *statuses.values(), run.failure])
