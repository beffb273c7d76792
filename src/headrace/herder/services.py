"""What a herder depends on: some services from the start, and those that it has once Kafka is reached."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Protocol

from headrace.config.providers import Resolution
from headrace.connect.setting import Setting
from headrace.herder.answers import ConfigInfos, Plugin
from headrace.herder.errors import ServerError
from headrace.herder.request_signing import Requesters
from headrace.offsets.administration import OffsetChanges
from headrace.runtime.services import RunSpec, Services
from headrace.storage.protocols import (
    ConfigStore,
    StatusStore,
    TopicStore,
)

# Shorter than REST's time-out, so that this error is answered.
_WAIT_SECONDS = 60.0


class ConnectorValidator(Protocol):
    """Validates configurations and creates connectors from them; starts nothing. Any thread may call."""

    def plugins(self) -> Sequence[Plugin]:
        """All plugins that a configuration may name, in Kafka Connect's order."""
        ...

    def plugin_settings(self, name: str, version: str | None = None) -> Sequence[Setting]:
        """The settings of a plugin; for a connector, those common to all connectors as well.

        Raises :class:`~headrace.herder.errors.RequestError` for an unknown name.
        """
        ...

    def connector_version(self, name: str) -> str | None:
        """The version of the connector class *name*; ``None`` if it is unknown. Raises nothing."""
        ...

    def may_have_offset_group(self, name: str) -> bool:
        """Whether connectors of the class *name* may keep their offsets in a consumer group. Raises nothing."""
        ...

    def is_polled(self, name: str) -> bool | None:
        """Whether connectors of the class *name* need a slot for each of their tasks; ``None`` if it is unknown. Raises nothing."""
        ...

    def validate(self, config: Mapping[str, str | None], plugin: str | None = None) -> ConfigInfos:
        """The validation of *config*; *plugin* is the one in the request's path, if any.

        Raises :class:`~headrace.herder.errors.RequestError` where Kafka Connect answers with an
        error instead: the class is missing, or is not a plugin.
        """
        ...

    def resolved(self, config: Mapping[str, str | None]) -> Resolution:
        """*config* with the placeholders of the worker's providers replaced; may read files, raises nothing."""
        ...

    def run_spec(self, submitted: Resolution) -> RunSpec:
        """A fresh, un-started connector with every setting resolved, from a valid configuration.

        A key whose value is null counts as not set. Called for each start and for each hook. Raises
        :class:`~headrace.connect.errors.ConfigError`.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalServices:
    """What a herder has before Kafka is reached.

    *grace* is how long a task may take to end, in seconds. *once* means that connectors end when everything has been read, and are never
    restarted. *retries_start* means that a start that Kafka was not reached for in time is tried again until the herder is told to give up.
    *unsettled* returns the connectors whose offsets were being changed when the last process ended. *masks_passwords* hides connectors'
    passwords in answers. *tracks_topics* says whether active topics are answered, *may_reset_topics* whether they may be reset. Writes of a
    thread within *together* are durable at the end of the block. *place* is where configurations are, in sentences, and *slots* how many
    tasks run at once. *share_level* has all workers of a group set a logger's level, and *requesters* are told and believed by them; both
    are ``None`` for a worker that stands alone.
    """

    configs: ConfigStore
    statuses: StatusStore
    topics: TopicStore
    validator: ConnectorValidator
    worker_id: str
    grace: float
    once: bool = False
    retries_start: bool = False
    unsettled: Callable[[], Sequence[str]] = tuple
    masks_passwords: bool = False
    tracks_topics: bool = True
    may_reset_topics: bool = True
    together: Callable[[], AbstractContextManager[None]] = nullcontext
    place: str = "the state file"
    slots: int = 1
    share_level: Callable[[str, str], None] | None = None
    requesters: Requesters | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaServices:
    """What runs and changes of offsets need: available once Kafka has been reached."""

    services: Services
    changes: OffsetChanges
    cluster_id: str | None = None


class KafkaReadiness:
    """Whether Kafka has been reached, and the services that depend on it. Any thread may call."""

    def __init__(self, *, wait_seconds: float = _WAIT_SECONDS) -> None:
        self._wait_seconds = wait_seconds
        self._settled = threading.Event()
        self._kafka: KafkaServices | None = None
        self._delay: Exception | None = None
        self._failure: Exception | None = None

    def open(self, kafka: KafkaServices) -> None:
        """Kafka has been reached: give *kafka* to all callers."""
        self._delay = None
        self._kafka = kafka
        self._settled.set()

    def refuse(self, failure: Exception) -> None:
        """Kafka will not be reached: raise *failure* to all callers."""
        self._failure = failure
        self._settled.set()

    def put_off(self, reason: Exception) -> None:
        """Kafka has not been reached in time, for this *reason*, and is tried again: new callers do not wait for it."""
        self._delay = reason

    @property
    def delay(self) -> Exception | None:
        """Why Kafka has not been reached in time; ``None`` once it has been reached."""
        return self._delay

    @property
    def failure(self) -> Exception | None:
        """Why Kafka will not be reached."""
        return self._failure

    def wait(self) -> None:
        """Return once Kafka has been reached; raises why it will not be, as it was raised there."""
        self._settled.wait()
        if self._failure is not None:
            raise self._failure

    def peek(self) -> KafkaServices | None:
        """The services, if Kafka has been reached."""
        return self._kafka

    def kafka(self) -> KafkaServices:
        """The services; waits a minute for them, unless the start's deadline has passed.

        Raises :class:`~headrace.herder.errors.ServerError` when Kafka is not reached.
        """
        self._settled.wait(0 if self._delay else self._wait_seconds)
        if self._kafka is None:
            if isinstance(self._failure, ServerError):
                raise ServerError(str(self._failure))
            why = self._failure or self._delay or "Kafka has not been reached yet. Retry later."
            raise ServerError(f"The worker is still starting up: {why}")
        return self._kafka
