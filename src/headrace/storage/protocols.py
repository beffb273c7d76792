"""State that survives a restart: offsets, configurations, statuses, changes of offsets. Protocols; the backends are beside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum
from typing import Protocol

from headrace.connect.task import Offsets
from headrace.kafka.sender import OffsetEntry


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredConnector:
    """A connector as stored: its configuration as submitted, and its target state.

    A value is ``None`` where JSON had null.
    """

    name: str
    config: Mapping[str, str | None] = field(repr=False)
    target_state: str = "RUNNING"


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskCount:
    """How many slots a connector's generations may have left, each with a transactional id of its own."""

    slots: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionKey:
    """The secret with which the workers of a group sign their requests to each other (KIP-507); its leader makes it.

    *algorithm* is Java's name for how it was made, such as ``HmacSHA256``, and *created_ms* when, in milliseconds since 1970.
    """

    key: bytes = field(repr=False)
    algorithm: str
    created_ms: int


class TaskCounts(Protocol):
    """How many tasks of each connector may write, which fencing needs. Durable on return of each write."""

    def task_count(self, connector: str) -> TaskCount | None:
        """What was last stored by ``put_task_count``."""
        ...

    def put_task_count(self, connector: str, count: TaskCount) -> None:
        """Store the slot count of a generation, before its first slot starts."""
        ...


class ConfigStore(TaskCounts, Protocol):
    """Connectors' configurations, and their task counts. Durable on return of each write."""

    def connectors(self) -> Mapping[str, StoredConnector]:
        """Every stored connector by name."""
        ...

    def connector(self, name: str) -> StoredConnector | None:
        """The stored connector of that name."""
        ...

    def put_connector(self, connector: StoredConnector) -> None:
        """Store or replace a connector, which the worker that has it then starts anew, also if nothing of it is different."""
        ...

    def put_target_state(self, name: str, target_state: str) -> None:
        """Change the target state alone; without effect when no connector of that name is stored."""
        ...

    def delete_connector(self, name: str) -> None:
        """Forget a connector's configuration and tasks; its offsets and task count stay."""
        ...

    def task_configs(self, connector: str) -> Sequence[Mapping[str, str]]:
        """What was last stored by ``put_task_configs``, in the order of the tasks; empty before."""
        ...

    def put_task_configs(self, connector: str, configs: Sequence[Mapping[str, str]]) -> None:
        """Store a connector's tasks, in place of those that it had."""
        ...


class SettingStore(Protocol):
    """Facts about one worker, which other workers of its group do not share."""

    def setting(self, key: str) -> str | None:
        """A fact about this worker, such as its identity."""
        ...

    def put_setting(self, key: str, value: str) -> None:
        """Store a fact about this worker."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """State of a connector or a task, with the fields of Kafka Connect's status records."""

    state: str
    worker_id: str
    generation: int = 0
    version: str | None = None
    trace: str | None = None


class StatusStore(Protocol):
    """The last known state of every connector and task. *task* is ``None`` for the connector itself."""

    def put(self, connector: str, task: int | None, status: Status) -> None:
        """Store a status; durable on return."""
        ...

    def statuses(self, connector: str) -> Mapping[int | None, Status]:
        """The connector's own status under ``None``, and those of its tasks."""
        ...

    def connectors(self) -> Sequence[str]:
        """The names that have any status, sorted."""
        ...

    def forget(self, connector: str, *, from_task: int | None = None) -> None:
        """Remove all statuses of *connector*, or those of its tasks from number *from_task* on."""
        ...


class TopicStore(Protocol):
    """The topics that each connector has written to since it was created or reset (KIP-558)."""

    def topics(self, connector: str) -> Sequence[str]:
        """The topics, sorted."""
        ...

    def put(self, connector: str, topics: Sequence[str]) -> None:
        """Add *topics*; durable on return."""
        ...

    def forget(self, connector: str) -> None:
        """Remove all of them."""
        ...


class Operation(StrEnum):
    """The kind of a change of offsets."""

    ALTER = "alter"
    RESET = "reset"
    CREATE = "create"
    UNDO = "undo"


class Phase(StrEnum):
    """How a change that has not finished is to end."""

    WRITING = "writing"
    """Its offsets are being written: the change is done if the store has them."""
    UNDOING = "undoing"
    """It failed, and was answered with an error: the previous offsets are restored."""
    WIPING = "wiping"
    """A creation that failed after its offsets were written: the connector's name must have none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryEntry:
    """One change of a connector's offsets. *id* counts up, and is 0 before the entry is stored.

    *who* requested it, if that is known, and *at_ms* when, in milliseconds since 1970. *before* and *after*
    hold the partitions that changed, and only these; ``None`` stands for no offset. *done* is false while the
    change is under way, and if it failed. *undoes* is the change that this one reverts. *of_deleted* says
    that the connector was deleted since: one of the same name is another connector.
    """

    id: int = 0
    connector: str
    operation: Operation
    who: str | None
    at_ms: int
    before: Offsets
    after: Offsets
    done: bool = False
    undoes: int | None = None
    of_deleted: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Intent:
    """A change that has not finished. *stored* is the connector that a creation stores with it."""

    entry: HistoryEntry
    stored: StoredConnector | None = None
    phase: Phase = Phase.WRITING


@dataclass(frozen=True, slots=True, kw_only=True)
class Retention:
    """How much history is kept: that many *entries* of each connector, none older than *max_age*."""

    entries: int = 100
    max_age: timedelta = timedelta(days=365)


class HistoryStore(Protocol):
    """The changes of offsets that were requested. Any thread may call."""

    def entries(self, connector: str) -> Sequence[HistoryEntry]:
        """The changes of *connector*, the newest first; they outlive the connector."""
        ...


class IntentStore(Protocol):
    """Changes that have not finished, each with its entry in the history. Durable on return of each write.

    Any thread may call. Writes raise :class:`~headrace.connect.errors.RetriableError` when the disk
    fails; then nothing of them is stored.
    """

    def open_intents(self) -> Sequence[Intent]:
        """The open changes, the oldest first."""
        ...

    def begin(self, intent: Intent, keep: Retention) -> Intent:
        """Store *intent* and its entry, which gets its number, and delete entries that *keep* excludes."""
        ...

    def move(self, intent: Intent, phase: Phase) -> Intent:
        """Store the intent's new phase."""
        ...

    def finish(self, intent: Intent, entries: Sequence[OffsetEntry] = ()) -> None:
        """In one transaction: mark the change done, store its connector, end the intent.

        If the offsets are in the same storage, *entries* are stored as well, and the offset store is
        notified of them. The caller must keep other users away from the offset store meanwhile.
        """
        ...

    def abandon(self, intent: Intent) -> None:
        """End the intent; its entry stays as one that was not done."""
        ...


class ChangeStore(HistoryStore, IntentStore, Protocol):
    """The history and the open changes, in one storage."""
