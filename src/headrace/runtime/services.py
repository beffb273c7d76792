"""What a worker shares among its connectors, and what it knows of each of them."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Protocol

from headrace.config.client_settings import OwnOffsets
from headrace.connect.connector import SourceConnector
from headrace.connect.task import Offsets
from headrace.kafka.deadline import Deadline
from headrace.kafka.producer import Waiting
from headrace.kafka.transaction_coordinator import ProducerIdentity
from headrace.observe.events import EventListener
from headrace.offsets.connector_stores import ConnectorOffsetStores
from headrace.runtime.channel_server import Channel
from headrace.runtime.engine import Capacity, Engine, LocalProcesses, Processes
from headrace.storage.protocols import ConfigStore, StatusStore
from headrace.task.sql.step import SqlStage
from headrace.task.work import ConnectorSpec


@dataclass(frozen=True, kw_only=True)
class RunSpec(ConnectorSpec):
    """A connector's settings, and what only the driver has of it: the *connector* itself, ready to be started.

    *own_offsets* says how its own topic of offsets is reached, where it has one. *between* is what Spark does with its
    records: each of its slots has two processes then, one that reads and one that writes.
    """

    connector: SourceConnector
    own_offsets: OwnOffsets | None = None
    between: SqlStage | None = None


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


class CommitOffsets(Protocol):
    """Commits offsets of a connector without records, in a transaction of their own when it is exactly-once."""

    def __call__(self, spec: RunSpec, offsets: Offsets, still_ours: Callable[[], None], /) -> None:
        """Commit all of them or none.

        A transaction begins only after *still_ours*, which raises when the connector has another driver by now.
        """
        ...


class Coordinator(Protocol):
    """A cluster's transaction coordinators; see :class:`~headrace.kafka.transaction_coordinator.TransactionCoordinator`."""

    def take(
        self, transactional_id: str, deadline: Deadline, *, waiting: Waiting | None = None
    ) -> ProducerIdentity:
        """Take the id from whoever has it."""
        ...

    def prove(
        self, transactional_id: str, current: ProducerIdentity, deadline: Deadline
    ) -> ProducerIdentity:
        """Prove to have it still; raises ``FencedError`` otherwise."""
        ...

    def fence(
        self,
        transactional_ids: Collection[str],
        deadline: Deadline,
        *,
        waiting: Waiting | None = None,
    ) -> None:
        """Make every producer of these ids unable to write."""
        ...

    def transactional_ids(
        self, deadline: Deadline, *, waiting: Waiting | None = None
    ) -> frozenset[str] | None:
        """Those that the brokers know, ``None`` where they cannot list them."""
        ...

    def close(self) -> None:
        """Close the connections."""
        ...


class CopyWriter(Protocol):
    """Writes copies of one connector's offsets to the worker's store, for one driver. Any thread may call."""

    def put(self, connector: str, offsets: Offsets) -> None:
        """Commit *offsets*; ``None`` removes. Raises ``ConnectorFencedError`` when it has another driver by now."""
        ...

    def close(self) -> None:
        """Release what it holds."""
        ...


class Secondary(Protocol):
    """How copies of connectors' own offsets get into the worker's store, where that is a topic (KIP-618)."""

    def fence(self, connector: str, *, is_used: bool, give_up: Callable[[], bool]) -> None:
        """Make every older writer of the connector's copies unable to write; raises ``RetriableError`` when late.

        *is_used* says that this worker writes such copies.
        """
        ...

    def writer(self, connector: str, prove: Callable[[], None]) -> CopyWriter:
        """The writer for a driver, which *prove* proves to be the connector's."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    """The parts of a worker that its connectors use, from their own threads.

    *coordinator* makes a client for the transaction coordinators of a connector's cluster, which its user closes.
    *secondary* is ``None`` where the worker's store is no topic. *prepare* makes what a connector needs in Kafka before it
    starts. *once* means: end when all there is has been read.
    """

    engine: Engine
    channel: Channel
    capacity: Capacity
    offsets: ConnectorOffsetStores
    configs: ConfigStore
    statuses: StatusStore
    group_id: str
    worker_id: str
    run_id: str
    timing: Timing
    emit: EventListener
    coordinator: Callable[[RunSpec], Coordinator]
    commit_offsets: CommitOffsets
    secondary: Secondary | None = None
    processes: Processes = field(default_factory=LocalProcesses)
    prepare: Callable[[RunSpec], None] = lambda _: None
    once: bool = False
