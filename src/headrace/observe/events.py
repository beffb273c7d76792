"""Events of running connectors and of their worker's group, for listeners such as the log, the summary and the metrics."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectorStarted:
    """A connector's thread runs, before its first plan."""

    connector: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectorStopped:
    """A connector has ended as requested, or because everything has been read."""

    connector: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectorFailed:
    """A connector has ended with an error that no retry can resolve."""

    connector: str
    reason: str
    trace: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectorFailedInPart:
    """A part of a connector's source is not read, and needs someone to decide; the rest is read."""

    connector: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectorRecovered:
    """All of a connector's source is read again, after :class:`ConnectorFailedInPart`."""

    connector: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MicroBatchStarted:
    """Work was distributed to slots; *total_bytes* is its size, if that is known.

    *has_more* says that there is more, for the next micro-batch. *objects* are the files or other objects that are
    read; log lines omit them.
    """

    connector: str
    slots: int
    total_bytes: int | None = None
    has_more: bool | None = None
    objects: Sequence[str] = field(default=(), repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotClaimed:
    """A slot has claimed its work in the Python process *pid* on *host*; it only *reads* if another process writes."""

    connector: str
    task: int
    pid: int
    host: str
    reads: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Amounts:
    """How often something happened, and its amounts: in total, the least and the most at a time."""

    count: int = 0
    total: float = 0
    least: float = 0
    most: float = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskCounts:
    """What one task has done so far in the running micro-batch, in seconds and records.

    Field names are those of the slots' progress. *polled_records* includes bad records; *polls* and *batches* cover
    polls that returned anything. Of the tolerated bad records, *dead_lettered* are in the topic of dead letters,
    *skipped* nowhere. *moved_offsets* were committed without a record, by ``update_offsets``.

    *copied_batches* and *copied_bytes* are record batches that were copied unopened, ``forwarded`` as they were, or by the reason
    for which they were rebuilt.

    *record_errors* are records that could not be read, converted or sent, including those that failed the task;
    *errors_logged* of them are in the log. *retries* counts retried operations, *dead_letters_failed* dead letters that
    could not be written. Work that is repeated after a failure counts again.
    """

    task: int
    polled_records: int = 0
    committed_records: int = 0
    dead_lettered: int = 0
    skipped: int = 0
    moved_offsets: int = 0
    record_errors: int = 0
    retries: int = 0
    errors_logged: int = 0
    dead_letters_failed: int = 0
    copied_batches: Counter[str] = field(default_factory=Counter[str])
    copied_bytes: Counter[str] = field(default_factory=Counter[str])
    polls: Amounts = Amounts()
    batches: Amounts = Amounts()
    commits: Amounts = Amounts()
    transaction_sizes: Amounts = Amounts()


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotProgress:
    """What all slots of the running micro-batch have done so far; about once a second.

    *tasks* has the same for each task that has begun, for metrics; log lines omit it. Of tolerated bad records,
    *dead_lettered* are in the topic of dead letters, *skipped* nowhere; *quarantined* of them are the remainders of
    objects that are read no further.
    """

    connector: str
    records: int
    bytes: int
    committed_records: int
    committed_bytes: int
    dead_lettered: int = 0
    skipped: int = 0
    quarantined: int = 0
    tasks: tuple[TaskCounts, ...] = field(default=(), repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicsWritten:
    """The open micro-batch has committed records in these *topics* so far; emitted when there are new ones."""

    connector: str
    topics: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class MicroBatchEnded:
    """All slots of a micro-batch have ended; *committed_records* are committed in Kafka.

    *dead_lettered* and *skipped* are tolerated bad records, *quarantined* of them the remainders of objects that are
    read no further; ``None`` when there were none. *has_more* says that the next micro-batch follows at once with
    work that did not fit into this one.
    """

    connector: str
    committed_records: int
    has_more: bool | None = None
    dead_lettered: int | None = None
    skipped: int | None = None
    quarantined: int | None = None

    def brought_anything(self) -> bool:
        """Whether a record was committed, dead-lettered or skipped."""
        return bool(self.committed_records) or self.had_bad_records()

    def had_bad_records(self) -> bool:
        """Whether a record was dead-lettered or skipped."""
        return bool(self.dead_lettered or self.skipped)


@dataclass(frozen=True, slots=True, kw_only=True)
class Committed:
    """The driver has committed *offsets* source offsets without records."""

    connector: str
    offsets: int


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetsMoved:
    """While nothing was read, a *task* has moved *offsets* source offsets; the driver has committed them."""

    connector: str
    task: int
    offsets: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectorIdle:
    """There is nothing to read now. Emitted at each check; logged at DEBUG only."""

    connector: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """A connector cannot continue at the moment, and retries by itself; *is_shared* if the reason is all of its worker's connectors'."""

    connector: str
    reason: str
    is_shared: bool = field(default=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Queued:
    """A connector waits for its turn: it needs *slots* at the same time, and others have them now."""

    connector: str
    slots: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Resumed:
    """The reason for a connector's wait has ended."""

    connector: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Replanned:
    """A micro-batch was abandoned; work that it had not committed is planned again. *is_shared* as in :class:`Waiting`, which follows then."""

    connector: str
    reason: str
    is_shared: bool = field(default=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskFailed:
    """A task has ended with an error that no retry can resolve."""

    connector: str
    task: int
    reason: str
    trace: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Rebalancing:
    """The worker has begun to join its group once more; the same rebalance may be reported several times."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rebalanced:
    """The worker has joined a *generation* of its group, and what it was assigned is in force.

    *leader* is the URL of the group's leader, *protocol* the value of ``connect.protocol`` that the members have agreed on.
    *seconds* went by since the worker began to join.
    """

    generation: int
    leader: str
    protocol: str
    seconds: float


Event = (
    ConnectorStarted
    | ConnectorStopped
    | ConnectorFailed
    | ConnectorFailedInPart
    | ConnectorRecovered
    | MicroBatchStarted
    | SlotClaimed
    | SlotProgress
    | TopicsWritten
    | MicroBatchEnded
    | Committed
    | OffsetsMoved
    | ConnectorIdle
    | Waiting
    | Queued
    | Resumed
    | Replanned
    | TaskFailed
    | Rebalancing
    | Rebalanced
)

EventListener = Callable[[Event], None]
"""Is notified of events. Called from any thread; returns soon and never raises."""


def to_all(*listeners: EventListener) -> EventListener:
    """One listener that passes each event on to all *listeners*, in order."""

    def emit(event: Event) -> None:
        for listener in listeners:
            listener(event)

    return emit
