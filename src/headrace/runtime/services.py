"""The services that a worker shares among its connectors, and the settings of a run."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from headrace.config.client_settings import ConnectorOffsetsGroup, ConnectorOffsetsTopic
from headrace.connect.connector import SourceConnector
from headrace.connect.errors import RetriableError
from headrace.connect.task import Offsets
from headrace.kafka.deadline import Deadline
from headrace.kafka.producer import Waiting
from headrace.kafka.wire.transaction_state import ProducerIdentity
from headrace.observe.events import EventListener
from headrace.offsets.connector_stores import ConnectorOffsetStores
from headrace.runtime.channel_server import Channel
from headrace.runtime.engine import Capacity, Engine, LocalProcesses, Processes
from headrace.storage.protocols import StatusStore, TaskCounts
from headrace.task.connector_spec import ConnectorSpec
from headrace.task.sql.step import SqlStage


@dataclass(frozen=True, kw_only=True)
class RunSpec(ConnectorSpec):
    """A connector's settings, and what only the driver needs: the *connector* itself, ready to be started.

    *offsets_topic* says how to reach its own offsets topic, if it has one, and *offsets_group* the group on the target that
    holds its offsets, if it is one. *sql_stage* is the SQL stage that Spark applies
    to its records: each of its slots then has two processes, one that reads and one that writes. *not_by_wire* is what
    headrace's own sender cannot have of the producer's settings: why the client library sends, if it does.
    """

    connector: SourceConnector
    offsets_topic: ConnectorOffsetsTopic | None = None
    offsets_group: ConnectorOffsetsGroup | None = None
    sql_stage: SqlStage | None = None
    not_by_wire: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """How long things may take, in seconds."""

    lease: float = 10.0
    grace: float = 5.0
    batch_budget: float = 10.0
    idle_poll: float = 1.0
    linger: float = 1.0
    # About what it costs to start and end the next micro-batch.
    poll_backoff_initial: float = 0.25
    poll_backoff_max: float = 30.0
    flush_interval: float = 60.0
    # Longer than Spark takes to start on a small machine.
    slot_start: float = 30.0


class CommitOffsets(Protocol):
    """Commits offsets of a connector without records; with exactly-once, in a transaction of their own."""

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
        """Take the id from its current owner."""
        ...

    def prove(
        self, transactional_id: str, current: ProducerIdentity, deadline: Deadline
    ) -> ProducerIdentity:
        """Verify that *current* still owns the id; raises ``FencedError`` otherwise."""
        ...

    def fence(
        self,
        transactional_ids: Collection[str],
        deadline: Deadline,
        *,
        waiting: Waiting | None = None,
    ) -> Mapping[str, ProducerIdentity]:
        """Make every producer of these ids unable to write; returns their next identities."""
        ...

    def transactional_ids(
        self, deadline: Deadline, *, waiting: Waiting | None = None
    ) -> frozenset[str] | None:
        """Those that the brokers know; ``None`` if they cannot list them."""
        ...

    def close(self) -> None:
        """Close the connections."""
        ...


class SecondaryOffsetStore(Protocol):
    """Writes one connector's secondary offsets to the worker's store, for one driver. Any thread may call."""

    def put(self, connector: str, offsets: Offsets) -> None:
        """Commit *offsets*; ``None`` removes. Raises ``ConnectorFencedError`` when it has another driver by now."""
        ...

    def close(self) -> None:
        """Release what it holds."""
        ...


class Secondary(Protocol):
    """Writes connectors' secondary offsets to the worker's store, if that is a topic (KIP-618)."""

    def fence(self, connector: str, *, is_used: bool, give_up: Callable[[], bool]) -> None:
        """Make every older writer of the connector's secondary offsets unable to write.

        *is_used* says that this worker writes such offsets. Raises ``RetriableError`` when Kafka does not answer in
        time.
        """
        ...

    def writer(
        self, connector: str, prove: Callable[[], None], *, by_wire: bool
    ) -> SecondaryOffsetStore:
        """The writer for a driver; *prove* raises unless it is the connector's driver.

        *by_wire* is whether headrace's own sender sends for the connector.
        """
        ...


class MembershipError(RetriableError):
    """This worker may have been given up by its group, with all its connectors."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    """The parts of a worker that its connectors use, from their own threads.

    *coordinator* makes a client for the transaction coordinators of a connector's cluster, which the caller closes. *secondary* is ``None``
    if the worker's store is not a topic. *prepare* creates what a connector needs in Kafka before it starts. *require_membership* raises
    :class:`MembershipError` while this worker may have been given up by its group: nothing is fenced, planned or committed then.
    *published_tasks* says how many tasks of a connector other workers know, if its configuration has not changed since; ``None`` where
    there are no others. *once* means to end when everything that is available has been read. *command_options* are those by which
    ``headrace`` commands reach the worker.
    """

    engine: Engine
    channel: Channel
    capacity: Capacity
    offsets: ConnectorOffsetStores
    task_counts: TaskCounts
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
    require_membership: Callable[[], None] = lambda: None
    published_tasks: Callable[[str], int | None] = lambda _: None
    once: bool = False
    command_options: str = ""
