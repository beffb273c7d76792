"""A stage for runs of one connector: the test plays the slots, everything else is in memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from headrace import __version__
from headrace.connect.connector import Plan, PlanRequest
from headrace.connect.task import Offsets
from headrace.observe.events import Event
from headrace.runtime.capacity import Capacity
from headrace.runtime.channel import Channel
from headrace.runtime.offset_desk import OffsetDesk
from headrace.runtime.offset_homes import OffsetHomes
from headrace.runtime.running.connector_run import ConnectorRun
from headrace.runtime.running.micro_batch import SlotState
from headrace.runtime.services import Fence, RunSpec, Services, Timing
from headrace.slot.channel import ChannelClient
from headrace.slot.split.between import Between
from headrace.slot.work import BoundaryKind, Delivery, PluginChoice, SlotReport, SlotTicket
from headrace.storage.memory import MemoryConfigStore, MemoryOffsetStore, MemoryStatusStore
from headrace.testing.puppets import PlannedPuppet, Puppet, puppet

STRING = PluginChoice(class_name="string")


class FakeEngine:
    """Plays slots: each ticket's last word is what *plays* returns, ``None`` for a slot that just goes."""

    def __init__(self, plays: Callable[[SlotTicket, int], SlotReport | None]) -> None:
        self.slots = 2
        self.is_starting = False
        self.tickets: list[SlotTicket] = []
        self._plays = plays

    def run(self, tickets: Sequence[SlotTicket], between: Between | None = None) -> None:
        """Claim each ticket, then tell the last word."""
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
    fence: Fence | None = None
    commit: Callable[[RunSpec, Offsets], None] | None = None
    prepare: Callable[[RunSpec], None] = lambda _: None

    def __post_init__(self) -> None:
        self.engine = FakeEngine(self.plays)
        self.channel = Channel(lambda _: None)
        self.offsets = MemoryOffsetStore()

    def services(self) -> Services:
        """What the run uses."""
        desk = OffsetDesk(self.offsets)
        return Services(
            engine=self.engine,
            channel=self.channel,
            capacity=Capacity(self.engine.slots),
            offsets=OffsetHomes(desk),
            configs=self.configs,
            statuses=self.statuses,
            group_id="g",
            worker_id="w",
            run_id="r",
            timing=self.timing,
            tell=self.events.append,
            fence=self.fence or (lambda _, ids, **__: self.done.append(("fenced", list(ids)))),
            commit_offsets=self.commit or (lambda spec, offsets: desk.put(spec.name, offsets)),
            processes=Nobody(),
            prepare=self.prepare,
            once=self.once,
        )

    def start(self) -> ConnectorRun:
        """Start the connector."""
        puppet("c", Puppet(plan=self.plan))
        run = ConnectorRun(replace(SPEC, max_tasks=self.max_tasks), self.services())
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
    offsets_topic="offsets",
    key_converter=STRING,
    value_converter=STRING,
    header_converter=STRING,
    boundary=BoundaryKind.INTERVAL,
    commit_seconds=1.0,
)
