"""A stage for runs of one connector: the test plays the slots, everything else is in memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from doubles.memory_group import MemoryGroup
from doubles.puppets import PlannedPuppet, Puppet, puppet
from doubles.run_watcher import NoRunWatcher
from headrace import __version__
from headrace.connect.connector import Plan, PlanRequest
from headrace.connect.task import Offsets
from headrace.observe.events import Event
from headrace.offsets.connector_stores import ConnectorOffsetStores
from headrace.offsets.store import LockedOffsetStore
from headrace.offsets.target import OffsetTopic
from headrace.runtime.channel_server import Channel
from headrace.runtime.connector_run import ConnectorRun
from headrace.runtime.engine import Capacity
from headrace.runtime.micro_batch import SlotState
from headrace.runtime.services import RunSpec, Services, Timing
from headrace.storage.memory import MemoryConfigStore, MemoryOffsetStore, MemoryStatusStore
from headrace.task.channel import ChannelClient
from headrace.task.connector_spec import BoundaryKind, Delivery, PluginChoice
from headrace.task.slot_report import SlotReport
from headrace.task.slot_work import SlotTicket
from headrace.task.sql.step import SqlStage
from runtime.coordinators import MemoryCoordinator, OnFence

STRING = PluginChoice(class_name="string")


class FakeEngine:
    """Plays slots: each ticket's final report is what *plays* returns, ``None`` for a slot that just goes."""

    def __init__(self, plays: Callable[[SlotTicket, int], SlotReport | None]) -> None:
        self.slots = 2
        self.is_starting = False
        self.tickets: list[SlotTicket] = []
        self._plays = plays

    def run(self, tickets: Sequence[SlotTicket], sql_stage: SqlStage | None = None) -> None:
        """Claim each ticket, then send the final report."""
        self.tickets += tickets
        for index, ticket in enumerate(tickets):
            with ChannelClient(ticket) as client:
                client.ask("claim", pid=1, host="nowhere", version=__version__)
                report = self._plays(ticket, index)
                if report is not None:
                    client.ask("end", report=report.as_message())

    def close(self) -> None:
        """Nothing to close."""


class Nobody:
    """No process is known."""

    def running(self, slot: SlotState) -> bool:
        """Never."""
        return False

    def end(self, slot: SlotState) -> None:
        """Nothing to end."""


@dataclass
class Desk:
    """A run with everything around it; *done* is what happened, in order."""

    plays: Callable[[SlotTicket, int], SlotReport | None]
    plan: Callable[[PlanRequest], Plan]
    timing: Timing = field(default_factory=lambda: Timing(idle_poll=0.01, grace=0.3, lease=5.0))
    once: bool = True
    max_tasks: int = 2
    done: list[object] = field(default_factory=list[object])
    events: list[Event] = field(default_factory=list[Event])
    configs: MemoryConfigStore = field(default_factory=MemoryConfigStore)
    statuses: MemoryStatusStore = field(default_factory=MemoryStatusStore)
    fence: OnFence | None = None
    commit: Callable[[RunSpec, Offsets], None] | None = None
    coordinator: MemoryCoordinator = field(default_factory=MemoryCoordinator)
    prepare: Callable[[RunSpec], None] = lambda _: None
    spec: RunSpec | None = None
    group: MemoryGroup = field(default_factory=MemoryGroup)

    def __post_init__(self) -> None:
        self.engine = FakeEngine(self.plays)
        self.channel = Channel(lambda _: None)
        self.offsets = MemoryOffsetStore()

    def services(self) -> Services:
        """What the run uses."""
        desk = LockedOffsetStore(self.offsets)
        self.coordinator.on_fence = self.fence or (
            lambda ids, _: self.done.append(("fenced", list(ids)))
        )

        def commit(spec: RunSpec, offsets: Offsets, still_ours: Callable[[], None]) -> None:
            if spec.exactly_once:
                still_ours()
            if self.commit is None:
                desk.put(spec.name, offsets)
            else:
                self.commit(spec, offsets)

        return Services(
            engine=self.engine,
            channel=self.channel,
            capacity=Capacity(self.engine.slots),
            offsets=ConnectorOffsetStores(
                desk, open_group=lambda _: self.group, worker_topic="offsets"
            ),
            task_counts=self.configs,
            statuses=self.statuses,
            group_id="g",
            worker_id="w",
            run_id="r",
            timing=self.timing,
            emit=self.events.append,
            coordinator=lambda _: self.coordinator,
            commit_offsets=commit,
            processes=Nobody(),
            prepare=self.prepare,
            once=self.once,
        )

    def start(self) -> ConnectorRun:
        """Start the connector."""
        puppet("c", Puppet(plan=self.plan))
        run = ConnectorRun(
            replace(self.spec or SPEC, max_tasks=self.max_tasks),
            self.services(),
            watcher=NoRunWatcher(),
        )
        run.start()
        return run

    def run(self) -> ConnectorRun:
        """Run the connector to its end."""
        run = self.start()
        assert run.join(20.0)
        return run

    def heard(self, kind: type) -> list[Event]:
        """The events of that kind."""
        return [each for each in self.events if isinstance(each, kind)]


SPEC = RunSpec(
    name="c",
    connector=PlannedPuppet(),
    props={"name": "c"},
    max_tasks=2,
    delivery=Delivery.EXACTLY_ONCE,
    admin={},
    producer={},
    offsets=OffsetTopic(name="offsets"),
    key_converter=STRING,
    value_converter=STRING,
    header_converter=STRING,
    boundary=BoundaryKind.INTERVAL,
    commit_seconds=1.0,
)
