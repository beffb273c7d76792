"""What can happen while connectors run. Whoever sees it tells it; logs, progress and metrics listen."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectorStarted:
    """A connector's thread runs and its first plan is about to be made."""

    connector: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectorStopped:
    """A connector has ended as it was asked to, or because all there was has been read."""

    connector: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectorFailed:
    """A connector has ended with an error that no retry mends."""

    connector: str
    reason: str
    trace: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MicroBatchStarted:
    """Work was shared out; *total_bytes* is what it holds in all, if that is known.

    *has_more* says that there is more, for the next micro-batch. *objects* are the files or the like that are read;
    log lines leave them out.
    """

    connector: str
    slots: int
    total_bytes: int | None = None
    has_more: bool | None = None
    objects: Sequence[str] = field(default=(), repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotClaimed:
    """A slot has claimed its work from the Python process *pid* on *host*; *reads* where another one writes."""

    connector: str
    task: int
    pid: int
    host: str
    reads: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Amounts:
    """How often something came, and how much of it: in all, the least and the most at one time."""

    count: int = 0
    total: float = 0
    least: float = 0
    most: float = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskCounts:
    """What one task has done so far in the running micro-batch; seconds and records.

    *polled* counts bad records, too; *polls* and *batches* are about polls that returned anything. Of the bad
    ones that were passed over, *dead_lettered* are in the topic of dead letters, *skipped* nowhere. *moved_offsets*
    were committed without a record, by ``update_offsets``.

    *record_errors* are all that could not be read, converted or sent, those that failed the task included;
    *errors_logged* of them are in the log. *retries* count what was tried again, *letters_refused* dead letters
    that could not be written. What is done again after a failure counts again.
    """

    task: int
    polled: int = 0
    committed: int = 0
    dead_lettered: int = 0
    skipped: int = 0
    moved_offsets: int = 0
    record_errors: int = 0
    retries: int = 0
    errors_logged: int = 0
    letters_refused: int = 0
    polls: Amounts = Amounts()
    batches: Amounts = Amounts()
    commits: Amounts = Amounts()
    transaction_sizes: Amounts = Amounts()


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotProgress:
    """What the slots of the running micro-batch have done so far, all together; about once a second.

    *tasks* tells the same of each task that has begun, for metrics; log lines leave it out. Of bad records
    that were passed over, *dead_lettered* are in the topic of dead letters, *skipped* nowhere; *quarantined*
    of them are the rests of objects that are read no further.
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
    """The open micro-batch has committed records in these *topics* so far; told when there are more of them."""

    connector: str
    topics: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class MicroBatchEnded:
    """All slots of a micro-batch are over; *committed_records* are in Kafka for good.

    *dead_lettered* and *skipped* bad records were passed over besides, *quarantined* of them are the rests of
    objects that are read no further; ``None`` when there were none. *has_more* says that the next one
    follows at once with what this one was not given.
    """

    connector: str
    committed_records: int
    has_more: bool | None = None
    dead_lettered: int | None = None
    skipped: int | None = None
    quarantined: int | None = None

    def brought_anything(self) -> bool:
        """Whether a record was committed or passed over."""
        return bool(self.committed_records or self.dead_lettered or self.skipped)


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
    """There is nothing to read now. Told at each look; a healthy idle connector is not logged."""

    connector: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """A connector cannot go on at the moment and tries again by itself."""

    connector: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Queued:
    """A connector waits for its turn: it needs *slots* at once, and others have them now."""

    connector: str
    slots: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Resumed:
    """What a connector waited for is there again."""

    connector: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Replanned:
    """A micro-batch was given up; what it had not committed is planned again."""

    connector: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskFailed:
    """A task has ended with an error that no retry mends."""

    connector: str
    task: int
    reason: str
    trace: str | None = None


Event = (
    ConnectorStarted
    | ConnectorStopped
    | ConnectorFailed
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
)

EventListener = Callable[[Event], None]
"""Says that something happened. Called from any thread; returns soon and never raises."""


def to_all(*listeners: EventListener) -> EventListener:
    """One listener that passes each event on to all *listeners*, in order."""

    def emit(event: Event) -> None:
        for listener in listeners:
            listener(event)

    return emit
