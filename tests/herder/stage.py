"""A stage for herders: connectors that only say that they run, on stores that the test chooses."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from doubles.puppets import PLANNED, PlannedPuppet
from headrace.config.connector_config import connector_version
from headrace.config.providers import FileProvider, Resolution, resolution
from headrace.connect.errors import ConfigError, ConnectError, RetriableError
from headrace.connect.partition import SourcePartition
from headrace.connect.setting import Setting
from headrace.herder.answers import CheckedKey, ConfigInfos, ConfigValue, ConnectorOffset, Plugin
from headrace.herder.coordination import Coordinate
from headrace.herder.errors import NotFoundError
from headrace.herder.requests import CreateRequest, OffsetChange
from headrace.herder.services import ConnectorValidator, KafkaServices, LocalServices
from headrace.herder.standalone import Standalone
from headrace.herder.worker_herder import WorkerHerder
from headrace.observe.events import Event
from headrace.offsets.connector_stores import OffsetsOwner
from headrace.runtime.runs import RunWatcher
from headrace.runtime.services import RunSpec, Services
from headrace.runtime.slot_versions import SlotVersions
from headrace.storage.memory import MemoryConfigStore, MemoryStatusStore, MemoryTopicStore
from headrace.storage.protocols import (
    ConfigStore,
    HistoryEntry,
    Status,
    StatusStore,
    StoredConnector,
    TopicStore,
)
from headrace.storage.sqlite import SqliteStorage
from offsets.own_topics import OpenedStores
from runtime.coordinators import MemoryCoordinator
from runtime.desk import SPEC
from waiting import until


def config(**keys: str | None) -> dict[str, str | None]:
    """A configuration that is let in."""
    return {"connector.class": PLANNED, "tasks.max": "2", **keys}


def request(name: str = "c", **more: Any) -> CreateRequest:  # noqa: ANN401 (as the dataclass has them)
    """A request to create a connector."""
    return CreateRequest(name=name, config=config(), **more)


class Judge:
    """Lets everything in but what has a key ``wrong``; ``broken`` is valid and cannot be made."""

    def plugins(self) -> Sequence[Plugin]:
        """None."""
        return ()

    def plugin_settings(self, name: str, version: str | None = None) -> Sequence[Setting]:
        """Those of the one connector that there is."""
        if name != PLANNED:
            raise NotFoundError(f"Unknown plugin {name}.")
        return ()

    def connector_version(self, name: str) -> str | None:
        """That of the one connector that there is."""
        return connector_version(PlannedPuppet) if name == PLANNED else None

    def is_polled(self, name: str) -> bool | None:
        """None is."""
        return False

    def may_have_offset_group(self, name: str) -> bool:
        """None has."""
        return False

    def validate(self, config: Mapping[str, str | None], plugin: str | None = None) -> ConfigInfos:
        """An error for each ``wrong``."""
        errors = ["it is wrong"] if "wrong" in config else []
        value = ConfigValue(name="wrong", value=None, errors=errors)
        keys = [CheckedKey(definition=None, value=value)]
        return ConfigInfos(name=PLANNED, error_count=len(errors), groups=(), configs=keys)

    def resolved(self, config: Mapping[str, str | None]) -> Resolution:
        """With what properties files say."""
        return resolution(config, {"file": FileProvider()})

    def run_spec(self, submitted: Resolution) -> RunSpec:
        """With secrets resolved."""
        props = submitted.props()
        if "broken" in props:
            raise ConfigError([("broken", "it cannot be made")])
        if submitted.problems:
            raise ConfigError(submitted.problems)
        shown = {key: value.replace("${secret}", "hunter2") for key, value in props.items()}
        return replace(SPEC, name=props["name"], props=shown)


class SlowStatuses(MemoryStatusStore):
    """Statuses that are not taken for a while, as by Kafka."""

    refusals = 0

    def forget(self, connector: str, *, from_task: int | None = None) -> None:
        """Only after the refusals."""
        if self.refusals:
            self.refusals -= 1
            raise RetriableError("Statuses could not be stored in time.")
        super().forget(connector, from_task=from_task)


class FakeRun:
    """Shows that it runs, with as many tasks as *tasks.max*, until it is asked to end and *may_end*."""

    def __init__(self, spec: RunSpec, stage: Stage, watcher: RunWatcher) -> None:
        self.spec = spec
        self._stage = stage
        self._watcher = watcher
        self._silent = False
        self._ended = threading.Event()
        self.failure: Exception | None = None
        self.asked = threading.Event()
        self.thread: threading.Thread | None = None

    def start(self) -> None:
        """Say so, the tasks on a thread of its own, as a real run does: the herder's thread stores them."""
        with self._stage.guard:
            running = self._stage.running
            assert self.spec.name not in {each.spec.name for each in running}, "two of one name"
            running.append(self)
            self._show(None, "RUNNING")
            self._watcher.has_begun()
        threading.Thread(target=self._show_tasks, daemon=True).start()

    def _show_tasks(self) -> None:
        tasks = int(self.spec.props.get("tasks.max", "1"))
        # Where a test has the process die, its threads end as well.
        with suppress(RetriableError):
            self._watcher.has_tasks([{**self.spec.props, "task.class": "x:T"}] * tasks)
            with self._stage.guard:
                for task in range(0 if self._ended.is_set() else tasks):
                    self._show(task, "RUNNING")

    def report(self, tasks: Sequence[Mapping[str, str]]) -> None:
        """Say once more which tasks it has."""
        self._watcher.has_tasks(tasks)

    def ask_to_stop(self) -> None:
        """End now or, if the stage holds runs, later."""
        self.asked.set()
        if not self._stage.holds:
            self.end(self.failure)

    def silence(self) -> None:
        """Write no more."""
        self._silent = True

    def end(self, failure: Exception | None = None) -> None:
        """Be over, as a real run: state first, then its watcher."""
        with self._stage.guard:
            if self._ended.is_set():
                return
            self._ended.set()
            state = "UNASSIGNED" if failure is None else "FAILED"
            self._show(None, state, trace=str(failure or ""))
            self._stage.running.remove(self)
        self._watcher.has_ended(failure)

    def join(self, timeout_seconds: float | None = None) -> bool:
        """Whether it is over."""
        return self._ended.wait(timeout_seconds)

    def _show(self, task: int | None, state: str, trace: str = "") -> None:
        if not self._silent:
            version = connector_version(type(self.spec.connector))
            status = Status(
                state=state,
                worker_id=self._stage.worker_id,
                version=version,
                trace=trace or None,
            )
            self._stage.statuses.put(self.spec.name, task, status)


