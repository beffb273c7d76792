"""What a worker shares among its connectors, and what it knows of each of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from headrace.connect.connector import SourceConnector
from headrace.connect.task import Offsets
from headrace.observe.events import Tell
from headrace.observe.hidden import Hidden
from headrace.runtime.capacity import Capacity
from headrace.runtime.channel import Channel
from headrace.runtime.engine import Engine
from headrace.runtime.offset_homes import OffsetHomes
from headrace.runtime.running.processes import LocalProcesses, Processes
from headrace.runtime.settings.own_offsets import OwnOffsets
from headrace.slot.split.between import Between
from headrace.slot.topic_groups import TopicGroup
from headrace.slot.work import BoundaryKind, Delivery, ErrorPolicy, PluginChoice, StageChoice
from headrace.storage.protocols import ConfigStore, StatusStore


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSpec:
    """A connector, ready to run: every setting resolved. Durations are in seconds.

    Its tasks write offsets to *offsets_topic*, which is that of *own_offsets* where it has a topic of its own.
    What is *hidden* may be in *props*, and in nothing that anybody reads. With *topic_groups* its tasks make
    topics that are not there. *enforces_max_tasks* is ``tasks.max.enforce``. *between* is what Spark does with its
    records: each of its slots has two processes then, one that reads and one that writes.
    """

    name: str
    connector: SourceConnector
    props: Mapping[str, str] = field(repr=False)
    max_tasks: int
    enforces_max_tasks: bool = True
    delivery: Delivery
    producer: Mapping[str, str] = field(repr=False)
    admin: Mapping[str, str] = field(repr=False)
    offsets_topic: str | None
    own_offsets: OwnOffsets | None = None
    key_converter: PluginChoice = field(repr=False)
    value_converter: PluginChoice = field(repr=False)
    header_converter: PluginChoice = field(repr=False)
    transforms: tuple[StageChoice, ...] = field(default=(), repr=False)
    between: Between | None = None
    boundary: BoundaryKind
    commit_seconds: float
    records_per_second: int | None = None
    errors: ErrorPolicy = field(default_factory=ErrorPolicy)
    topic_groups: tuple[TopicGroup, ...] = ()
    hidden: Hidden = field(default_factory=Hidden, repr=False)

    @property
    def plugins(self) -> tuple[PluginChoice, ...]:
        """All that its slots make besides tasks: converters, transformations, predicates."""
        stages = (one for each in self.transforms for one in each.plugins)
        return (self.key_converter, self.value_converter, self.header_converter, *stages)

    @property
    def exactly_once(self) -> bool:
        """Whether its tasks write in transactions."""
        return self.delivery is Delivery.EXACTLY_ONCE


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """How long things may take, in seconds."""

    lease: float = 10.0
    grace: float = 5.0
    batch_budget: float = 10.0
    idle_poll: float = 1.0
    linger: float = 1.0
    # About what the next micro-batch itself takes to begin and to end.
    first_rest: float = 0.25
    longest_rest: float = 30.0
    flush_interval: float = 60.0
    # Longer than Spark takes to start on a small machine.
    slot_start: float = 30.0


class Fence(Protocol):
    """Makes earlier owners of transactional ids unable to write."""

    def __call__(
        self, spec: RunSpec, transactional_ids: Sequence[str], /, *, give_up: Callable[[], bool]
    ) -> None:
        """Return when they are; raises ``RetriableError`` when that takes too long or *give_up* says so."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    """The parts of a worker that its connectors use, from their own threads.

    *commit_offsets* commits offsets without records, in a transaction of their own when the connector is
    exactly-once. *prepare* makes what a connector needs in Kafka before it starts. *once* means: end when all
    there is has been read.
    """

    engine: Engine
    channel: Channel
    capacity: Capacity
    offsets: OffsetHomes
    configs: ConfigStore
    statuses: StatusStore
    group_id: str
    worker_id: str
    run_id: str
    timing: Timing
    tell: Tell
    fence: Fence
    commit_offsets: Callable[[RunSpec, Offsets], None]
    processes: Processes = field(default_factory=LocalProcesses)
    prepare: Callable[[RunSpec], None] = lambda _: None
    once: bool = False
