"""Fifty clients ask for changes of the same few connectors at once, and get answers that make sense."""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from collections import Counter
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from doubles.puppets import PLANNED, POLLED, PlannedPuppet, Puppet, endless, puppet
from doubles.thread_engine import ThreadEngine
from end_to_end.crowd import FILES, Crowd, followed
from end_to_end.live import Life
from end_to_end.scene import OutOfReach, Witness
from end_to_end.served import asked
from headrace.connect.connector import Plan
from headrace.connect.partition import SourcePartition
from headrace.connect.task import Offsets, Split
from headrace.herder.services import KafkaServices, LocalServices
from headrace.herder.worker_herder import WorkerHerder
from headrace.offsets.administration import OffsetChanges
from headrace.plugins import checked_worker
from headrace.runtime.connector_run import ConnectorRun
from headrace.runtime.runs import RunWatcher
from headrace.runtime.services import RunSpec, Services, Timing
from headrace.storage.protocols import Retention
from headrace.storage.sqlite import SqliteStorage
from headrace.task.slot_report import Outcome, SlotReport
from headrace.task.slot_work import SlotTicket
from headrace.worker import DataPlane, serving
from herder.test_real_runs import Making
from project.sampling import SEED
from runtime.desk import Desk
from waiting import until

# A run that plays a share of the kill matrices asks for a shorter time, too.
SECONDS = float(os.environ.get("HEADRACE_CROWD_SECONDS") or (8 if os.environ.get(SEED) else 20))
# Beyond what a whole run writes, where the test decides.
ALL_HISTORY = Retention(entries=1_000_000)
KEPT = Retention().entries


def finished(*_: object) -> SlotReport:
    """A slot that takes a moment."""
    threading.Event().wait(0.02)
    return SlotReport(outcome=Outcome.FINISHED)


@dataclass
class Runs:
    """Which runs are alive, and the connectors whose offsets were changed while one was."""

    alive: Counter[str] = field(default_factory=Counter[str])
    disturbed: set[str] = field(default_factory=set[str])

    def begun(self, spec: RunSpec, services: Services, watcher: RunWatcher) -> ConnectorRun:
        """A run whose end is seen."""
        self.alive[spec.name] += 1
        return ConnectorRun(spec, services, watcher=Leaving(spec.name, self, watcher))

    def changed(self, connector: str) -> None:
        """Its offsets are being changed."""
        if self.alive[connector]:
            self.disturbed.add(connector)


@dataclass(frozen=True)
class Leaving:
    """Watches a run for two."""

    name: str
    runs: Runs
    watcher: RunWatcher

    def has_tasks(self, configs: Sequence[Mapping[str, str]]) -> None:
        """Pass it on."""
        self.watcher.has_tasks(configs)

    def has_begun(self) -> None:
        """Pass it on."""
        self.watcher.has_begun()

    def has_ended(self, failure: Exception | None) -> None:
        """Note it, and pass it on."""
        self.runs.alive[self.name] -= 1
        self.watcher.has_ended(failure)


@contextmanager
def played(path: Path, runs: Runs) -> Generator[WorkerHerder]:
    """A herder with real runs, changes of offsets and state file; slots and Kafka are played."""
    storage = SqliteStorage(path)

    def plays(_: SlotTicket, __: int) -> SlotReport:
        return finished()

    desk = Desk(plays, lambda _: Plan(), once=False, timing=Timing(idle_poll=0.01, grace=5.0))
    services = replace(desk.services(), task_counts=storage.configs, statuses=storage.statuses)

    def commit(spec: RunSpec, offsets: Offsets, _: Callable[[], None]) -> None:
        runs.changed(spec.name)
        services.offsets.of(spec).put(offsets)

    changing = replace(services, commit_offsets=commit)
    changes = OffsetChanges(changing, storage.changes, keep=ALL_HISTORY)
    local = LocalServices(
        configs=storage.configs,
        statuses=storage.statuses,
        topics=storage.topics,
        validator=Making(PlannedPuppet),
        worker_id="w",
        grace=5.0,
    )
    herder = WorkerHerder(
        local, lambda: KafkaServices(services=services, changes=changes), new_run=runs.begun
    )
    try:
        herder.start()
        herder.ready()
        yield herder
    finally:
        herder.close()
        desk.channel.close()
        storage.close()


