"""A herder with real runs and a real state file; slots are threads, and Kafka is played."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import headrace
from doubles.puppets import PlannedPuppet, PolledPuppet, Puppet, puppet
from headrace.config.connector_config import connector_version
from headrace.config.providers import Resolution
from headrace.connect.connector import ConnectorContext, Plan
from headrace.connect.errors import RetriableError
from headrace.connect.partition import SourcePartition
from headrace.connect.task import Split
from headrace.herder.answers import State
from headrace.herder.errors import ServerError
from headrace.herder.requests import RestartRequest
from headrace.herder.services import KafkaServices, LocalServices
from headrace.herder.topics import ActiveTopics
from headrace.herder.worker_herder import WorkerHerder
from headrace.observe.events import TopicsWritten
from headrace.runtime.services import RunSpec, Timing
from headrace.storage.sqlite import SqliteStorage
from headrace.task.channel import ChannelClient
from headrace.task.slot_report import Outcome, Progress, SlotReport
from headrace.task.slot_work import SlotTicket
from herder.stage import FakeChanges, Judge, Stage, request
from runtime.desk import Desk
from waiting import until

FINISHED = SlotReport(outcome=Outcome.FINISHED)
FAILED = SlotReport(outcome=Outcome.FAILED, reason="bad line", trace="it\nbroke")
Plays = Callable[[SlotTicket, int], SlotReport | None]


class Making(Judge):
    """Makes a new puppet for each run."""

    def __init__(self, made: type[PlannedPuppet | PolledPuppet]) -> None:
        self._made = made

    def run_spec(self, submitted: Resolution) -> RunSpec:
        """Planned or polled."""
        spec = super().run_spec(submitted)
        return replace(spec, connector=self._made(), max_tasks=int(spec.props["tasks.max"]))


@contextmanager
def worker(
    path: Path,
    *,
    plays: Plays = lambda *_: FINISHED,
    made: type[PlannedPuppet | PolledPuppet] = PlannedPuppet,
) -> Iterator[WorkerHerder]:
    """A process: it opens the file, and closes it at its end."""
    storage = SqliteStorage(path)
    desk = Desk(plays, lambda _: Plan(), once=False, timing=Timing(idle_poll=0.01, grace=0.5))
    services = replace(
        desk.services(),
        task_counts=storage.configs,
        statuses=storage.statuses,
        emit=ActiveTopics(storage.topics, storage.configs),
    )
    stage: Any = Stage(configs=storage.configs)
    local = LocalServices(
        configs=storage.configs,
        statuses=storage.statuses,
        topics=storage.topics,
        validator=Making(made),
        worker_id="w",
        grace=0.5,
    )
    herder = WorkerHerder(
        local, lambda: KafkaServices(services=services, changes=FakeChanges(stage))
    )
    try:
        herder.start()
        herder.ready()
        yield herder
    finally:
        herder.close()
        desk.channel.close()
        storage.close()


@pytest.fixture
def state(tmp_path: Path) -> Path:
    """The state file."""
    return tmp_path / "s.db"


def states(herder: WorkerHerder) -> list[State]:
    """Those of the connector and its tasks."""
    status = herder.status("c")
    return [status.connector.state, *(each.state for each in status.tasks)]


def has(herder: WorkerHerder, state: State, tasks: int) -> Callable[[], bool]:
    """Whether the connector and its tasks all are that."""
    return lambda: [state] * (tasks + 1) == states(herder)


def shares(*_: object) -> Plan:
    """Work for two tasks, whenever it is asked for."""
    return Plan(shares=[[Split(partition=SourcePartition(n=n))] for n in (0, 1)])


def test_an_idle_planned_connector_has_its_tasks_from_the_start(state: Path) -> None:
    """No work is needed for them to show, and the worker's end unassigns them."""
    puppet("c", Puppet())
    with worker(state) as herder:
        herder.create(request())
        until(has(herder, State.RUNNING, 2))
        # Tasks are stored a moment after their states.
        until(lambda: 2 == len(herder.tasks("c")))
        herder.pause("c")
        until(has(herder, State.PAUSED, 2))
    with worker(state) as herder:
        until(has(herder, State.PAUSED, 2))
        herder.resume("c")
        until(has(herder, State.RUNNING, 2))
    storage = SqliteStorage(state)
    assert {"UNASSIGNED"} == {each.state for each in storage.statuses.statuses("c").values()}
    storage.close()


def test_a_polled_connector_has_as_many_tasks_as_it_says(state: Path) -> None:
    """With their own configurations, and the path of their class."""
    puppet("c", Puppet(tasks=1, probe=lambda _: False))
    with worker(state, made=PolledPuppet) as herder:
        herder.create(request())
        until(lambda: herder.tasks("c"))
        [task] = herder.tasks("c")
        assert "doubles.puppets:PuppetTask" == task.config["task.class"]


def test_a_failed_task_shows_its_traceback(state: Path) -> None:
    """And its connector why; a restart runs both again."""
    reports = iter([FINISHED, FAILED])
    puppet("c", Puppet(plan=shares))
    with worker(state, plays=lambda *_: next(reports, FINISHED)) as herder:
        herder.create(request())
        until(lambda: State.FAILED is states(herder)[0])
        status = herder.status("c")
        assert "Task c-1 failed: bad line" in (status.connector.trace or "")
        assert ["it\nbroke"] == [each.trace for each in status.tasks if each.trace]

        puppet("c", Puppet())
        herder.restart_task("c", 1)
        until(has(herder, State.RUNNING, 2))


