"""Every operation that REST and the command line may request from a worker."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from headrace.connect.setting import Setting
from headrace.herder.answers import (
    ConfigInfos,
    ConnectorInfo,
    ConnectorOffset,
    ConnectorStatus,
    Created,
    PartitionLag,
    PastChange,
    Plugin,
    ServerInfo,
    TaskInfo,
    WorkerHealth,
    WorkerInfo,
)
from headrace.herder.request_signing import Requesters
from headrace.herder.requests import CreateRequest, OffsetChange, RestartRequest, UndoRequest

Config = Mapping[str, str | None]
"""A connector's configuration as a request gave it: ``None`` where JSON had null."""


class Herder(Protocol):
    """Stores connectors and runs them. Any thread may call; calls block until they are answered.

    Every method raises :class:`~headrace.herder.errors.RequestError` for requests that it refuses, with
    Kafka Connect's messages, among them :class:`~headrace.herder.errors.ElsewhereError` where another worker of the group has to be
    asked. Changes are durable when the call returns, and made in the order of the calls.
    """

    # -- the worker -------------------------------------------------------------------------------------

    def server(self) -> ServerInfo:
        """Who this worker is. Does not wait for Kafka."""
        ...

    def health(self) -> WorkerHealth:
        """Whether requests are being answered; waits at most ten seconds (KIP-1017)."""
        ...

    def stage(self) -> str | None:
        """The worker's current or last operation, in KIP-1017's sentence; for requests that timed out.

        Never blocks.
        """
        ...

    def catch_up(self) -> None:
        """See all that other workers of the group have changed before this call; after a request that one of them has granted."""
        ...

    # -- connectors -------------------------------------------------------------------------------------

    def connectors(self) -> Sequence[str]:
        """The names of all connectors."""
        ...

    def create(self, request: CreateRequest) -> Created:
        """Validate and store a connector, and start it unless it is created PAUSED or STOPPED.

        With offsets, in five steps (KIP-995); an error then names its step.
        """
        ...

    def info(self, name: str) -> ConnectorInfo:
        """The connector as it was submitted."""
        ...

    def put_config(self, name: str, config: Config) -> Created:
        """Replace the configuration of a connector, or create it."""
        ...

    def patch_config(self, name: str, changes: Config) -> Created:
        """Merge *changes* into the configuration; ``None`` removes a key (KIP-477)."""
        ...

    def delete(self, name: str) -> None:
        """Stop the connector and delete it; its offsets stay."""
        ...

    def status(self, name: str) -> ConnectorStatus:
        """The states of the connector and its tasks."""
        ...

    def tasks(self, name: str) -> Sequence[TaskInfo]:
        """The connector's tasks with their configurations; none while it is stopped."""
        ...

    def pause(self, name: str) -> None:
        """Set the target state PAUSED; returns when that is stored, not when it has been reached."""
        ...

    def resume(self, name: str) -> None:
        """Set the target state RUNNING; returns when that is stored."""
        ...

    def stop(self, name: str) -> None:
        """Set the target state STOPPED, without tasks; returns when that is stored (KIP-875)."""
        ...

    def restart(self, request: RestartRequest) -> ConnectorStatus | None:
        """Restart the connector; with flags, the parts that they select, answered as RESTARTING."""
        ...

    def restart_task(self, name: str, task: int) -> None:
        """Restart one task."""
        ...

    # -- between workers of a group (KIP-507) ------------------------------------------------------------

    @property
    def requesters(self) -> Requesters | None:
        """By what the group's workers believe each other who has asked; ``None`` for a worker that stands alone."""
        ...

    def verify(self, body: bytes, signature: str | None, algorithm: str | None) -> None:
        """Return when another worker of the group has sent *body*, as its two headers must show; called before each of the following."""
        ...

    def put_tasks(
        self, name: str, configs: Sequence[Mapping[str, str]], *, made_from: str | None
    ) -> None:
        """Store the configurations of the connector's tasks, which another worker has made; for the leader.

        *made_from* is a digest of the connector's configuration that they were made from, if the other worker sends one.
        """
        ...

    def put_task_count(self, name: str, count: int | None) -> None:
        """Store the slot count of a generation that another worker is about to begin (KIP-618); for the leader.

        *count* is ``None`` where the other worker sends none: as many as there are tasks.
        """
        ...

    def await_quiet(self, name: str) -> None:
        """Return when nothing of the connector runs on this worker; what runs may still have to be ended."""
        ...

    # -- topics -----------------------------------------------------------------------------------------

    def topics(self, name: str) -> Sequence[str]:
        """The topics that the connector has written to since it was created or reset, sorted."""
        ...

    def reset_topics(self, name: str) -> None:
        """Forget which topics the connector has written to."""
        ...

    # -- offsets (KIP-875) ------------------------------------------------------------------------------
    #
    # A dry run changes nothing and works in every state of the connector. It answers what would change and
    # what the connector says about it.

    def offsets(self, name: str) -> Sequence[ConnectorOffset]:
        """The committed offsets; reads the store to its end first."""
        ...

    def offset_lag(self, name: str) -> Sequence[PartitionLag]:
        """The committed offsets with their lag; the connector may examine its source for it."""
        ...

    def alter_offsets(
        self, name: str, changes: Sequence[OffsetChange], *, dry_run: bool = False
    ) -> str:
        """Change the offsets of a STOPPED connector, all of them or none; returns the sentence of success."""
        ...

    def reset_offsets(self, name: str, *, dry_run: bool = False) -> str:
        """Delete all offsets of a STOPPED connector; returns the sentence of success."""
        ...

    def offset_history(self, name: str) -> Sequence[PastChange]:
        """The changes of its offsets, the newest first; also of a deleted connector."""
        ...

    def undo_offsets(self, request: UndoRequest) -> str:
        """Undo a change of the offsets of a STOPPED connector; returns the sentence of success."""
        ...

    # -- plugins and validation -------------------------------------------------------------------------

    def plugins(self) -> Sequence[Plugin]:
        """All plugins that a configuration may name, in Kafka Connect's order."""
        ...

    def plugin_settings(self, name: str, version: str | None = None) -> Sequence[Setting]:
        """The settings of a plugin; for a connector, those common to all connectors as well."""
        ...

    def validate(self, plugin: str, config: Config) -> ConfigInfos:
        """The validation of *config*; problems are part of the answer, not errors."""
        ...

    # -- the group (KIP-995) ----------------------------------------------------------------------------

    def workers(self) -> Sequence[WorkerInfo]:
        """The workers of the group, by their ids; a worker that stands alone is its whole group."""
        ...

    def known_workers(self, *, unreachable: str | None = None) -> Sequence[WorkerInfo]:
        """As :meth:`workers`, without asking another worker; that at the URL *unreachable* is known not to answer."""
        ...

    def relinquish(self, worker: str, *, stay: bool = False, signed: bool = False) -> None:
        """Have the worker with the id *worker* hand its connectors over to the others, and end; returns when that has been arranged.

        With *stay* it does not end, and takes no connectors until :meth:`rejoin`. Raises ``NotFoundError`` for an unknown id, and
        ``ElsewhereError`` where another worker has to be asked; if it is to be *signed*, this one asks it.
        """
        ...

    def share_level(self, logger: str, level: str) -> bool:
        """Have all workers of the group, with this one, set the *level* of *logger*, as soon as they learn of it (KIP-976).

        Returns whether they are: a worker that stands alone does nothing here.
        """
        ...

    def rejoin(self, worker: str, *, signed: bool = False) -> None:
        """Have the worker take connectors again, after :meth:`relinquish`; returns when that has been arranged.

        Raises as that does.
        """
        ...
