"""What a standalone herder is made of: what is there from its first second, and what comes with Kafka."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Protocol

from headrace.config.secret_values import Resolution
from headrace.connect.setting import Setting
from headrace.herder.answers import ConfigInfos, Plugin
from headrace.offsets.administration import OffsetChanges
from headrace.runtime.services import RunSpec, Services
from headrace.storage.protocols import ConfigStore, StatusStore, TopicStore


class Admission(Protocol):
    """Judges configurations and makes connectors of them; starts nothing. Any thread may call."""

    def plugins(self) -> Sequence[Plugin]:
        """Everything that a configuration may name, in Kafka Connect's order."""
        ...

    def plugin_settings(self, name: str, version: str | None = None) -> Sequence[Setting]:
        """The settings of a plugin; of a connector those of every connector, too.

        Raises :class:`~headrace.herder.errors.RequestError` for a name that is no plugin's.
        """
        ...

    def connector_version(self, name: str) -> str | None:
        """The version of the connector that *name* stands for; ``None`` for a name of none. Raises nothing."""
        ...

    def validate(self, config: Mapping[str, str | None], plugin: str | None = None) -> ConfigInfos:
        """Everything there is to say about *config*; *plugin* is the one in the request's path, if any.

        Raises :class:`~headrace.herder.errors.RequestError` where Kafka Connect answers with an
        error instead: there is no class, or it is no plugin's.
        """
        ...

    def resolved(self, config: Mapping[str, str | None]) -> Resolution:
        """*config* with the placeholders of the worker's providers replaced; may read files, raises nothing."""
        ...

    def admitted(self, config: Mapping[str, str]) -> RunSpec:
        """A fresh, un-started connector with every setting resolved, of a *config* that is valid.

        Called for each start and for each hook. Raises :class:`~headrace.connect.errors.ConfigError`.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalServices:
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
class KafkaServices:
    """What runs and changes of offsets stand on: there as soon as Kafka has been reached."""

    services: Services
    changes: OffsetChanges
    cluster_id: str | None = None