def test_a_restart_of_what_failed_runs_the_tasks_that_ended_with_it(state: Path) -> None:
    """Only the one that failed shows so; the connector brings both back."""
    reports = iter([FINISHED, FAILED])
    puppet("c", Puppet(plan=shares))
    with worker(state, plays=lambda *_: next(reports, FINISHED)) as herder:
        herder.create(request())
        until(lambda: herder.failed() == ["c"])
        # The connector has failed a moment before the task that did not is unassigned.
        until(lambda: {State.FAILED, State.UNASSIGNED} == set(states(herder)[1:]))

        puppet("c", Puppet())
        herder.restart(RestartRequest(name="c", include_tasks=True, only_failed=True))
        until(has(herder, State.RUNNING, 2))


@pytest.mark.parametrize("made", [PlannedPuppet, PolledPuppet])
def test_a_restart_of_a_connector_that_cannot_start_is_refused(
    state: Path, made: type[PlannedPuppet | PolledPuppet]
) -> None:
    """With Kafka Connect's words; one with flags does not wait, and reports what had failed and why."""

    def fails(_: ConnectorContext) -> None:
        raise ValueError("it cannot start")

    puppet("c", Puppet(started=fails))
    with worker(state, made=made) as herder:
        herder.create(request())
        until(lambda: herder.failed() == ["c"])
        with pytest.raises(ServerError, match=r"^Failed to start connector: c$"):
            herder.restart(RestartRequest(name="c"))

        shown = herder.restart(RestartRequest(name="c", only_failed=True))
        assert shown is not None
        assert (State.RESTARTING, headrace.__version__) == (
            shown.connector.state,
            shown.connector.version,
        )
        assert "it cannot start" in (shown.connector.trace or "")
        until(lambda: herder.failed() == ["c"])
        herder.pause("c")
        puppet("c", Puppet())
        assert None is herder.restart(RestartRequest(name="c"))


def test_a_restart_waits_for_the_start_but_not_for_an_outage(state: Path) -> None:
    """It returns when the connector has started, or when its start is to be tried again."""
    begun, tries = threading.Event(), list[int]()

    def starts(_: ConnectorContext) -> None:
        tries.append(1)
        assert begun.wait(30.0)
        if len(tries) == 2:
            raise RetriableError("not now")

    puppet("c", Puppet())
    with worker(state) as herder, ThreadPoolExecutor() as clients:
        herder.create(request())
        until(has(herder, State.RUNNING, 2))
        puppet("c", Puppet(started=starts))
        asked = clients.submit(herder.restart, RestartRequest(name="c"))
        until(lambda: len(tries) == 1)
        assert not asked.done()
        begun.set()
        assert None is asked.result(30.0)

        assert None is herder.restart(RestartRequest(name="c"))
        assert len(tries) >= 2


class Theirs(PlannedPuppet):
    """A connector of somebody else."""

    version = "3.2"


@pytest.mark.parametrize(
    ("made", "version"), [(PlannedPuppet, headrace.__version__), (Theirs, "3.2")]
)
def test_statuses_show_the_version_that_the_list_of_plugins_has(
    state: Path, made: type[PlannedPuppet], version: str
) -> None:
    """The connector's, and the same for its tasks."""
    puppet("c", Puppet())
    with worker(state, made=made) as herder:
        herder.create(request())
        until(has(herder, State.RUNNING, 2))
        status = herder.status("c")

        assert {version} == {each.version for each in (status.connector, *status.tasks)}
        assert version == connector_version(made)


def test_a_stop_lets_the_open_micro_batch_end(state: Path) -> None:
    """Its slots are asked to, and the connector is not stopped before they have."""
    began, end = threading.Event(), threading.Event()

    def plays(_: SlotTicket, __: int) -> SlotReport:
        began.set()
        assert end.wait(10)
        return FINISHED

    puppet("c", Puppet(plan=lambda _: Plan(shares=shares().shares[:1])))
    with worker(state, plays=plays) as herder:
        herder.create(request())
        assert began.wait(10)
        herder.stop("c")
        assert State.RUNNING is states(herder)[0]
        end.set()
        until(has(herder, State.STOPPED, 0))


def test_topics_are_active_once_records_are_committed_in_them(state: Path) -> None:
    """They survive the worker, and go with the connector."""

    def plays(ticket: SlotTicket, _: int) -> SlotReport:
        with ChannelClient(ticket) as client:
            client.ask("beat", progress=Progress(topics=["t2", "t1"]).as_message())
        return replace(FINISHED, progress=Progress(topics=["t1", "t2"]).as_message())

    puppet("c", Puppet(plan=lambda _: Plan(shares=shares().shares[:1])))
    with worker(state, plays=plays) as herder:
        herder.create(request())
        until(lambda: ["t1", "t2"] == list(herder.topics("c")))
        herder.stop("c")
        until(has(herder, State.STOPPED, 0))
    with worker(state) as herder:
        assert ["t1", "t2"] == list(herder.topics("c"))
        herder.delete("c")
        assert [] == list(herder.topics("c"))


def test_topics_of_a_deleted_connector_are_not_remembered(state: Path) -> None:
    """What its last micro-batch tells comes too late."""
    storage = SqliteStorage(state)
    ActiveTopics(storage.topics, storage.configs)(TopicsWritten(connector="c", topics=("t",)))

    assert [] == list(storage.topics.topics("c"))
    storage.close()