class FakeChanges:
    """Offsets in a dictionary; a creation is stored unless *fails* says so."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self.done: list[tuple[str, str]] = []
        self.entries: list[HistoryEntry] = []
        self.read_of: list[OffsetsOwner] = []
        self.unsettled: dict[str, ConnectError] = {}

    def read(self, connector: OffsetsOwner) -> Sequence[ConnectorOffset]:
        """One; notes where it was to be read."""
        self.read_of.append(connector)
        return [ConnectorOffset(partition=SourcePartition(of=connector.name), offset={"at": 1})]

    def history(self, name: str) -> Sequence[HistoryEntry]:
        """As the test says."""
        return [each for each in self.entries if each.connector == name]

    def alter(
        self,
        spec: RunSpec,
        changes: Sequence[OffsetChange],
        *,
        who: str | None,
        dry_run: bool = False,
    ) -> str:
        """Remember it."""
        return self._change("altered", spec, dry_run=dry_run)

    def reset(self, spec: RunSpec, *, who: str | None, dry_run: bool = False) -> str:
        """Remember it."""
        return self._change("reset", spec, dry_run=dry_run)

    def undo(
        self,
        spec: RunSpec,
        entry: int,
        *,
        who: str | None,
        force: bool = False,
        dry_run: bool = False,
    ) -> str:
        """Remember it."""
        return self._change(f"undone {entry}", spec, dry_run=dry_run)

    def create(
        self,
        spec: RunSpec,
        stored: StoredConnector,
        initial_offsets: Sequence[OffsetChange],
        *,
        who: str | None,
        dry_run: bool = False,
    ) -> str:
        """Store the connector."""
        told = self._change("created", spec, dry_run=dry_run)
        if dry_run:
            return told
        self._stage.configs.put_connector(stored)
        return told

    def open_changes(self) -> Sequence[str]:
        """As the test says."""
        return sorted(self.unsettled)

    def recover(
        self,
        connectors: Mapping[str, StoredConnector],
        run_spec: Callable[[StoredConnector], RunSpec],
        *,
        only: str | None = None,
    ) -> Mapping[str, ConnectError]:
        """As the test says."""
        return self.unsettled

    def _change(self, what: str, spec: RunSpec, *, dry_run: bool) -> str:
        if dry_run:
            return f"would have {what} it"
        with self._stage.guard:
            running = {each.spec.name for each in self._stage.running}
        assert spec.name not in running, "changed while it runs"
        self._stage.changing()
        self.done.append((what, spec.name))
        return f"{what} it"


@dataclass
class Stage:
    """What a herder needs, and what became of it."""

    configs: ConfigStore = field(default_factory=MemoryConfigStore)
    statuses: StatusStore = field(default_factory=MemoryStatusStore)
    topics: TopicStore = field(default_factory=MemoryTopicStore)
    running: list[FakeRun] = field(default_factory=list[FakeRun])
    told: list[Event] = field(default_factory=list[Event])
    guard: threading.RLock = field(default_factory=threading.RLock)
    holds: bool = False
    worker_id: str = "w"
    kafka: threading.Event = field(default_factory=threading.Event)
    kafka_fails: Exception | None = None
    changing: Callable[[], None] = lambda: None
    unsettled: Sequence[str] = ()
    grace: float = 0.0
    once: bool = False
    retries_start: bool = False
    judge: ConnectorValidator = field(default_factory=Judge)
    masks_passwords: bool = False
    look_seconds: float = 60.0
    offset_stores: OpenedStores = field(default_factory=OpenedStores)
    versions: SlotVersions = field(default_factory=SlotVersions)
    coordinator: MemoryCoordinator = field(default_factory=MemoryCoordinator)

    def __post_init__(self) -> None:
        self.changes = FakeChanges(self)

    @contextmanager
    def herder(
        self,
        *,
        kafka: bool = True,
        only: Sequence[str] | None = None,
        coordinate: Coordinate = Standalone,
    ) -> Iterator[WorkerHerder]:
        """A started herder, closed at the end; without *kafka* the test lets it come."""
        if kafka:
            self.kafka.set()
        made = self.new_herder(coordinate)
        made.start(only=only)
        made.ready()
        until(lambda: not kafka or made.is_open or made.failure)
        try:
            yield made
        finally:
            self.holds = False
            self.kafka.set()
            made.close()

    def new_herder(self, coordinate: Coordinate = Standalone) -> WorkerHerder:
        """A herder that has not been started; the test closes it."""
        return WorkerHerder(
            self._local(),
            self._opening,
            coordinate=coordinate,
            new_run=self._new_run,
            look_seconds=self.look_seconds,
        )

    def the_run(self, name: str = "c") -> FakeRun:
        """The one that runs now."""
        with self.guard:
            [run] = [each for each in self.running if each.spec.name == name]
        return run

    def states(self, name: str = "c") -> dict[int | None, str]:
        """What the store says of the connector, under ``None``, and its tasks."""
        return {task: each.state for task, each in self.statuses.statuses(name).items()}

    def _local(self) -> LocalServices:
        return LocalServices(
            configs=self.configs,
            statuses=self.statuses,
            topics=self.topics,
            validator=self.judge,
            masks_passwords=self.masks_passwords,
            worker_id=self.worker_id,
            grace=self.grace,
            once=self.once,
            retries_start=self.retries_start,
            unsettled=lambda: self.unsettled,
        )

    def _opening(self) -> KafkaServices:
        self.kafka.wait()
        if self.kafka_fails:
            raise self.kafka_fails
        services: Any = SimpleNamespace(
            emit=self.told.append,
            offsets=self.offset_stores.stores,
            channel=SimpleNamespace(versions=self.versions),
            coordinator=lambda _: self.coordinator,
            group_id="g",
        )
        return KafkaServices(services=services, changes=self.changes, cluster_id="k")

    def _new_run(self, spec: RunSpec, _: Services, watcher: RunWatcher) -> FakeRun:
        return FakeRun(spec, self, watcher)


@contextmanager
def sqlite_stage(path: Path) -> Iterator[Stage]:
    """A stage on the stores of a file."""
    storage = SqliteStorage(path)
    try:
        yield Stage(configs=storage.configs, statuses=storage.statuses, topics=storage.topics)
    finally:
        storage.close()
