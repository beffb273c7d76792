"""Every operation that REST and the command line may ask of a worker."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
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
)
from headrace.herder.errors import NotFoundError
from headrace.herder.requests import CreateRequest, OffsetChange, RestartRequest, UndoRequest
from headrace.observe.metrics import ConnectorStanding

Config = Mapping[str, str | None]
"""A connector's configuration as a request gave it: ``None`` where JSON had null."""


class Herder(Protocol):
    """Keeps connectors and makes them run. Any thread may call; calls block until they are answered.

    Every method raises :class:`~headrace.herder.errors.RequestError` for what it refuses, with the
    words of Kafka Connect. What changes anything is durable when the call returns, and done in the order
    of the calls.
    """

    # -- the worker -------------------------------------------------------------------------------------

    def server(self) -> ServerInfo:
        """Who this worker is. Does not wait for Kafka."""
        ...

    def health(self) -> WorkerHealth:
        """Whether requests are being answered; waits at most ten seconds (KIP-1017)."""
        ...

    def stage(self) -> str | None:
        """What the worker is doing now, or did last, in KIP-1017's sentence; for requests that took too long.

        Never blocks.
        """
        ...

    # -- connectors -------------------------------------------------------------------------------------

    def connectors(self) -> Sequence[str]:
        """The names of all connectors."""
        ...

    def create(self, request: CreateRequest) -> Created:
        """Validate and store a connector, and start it unless it is created PAUSED or STOPPED.

        With offsets in five steps (KIP-995); an error is then told with its step.
        """
        ...

    def info(self, name: str) -> ConnectorInfo:
        """The connector as it was submitted."""
        ...

    def put_config(self, name: str, config: Config) -> Created:
        """Replace the configuration of a connector, or create it."""
        ...

    def patch_config(self, name: str, changes: Config) -> Created:
        """Merge *changes* into the configuration; ``None`` takes a key out (KIP-477)."""
        ...

    def delete(self, name: str) -> None:
        """Stop the connector and forget it; its offsets stay."""
        ...

    def status(self, name: str) -> ConnectorStatus:
        """How the connector and its tasks are."""
        ...

    def tasks(self, name: str) -> Sequence[TaskInfo]:
        """The connector's tasks with their configurations; none while it is stopped."""
        ...

    def pause(self, name: str) -> None:
        """Want the connector to be PAUSED; returns when that is stored, not when it is so."""
        ...

    def resume(self, name: str) -> None:
        """Want the connector to be RUNNING; returns when that is stored."""
        ...

    def stop(self, name: str) -> None:
        """Want the connector to be STOPPED, without tasks; returns when that is stored (KIP-875)."""
        ...

    def restart(self, request: RestartRequest) -> ConnectorStatus | None:
        """Restart the connector; with flags, those of it that they choose, told as RESTARTING."""
        ...

    def restart_task(self, name: str, task: int) -> None:
        """Restart one task."""
        ...

    # -- topics -----------------------------------------------------------------------------------------

    def topics(self, name: str) -> Sequence[str]:
        """The topics that the connector has written to since it was made or reset, sorted."""
        ...

    def reset_topics(self, name: str) -> None:
        """Forget which topics the connector has written to."""
        ...

    # -- offsets (KIP-875) ------------------------------------------------------------------------------
    #
    # A dry run changes nothing, is answered in every state of the connector, and tells what would change and
    # what the connector says of it.

    def offsets(self, name: str) -> Sequence[ConnectorOffset]:
        """What is committed now; reads the store to its end first."""
        ...

    def offset_lag(self, name: str) -> Sequence[PartitionLag]:
        """What is committed now, and how much there is behind it; asks the connector, which may look."""
        ...

    def alter_offsets(
        self, name: str, changes: Sequence[OffsetChange], *, dry_run: bool = False
    ) -> str:
        """Change the offsets of a STOPPED connector, all of them or none; the sentence of success."""
        ...

    def reset_offsets(self, name: str, *, dry_run: bool = False) -> str:
        """Forget all offsets of a STOPPED connector; the sentence of success."""
        ...

    def offset_history(self, name: str) -> Sequence[PastChange]:
        """The changes of its offsets, the newest first; also of a connector that is gone."""
        ...

    def undo_offsets(self, request: UndoRequest) -> str:
        """Put back what a change of the offsets of a STOPPED connector changed; the sentence of success."""
        ...

    # -- plugins and validation -------------------------------------------------------------------------

    def plugins(self) -> Sequence[Plugin]:
        """Everything that a configuration may name, in Kafka Connect's order."""
        ...

    def plugin_settings(self, name: str, version: str | None = None) -> Sequence[Setting]:
        """The settings of a plugin; of a connector those of every connector, too."""
        ...

    def validate(self, plugin: str, config: Config) -> ConfigInfos:
        """Everything there is to say about *config*; problems are part of the answer, not errors."""
        ...


def standings(herder: Herder) -> Sequence[ConnectorStanding]:
    """Every connector of *herder* now; called on the thread that answers who measures."""
    return list(_standings(herder))


def _standings(herder: Herder) -> Iterator[ConnectorStanding]:
    for name in herder.connectors():
        try:
            status, info = herder.status(name), herder.info(name)
        except NotFoundError:
            # Deleted since its name was read.
            continue
        yield ConnectorStanding(
            name=name,
            type=status.type,
            class_name=info.config.get("connector.class") or "",
            state=status.connector.state.value,
            version=status.connector.version,
            tasks={each.task: each.state.value for each in status.tasks if each.task is not None},
        )
