"""What survives a restart: offsets, configurations, statuses. Protocols only; the backends are beside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from headrace.connect.partition import SourceOffset, SourcePartition
from headrace.connect.task import Offsets
from headrace.kafka.sender import OffsetEntry


class OffsetStore(Protocol):
    """Committed source offsets, by connector. One owner thread; the only truth about progress."""

    def refresh(self) -> None:
        """See everything committed before this call.

        Blocks; raises :class:`~headrace.connect.errors.RetriableError` naming the store when its end is
        not reached before the deadline that the store was made with.
        """
        ...

    def known(self, connector: str) -> Mapping[SourcePartition, SourceOffset]:
        """All offsets of *connector* as of the last ``refresh``; a snapshot that does not change."""
        ...

    def is_empty(self) -> bool:
        """Whether no connector has an offset, as of the last ``refresh``."""
        ...

    def put(self, connector: str, offsets: Offsets) -> None:
        """Commit *offsets* atomically; ``None`` removes. Durable on return.

        Not for offsets that must share a transaction with records: those go through the sender.
        """
        ...

    def foreign(self, connector: str) -> Mapping[SourcePartition, SourceOffset]:
        """Those of ``known`` that are stored under other bytes than ours, alone or beside ours.

        Putting them as they are leaves only our bytes of them. Asked once when a connector is taken over.
        """
        ...

    def entries_for(self, connector: str, offsets: Offsets) -> list[OffsetEntry]:
        """The records that ``put`` would write, for whoever writes them in a transaction of its own.

        Tombstones are among them for other bytes of the same partitions, as of the last ``refresh``.
        Raises ``ValueError`` for text that cannot be stored.
        """
        ...

    def close(self) -> None:
        """Release the store's clients or files."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredConnector:
    """A connector as stored: its configuration as submitted, and the state it is meant to be in.

    A value is ``None`` where JSON had null.
    """

    name: str
    config: Mapping[str, str | None] = field(repr=False)
    target_state: str = "RUNNING"


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskCount:
    """How many slots a connector's generations may have left behind.

    *clean* says that every slot of the last micro-batch confirmed its end, so nothing needs fencing.
    """

    slots: int
    clean: bool


class ConfigStore(Protocol):
    """Connectors' configurations and what fencing needs to know. Durable on return of each write."""

    def connectors(self) -> Mapping[str, StoredConnector]:
        """Every stored connector by name."""
        ...

    def connector(self, name: str) -> StoredConnector | None:
        """The stored connector of that name."""
        ...

    def put_connector(self, connector: StoredConnector) -> None:
        """Store or replace a connector."""
        ...

    def delete_connector(self, name: str) -> None:
        """Forget a connector's configuration and tasks; its offsets and task count stay."""
        ...

    def task_configs(self, connector: str) -> Sequence[Mapping[str, str]]:
        """What was last stored by ``put_task_configs``, in the order of the tasks; empty before."""
        ...

    def put_task_configs(self, connector: str, configs: Sequence[Mapping[str, str]]) -> None:
        """Store which tasks a connector has, in place of those that it had."""
        ...

    def task_count(self, connector: str) -> TaskCount | None:
        """What was last stored by ``put_task_count``."""
        ...

    def put_task_count(self, connector: str, count: TaskCount) -> None:
        """Store the slot count of a generation, before its first slot starts or after its clean end."""
        ...

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
        """The names of which there is any status, sorted."""
        ...

    def forget(self, connector: str, *, from_task: int | None = None) -> None:
        """Remove all statuses of *connector*, or those of its tasks from number *from_task* on."""
        ...


class TopicStore(Protocol):
    """The topics that each connector has written to since it was made or reset (KIP-558)."""

    def topics(self, connector: str) -> Sequence[str]:
        """The topics, sorted."""
        ...

    def put(self, connector: str, topics: Sequence[str]) -> None:
        """Add *topics*; durable on return."""
        ...

    def forget(self, connector: str) -> None:
        """Remove all of them."""
        ...
