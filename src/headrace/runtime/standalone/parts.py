"""What a standalone herder is made of: what is there from its first second, and what comes with Kafka."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

from headrace.runtime.herder.admission import Admission
from headrace.runtime.offset_changes.changes import OffsetChanges
from headrace.runtime.services import Services
from headrace.storage.protocols import ConfigStore, StatusStore, TopicStore


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalParts:
    """What a herder has before Kafka is there.

    *slots* is how many tasks may run at once, *grace* how long one may take to end, in seconds. *unsettled*
    are the connectors whose offsets somebody was changing when the last process ended. *masks_passwords* hides
    connectors' passwords in what is answered. Whether topics that were written to are told of, and may be
    forgotten, say *tracks_topics* and *may_reset_topics*. What a thread writes within *together* is durable at its end.
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
    tracks_topics: bool = True
    may_reset_topics: bool = True
    together: Callable[[], AbstractContextManager[None]] = nullcontext


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaParts:
    """What runs and changes of offsets stand on: there as soon as Kafka has been reached."""

    services: Services
    changes: OffsetChanges
    cluster_id: str | None = None
