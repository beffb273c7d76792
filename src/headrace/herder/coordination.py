"""Which worker runs a connector, and who may change the cluster: what differs between a worker that stands alone and one of a group."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from headrace.herder.answers import WorkerInfo
from headrace.herder.errors import ElsewhereError
from headrace.herder.internal_requests import InternalRequest
from headrace.herder.reconciler import Reconciler
from headrace.herder.request_queue import RequestQueue, Stages
from headrace.herder.services import KafkaReadiness, KafkaServices, LocalServices
from headrace.runtime.services import RunSpec
from headrace.storage.protocols import StoredConnector

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class HerderParts:
    """What a herder and its coordination share. *opening* waits for Kafka, on a thread of its own.

    It is called again after a ``RetriableError`` if starts are retried.
    """

    local: LocalServices
    opening: Callable[[], KafkaServices]
    kafka_readiness: KafkaReadiness
    queue: RequestQueue
    stages: Stages
    reconciler: Reconciler


class Coordination(Protocol):
    """Has the reconciler start what this worker is to run, and end what it is no longer to run.

    Its owner is the herder, which calls ``begin`` once, ``ready`` once, and ``close`` at the end.
    """

    def begin(self, only: Collection[str] | None) -> None:
        """Start; returns before Kafka has been reached. Of the connectors *only* those of these names are run."""
        ...

    def ready(self) -> None:
        """Let connectors run, as soon as Kafka has been reached."""
        ...

    def give_up(self) -> None:
        """Fail, if Kafka is being tried again after the start's deadline; otherwise nothing happens. Any thread may call."""
        ...

    def close(self) -> None:
        """End its threads. Called before the herder's own thread ends."""
        ...

    def leave_at_once(self) -> None:
        """Do not wait, from now on, until others take over what runs here; called by a signal handler, and takes no lock."""
        ...

    @property
    def is_open(self) -> bool:
        """Whether Kafka has been reached, and connectors can run."""
        ...

    @property
    def is_arriving(self) -> bool:
        """Whether this worker is given no connectors yet, as its data plane is starting."""
        ...

    @property
    def is_to_end(self) -> bool:
        """Whether the worker was asked to end; its owner looks again and again."""
        ...

    @property
    def problem(self) -> str | None:
        """What keeps this worker from being trusted with changes, for its health; ``None`` while all is well."""
        ...

    def require_owner(self, name: str) -> None:
        """Return if the connector, which is stored, is this worker's to run; on the herder's thread.

        Raises :class:`~headrace.herder.errors.ElsewhereError` where another worker has to be asked,
        :class:`~headrace.herder.errors.ConflictError` while none runs it, and as :meth:`require_topics`.
        """
        ...

    def require_topics(self) -> None:
        """Return if nothing is known to be wrong with what the workers share; raises :class:`~headrace.herder.errors.ServerError` otherwise."""
        ...

    def has_tasks(self, name: str, configs: Sequence[Mapping[str, str]]) -> bool:
        """Whether no one is asked to store these tasks of the connector, as they are stored, and asking has a cost; on a run's thread."""
        ...

    def require_tasks(self, name: str) -> None:
        """Return if the connector, whose run this worker has begun, may run all its tasks here; raises ``RetriableError`` until it may.

        On a run's thread, after its tasks were stored.
        """
        ...

    def require_may_change(self) -> None:
        """Return if this worker may change the cluster now.

        Called on the herder's thread before each such change, and by any thread before it looks at what would be changed: another
        worker may know better.

        Raises :class:`~headrace.herder.errors.ElsewhereError` where another worker may, and
        :class:`~headrace.herder.errors.ConflictError` while none may.
        """
        ...

    def catch_up(self) -> None:
        """See all that other workers have changed before this call; any thread may call."""
        ...

    def stored(self, connector: StoredConnector, *, again: bool) -> None:
        """The connector has just been stored, with another configuration or to be started anew if *again*; on the herder's thread."""
        ...

    def deleted(self, name: str) -> None:
        """The connector has just been deleted; on the herder's thread."""
        ...

    def await_end(self, name: str, ended: Future[None], outcome: str) -> None:
        """Return when the connector's run here has *ended*, as the reconciler promised, and nothing of it runs on another worker.

        Called after its target state has become one in which nothing runs. Waits, so any thread but the herder's may call it. Raises
        ``ServerError``, whose sentence *outcome* begins, when that takes too long.
        """
        ...

    def await_quiet(self, name: str) -> None:
        """As :meth:`await_end`, of this worker alone, on behalf of the leader: what that has written is read first."""
        ...

    def fence_tasks(self, connector: StoredConnector) -> bool:
        """Fence what earlier tasks of the connector have left, for a worker of Kafka Connect, which leaves that to the leader.

        Returns whether it is to be stored how many tasks may write now. Raises ``ServerError`` when Kafka does not answer.
        """
        ...

    def verify(self, body: bytes, signature: str | None, algorithm: str | None) -> None:
        """Raise ``RequestError`` unless the *body* of a request comes from another worker of the group, as its headers prove."""
        ...

    def workers(self) -> Sequence[WorkerInfo]:
        """See :class:`~headrace.herder.protocol.Herder`, here and below."""
        ...

    def known_workers(self, *, unreachable: str | None = None) -> Sequence[WorkerInfo]:
        """As far as they are known without their leader."""
        ...

    def relinquish(self, worker: str, *, stay: bool = False) -> None:
        """Have this worker hand over what it runs; raises ``ElsewhereError`` where another one is meant, as the next one does."""
        ...

    def rejoin(self, worker: str) -> None:
        """Have it take connectors again."""
        ...

    def send(self, elsewhere: ElsewhereError, request: InternalRequest) -> None:
        """Have the worker that *elsewhere* names do what this one may not, and see what it has written; on a run's thread.

        Raises :class:`~headrace.herder.errors.RequestError` as that worker does.
        """
        ...


Coordinate: TypeAlias = Callable[[HerderParts], Coordination]
"""Makes the coordination of a herder, which has not begun."""


def settle_changes(local: LocalServices, kafka: KafkaServices, *, only: str | None = None) -> None:
    """Finish the changes of offsets that another process has begun, and abandon those that had not got so far.

    Called by who may change the cluster, before it changes anything, or for *only* one connector, which the caller holds. One that cannot
    be finished now is logged; the connector's next start tries it again.
    """

    def run_spec(stored: StoredConnector) -> RunSpec:
        return local.validator.run_spec(local.validator.resolved(stored.config))

    connectors = local.configs.connectors()
    for name, error in kafka.changes.recover(connectors, run_spec, only=only).items():
        _log.error(
            "An interrupted change of the offsets of connector %s could not be finished; its next start retries it: %s",
            name,
            error,
        )
