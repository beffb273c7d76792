"""The coordination of a worker that stands alone: it has every stored connector, and may change all of them."""

from __future__ import annotations

import threading
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import Future
from typing import Final

from headrace import __version__
from headrace.connect.errors import RetriableError
from headrace.herder.answers import TargetState, WorkerInfo, WorkerState
from headrace.herder.coordination import HerderParts, settle_changes
from headrace.herder.errors import BadRequestError, ElsewhereError, NotFoundError, ServerError
from headrace.herder.internal_requests import InternalRequest
from headrace.herder.services import KafkaServices
from headrace.herder.statuses import HerderStatuses
from headrace.observe.log_format import in_log_context
from headrace.runtime.backoff import Backoff
from headrace.storage.protocols import StoredConnector

_ALONE: Final = "This worker stands alone: no other one asks it anything."


class Standalone:
    """A :class:`~headrace.herder.coordination.Coordination`. Stored connectors are loaded at once, and run once Kafka is reached."""

    def __init__(self, parts: HerderParts) -> None:
        self._parts = parts
        self._only: Collection[str] | None = None
        self._is_ready = threading.Event()
        self._is_open = threading.Event()
        self._is_closing = threading.Event()

    def begin(self, only: Collection[str] | None) -> None:
        """Load the stored connectors, or *only* these; returns before Kafka has been reached."""
        self._only = only
        self._parts.queue.ask("loading the stored connectors", self._load)
        unsettled = self._parts.local.unsettled()
        for name in unsettled:
            self._parts.queue.hold(name, f"settling the offsets of connector {name}")
        threading.Thread(
            target=in_log_context(self._open),
            args=(unsettled,),
            name="headrace-opening",
            daemon=True,
        ).start()

    def ready(self) -> None:
        """Let connectors run, as soon as Kafka has been reached."""
        self._is_ready.set()

    def give_up(self) -> None:
        """Fail, if Kafka has not been reached in time, rather than try again."""
        reason = self._parts.kafka_readiness.delay
        if reason is not None:
            self._is_closing.set()
            self._parts.kafka_readiness.refuse(reason)

    def close(self) -> None:
        """Do not try again to reach Kafka, and let no thread wait."""
        self._is_closing.set()
        self._is_ready.set()

    def leave_at_once(self) -> None:
        """There is no one else."""

    @property
    def is_open(self) -> bool:
        """Whether Kafka has been reached and connectors run."""
        return self._is_open.is_set()

    @property
    def is_arriving(self) -> bool:
        """It has what it has."""
        return False

    @property
    def is_to_end(self) -> bool:
        """No request asks for it."""
        return False

    @property
    def problem(self) -> str | None:
        """Nothing is shared."""
        return None

    def require_owner(self, name: str) -> None:
        """It is here."""

    def require_topics(self) -> None:
        """Nothing is shared."""

    def has_tasks(self, name: str, configs: Sequence[Mapping[str, str]]) -> bool:
        """Storing them again costs nothing."""
        return False

    def require_tasks(self, name: str) -> None:
        """They are here."""

    def require_may_change(self) -> None:
        """There is no one else."""

    def catch_up(self) -> None:
        """There is no one else."""

    def stored(self, connector: StoredConnector, *, again: bool) -> None:
        """It is here."""
        target = TargetState(connector.target_state)
        self._parts.reconciler.want(connector.name, target, again=again)

    def deleted(self, name: str) -> None:
        """It was here."""
        self._parts.reconciler.want(name, None)

    def await_end(self, name: str, ended: Future[None], outcome: str) -> None:
        """It was here."""
        self._parts.reconciler.await_end(name, ended, outcome)

    def await_quiet(self, name: str) -> None:
        """No one asks."""
        raise ServerError(_ALONE)

    def fence_tasks(self, connector: StoredConnector) -> bool:
        """There is no one else."""
        raise ServerError(_ALONE)

    def verify(self, body: bytes, signature: str | None, algorithm: str | None) -> None:
        """There is no one else."""
        raise ServerError(_ALONE)

    def send(self, elsewhere: ElsewhereError, request: InternalRequest) -> None:
        """There is no one else."""
        raise elsewhere

    def workers(self) -> Sequence[WorkerInfo]:
        """This worker alone."""
        local = self._parts.local
        alone = WorkerInfo(
            id=local.worker_id,
            url="",
            version=__version__,
            slots=local.slots,
            is_leader=True,
            state=WorkerState.ACTIVE,
            connectors=sorted(local.configs.connectors()),
        )
        return [alone]

    def known_workers(self, *, unreachable: str | None = None) -> Sequence[WorkerInfo]:
        """There is no other one to ask."""
        return self.workers()

    def relinquish(self, worker: str, *, stay: bool = False) -> None:
        """Refuse, as no one could take over."""
        self._refuse_others(worker)
        raise BadRequestError(
            f"Worker {worker} stands alone: no other one can take over its connectors. Pause or stop them, or end the worker."
        )

    def rejoin(self, worker: str) -> None:
        """This worker has never left."""
        self._refuse_others(worker)

    def _refuse_others(self, worker: str) -> None:
        known = self._parts.local.worker_id
        if worker != known:
            raise NotFoundError(
                f"Unknown worker {worker}. There is only {known}, which stands alone."
            )

    def _load(self) -> None:
        # Requests wait for this, so all writes share one transaction and wait for the disk only once.
        with self._parts.local.together():
            self._load_all()

    def _load_all(self) -> None:
        stored = self._parts.local.configs.connectors()
        statuses = HerderStatuses(self._parts.local)
        for ghost in set(self._parts.local.statuses.connectors()) - stored.keys():
            statuses.forget(ghost)
        for name, each in stored.items():
            if self._parts.reconciler.has(name):
                continue
            statuses.unassigned(name)
            target = TargetState(each.target_state)
            # A connector that is not to run only has its state shown, also when it is not selected.
            if self._only is None or name in self._only or target is not TargetState.RUNNING:
                self._parts.reconciler.want(name, target)

    def _open(self, unsettled: Sequence[str]) -> None:
        try:
            with self._parts.stages.during(
                "initializing and reading to the end of internal topics"
            ):
                kafka = self._opened()
                settle_changes(self._parts.local, kafka)
        except Exception as error:  # noqa: BLE001 (requests that wait for Kafka raise it)
            self._parts.kafka_readiness.refuse(error)
            return
        self._parts.kafka_readiness.open(kafka)
        # An interrupted creation may have been completed.
        self._parts.queue.post(self._load)
        for name in unsettled:
            self._parts.queue.release(name)
        self._is_ready.wait()
        self._parts.queue.post(lambda: self._parts.reconciler.opened(kafka))
        self._parts.queue.post(self._is_open.set)

    def _opened(self) -> KafkaServices:
        """What *opening* returns, which is tried again until the worker ends, if starts are retried."""
        backoff = Backoff(self._is_closing)
        while True:
            try:
                return self._parts.opening()
            except RetriableError as error:
                if not self._parts.local.retries_start:
                    raise
                self._parts.kafka_readiness.put_off(error)
                backoff.pause()
                if self._is_closing.is_set():
                    raise