@pytest.mark.timeout(240)
def test_a_crowd_is_answered_as_if_one_had_asked_after_the_other(tmp_path: Path) -> None:
    """Connectors that idle and one that always works; Kafka is played, so there are very many requests."""
    state = tmp_path / "state.db"
    busy = Plan(shares=[[Split(partition=SourcePartition(n=0))]])
    for name in "cd":
        puppet(name, Puppet())
    puppet("busy", Puppet(plan=lambda _: busy))
    configs = {name: {"connector.class": PLANNED, "tasks.max": "2"} for name in ("busy", *"cd")}
    runs = Runs()
    with played(state, runs) as herder, asked(herder) as url:
        crowd = Crowd(url, configs)
        crowd.ask(SECONDS / 5, at_least=500)
        check(crowd, state, kept=ALL_HISTORY.entries)
    assert set() == runs.disturbed


@pytest.mark.broker
@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_crowd_with_kafka_is_answered_likewise(bootstrap: str, tmp_path: Path) -> None:
    """As a worker runs them: offsets in a topic, fencing, transactions; one connector sends all the time."""
    life, state, told = Life(bootstrap, tmp_path), tmp_path / "state.db", Witness()
    configs = dict[str, dict[str, str]]()
    for number, kind in enumerate((POLLED, PLANNED, PLANNED)):
        name = f"{life.name}-{number}"
        puppet(name, endless(name) if kind is POLLED else Puppet())
        configs[name] = {"connector.class": kind, "tasks.max": "2"}
    config = checked_worker(life.worker_props())
    with serving(
        config,
        state_file=state,
        emit=told,
        data_plane=DataPlane.of(ThreadEngine(slots=4), OutOfReach()),
    ) as herder:
        herder.start()
        herder.ready()
        until(lambda: herder.is_open, seconds=60)
        with asked(herder) as url:
            crowd = Crowd(url, configs)
            crowd.ask(SECONDS, at_least=300)
            check(crowd, state, kept=KEPT)


def check(crowd: Crowd, state: Path, *, kept: int) -> None:
    """What was answered, what is stored, and that nothing is stuck."""
    assert [] == crowd.wrong()[:5]
    with httpx.Client(base_url=crowd.url, timeout=60) as http:
        for name in crowd.configs:
            check_connector(http, crowd, name, state, kept=kept)
        for name in http.get("/connectors").json():
            began = time.monotonic()
            assert 204 == http.delete(f"/connectors/{name}").status_code
            assert time.monotonic() - began < 20
        assert [] == http.get("/connectors").json()
    for table in ("connectors", "task_configs", "statuses", "intents"):
        assert [] == rows(state, f"select * from {table}")


def check_connector(http: httpx.Client, crowd: Crowd, name: str, state: Path, *, kept: int) -> None:
    """It was born as often as it died, or once more; the store, the history and the answers agree."""
    born = crowd.count(name, "create", "put", status=201) + crowd.count(name, "preset", status=200)
    lives = born - crowd.count(name, "delete", status=204)
    stored = rows(state, "select config, target_state from connectors where name = ?", name)
    assert lives == len(stored)
    history = http.get(f"/connectors/{name}/offsets/history").json().get("history", [])
    changed = Counter(
        each["after"]["at"]
        for change in history
        if change["operation"] in {"alter", "create"}
        for each in change["offsets"]
        if each["after"]
    )
    assert changed <= crowd.altered(name)
    if len(history) < kept:
        assert changed == crowd.altered(name)
    known = followed(history)
    if not stored:
        assert 404 == http.get(f"/connectors/{name}/status").status_code
        return
    [(config, target)] = stored
    assert httpx.Response(200, text=config).json() == http.get(f"/connectors/{name}/config").json()
    until(lambda: target == standing(http, name)["connector"]["state"], seconds=20)
    # A task is UNASSIGNED until its slot has begun, which the last restart may still be waiting for.
    until(
        lambda: (
            {each["state"] for each in standing(http, name)["tasks"]} <= ({target} - {"STOPPED"})
        ),
        seconds=20,
    )
    shown = http.get(f"/connectors/{name}/offsets").json()["offsets"]
    at = {each["partition"].get("file"): each["offset"].get("at") for each in shown}
    assert {file: known.get(file, at.get(file)) for file in FILES} == {
        file: at.get(file) for file in FILES
    }


def standing(http: httpx.Client, name: str) -> Any:  # noqa: ANN401 (a JSON answer)
    """The connector's status."""
    return http.get(f"/connectors/{name}/status").json()


def rows(state: Path, query: str, *parameters: str) -> list[tuple[Any, ...]]:
    """What the state file holds, read beside the worker."""
    with closing(sqlite3.connect(f"file:{state}?mode=ro", uri=True)) as connection:
        return connection.execute(query, parameters).fetchall()
