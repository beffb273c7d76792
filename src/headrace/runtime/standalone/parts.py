"""What a standalone herder is made of: what is there from its first second, and what comes with Kafka."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Protocol

from headrace.connect.errors import ConnectError
from headrace.runtime.herder.admission import Admission
from headrace.runtime.herder.answers import ConnectorOffset
from headrace.runtime.herder.requests import OffsetChange
from headrace.runtime.services import RunSpec, Services
from headrace.storage.changes import HistoryEntry
from headrace.storage.protocols import ConfigStore, StatusStore, StoredConnector, TopicStore


class Changes(Protocol):
    """See :class:`~headrace.runtime.offset_changes.changes.OffsetChanges`. Any thread may call.

    A *dry_run* changes nothing, so the connector may run meanwhile.
    """

    def read(self, name: str) -> Sequence[ConnectorOffset]:
        """What is committed now."""
        ...

    def history(self, name: str) -> Sequence[HistoryEntry]:
        """The changes of its offsets, the newest first; also of a connector that is gone."""
        ...

    def alter(
        self,
        spec: RunSpec,
        changes: Sequence[OffsetChange],
        *,
        who: str | None,
        dry_run: bool = False,
    ) -> str:
        """Change the offsets of a connector of which nothing runs; the sentence of success."""
        ...

    def reset(self, spec: RunSpec, *, who: str | None, dry_run: bool = False) -> str:
        """Forget its offsets; the sentence of success."""
        ...

    def undo(
        self,
        spec: RunSpec,
        entry: int,
        *,
        who: str | None,
        force: bool = False,
        dry_run: bool = False,
    ) -> str:
        """Put back what a change changed; the sentence of success."""
        ...

    def create(
        self,
        spec: RunSpec,
        stored: StoredConnector,
        initial_offsets: Sequence[OffsetChange],
        *,
        who: str | None,
        dry_run: bool = False,
    ) -> str:
        """Steps 2 to 5 of KIP-995: *stored* is in the store when this returns; the sentence of success."""
        ...

    def recover(self, admitted: Callable[[StoredConnector], RunSpec]) -> Mapping[str, ConnectError]:
        """Settle what an earlier process left half done; what cannot be, by its connector's name."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalParts:
    """What a herder has before Kafka is there.

    *slots* is how many tasks may run at once, *grace* how long one may take to end, in seconds. *unsettled*
    are the connectors whose offsets somebody was changing when the last process ended. *masks_passwords* hides
    connectors' passwords in what is answered. What a thread writes within *together* is durable at its end.
    """

    configs: ConfigStore
    statuses: StatusStore
    topics: TopicStore
    admission: Admission
    worker_id: str
    slots: int
    grace: float
    unsettled: Callable[[], Sequence[str]] = tuple
    masks_passwords: bool = False
    together: Callable[[], AbstractContextManager[None]] = nullcontext


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaParts:
    """What runs and changes of offsets stand on: there as soon as Kafka has been reached."""

    services: Services
    changes: Changes
    cluster_id: str | None = None
