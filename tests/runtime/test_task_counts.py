"""Connectors that make more tasks than they are told to (KIP-1004)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from doubles.puppets import PolledPuppet, Puppet, puppet
from doubles.run_watcher import NoRunWatcher
from headrace.connect.connector import Plan
from headrace.connectors.file_stream import FileStreamSourceConnector
from headrace.runtime.connector_run import ConnectorRun
from headrace.storage.protocols import TaskCount
from headrace.task.slot_report import Outcome, SlotReport
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
    run = ConnectorRun(spec, desk.services(), watcher=NoRunWatcher())
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
    """It is logged; and whatever any of them left open will be fenced."""
    assert None is ran(desk, enforced=False).failure

    assert 2 == len(desk.engine.tickets)
    assert "has generated 2 tasks, which is greater than 1" in caplog.text
    assert TaskCount(slots=2) == desk.configs.task_count("c")


class Watcher:
    """Remembers the configurations of the tasks."""

    def __init__(self) -> None:
        self.configs: Sequence[Mapping[str, str]] = ()

    def has_tasks(self, configs: Sequence[Mapping[str, str]]) -> None:
        """Remember them."""
        self.configs = configs

    def has_begun(self) -> None:
        """Nothing."""

    def has_ended(self, failure: Exception | None) -> None:
        """Nothing."""


def test_the_task_of_a_connector_with_java_s_name_has_java_s_name(
    desk: Desk, tmp_path: Path
) -> None:
    """What asks a worker for ``task.class`` looks for the class that it knows."""
    file = tmp_path / "lines"
    file.touch()
    props = {"name": "c", "topic": "t", "file": str(file)}
    spec = replace(SPEC, connector=FileStreamSourceConnector(), props=props, max_tasks=1)
    watcher = Watcher()
    run = ConnectorRun(spec, desk.services(), watcher=watcher)
    run.start()
    assert run.join(30.0)

    java = "org.apache.kafka.connect.file.FileStreamSourceTask"
    assert [{**props, "task.class": java}] == watcher.configs
