"""A worker's start: stored connectors at once, running once Kafka is reached, and those that a command line names."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Collection, Iterable, Sequence

from headrace.config.config_files import ConnectorFile
from headrace.connect.errors import RetriableError
from headrace.herder.answers import TargetState
from headrace.herder.errors import AlreadyExistsError
from headrace.herder.protocol import Herder
from headrace.herder.reconciler import Reconciler
from headrace.herder.request_queue import RequestQueue, Stages
from headrace.herder.requests import CreateRequest
from headrace.herder.services import KafkaReadiness, KafkaServices, LocalServices
from headrace.herder.statuses import HerderStatuses
from headrace.observe.log_format import in_log_context
from headrace.runtime.backoff import Backoff
from headrace.runtime.services import RunSpec
from headrace.storage.protocols import StoredConnector

_log = logging.getLogger(__name__)


class Startup:
    """Starts a herder. Waits for Kafka on a thread of its own, in *opening*."""

    def __init__(
        self,
        local: LocalServices,
        opening: Callable[[], KafkaServices],
        kafka_readiness: KafkaReadiness,
        queue: RequestQueue,
        *,
        stages: Stages,
        reconciler: Reconciler,
    ) -> None:
        self._local = local
        self._opening = opening
        self._kafka_readiness = kafka_readiness
        self._queue = queue
        self._stages = stages
        self._reconciler = reconciler
        self._only: Collection[str] | None = None
        self._is_ready = threading.Event()
        self._is_over = threading.Event()
        self._is_closing = threading.Event()

    def begin(self, only: Collection[str] | None) -> None:
        """Load the stored connectors, or *only* these; returns before Kafka has been reached."""
        self._only = only
        self._queue.ask("loading the stored connectors", self._load)
        unsettled = self._local.unsettled()
        for name in unsettled:
            self._queue.hold(name, f"settling the offsets of connector {name}")
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
        reason = self._kafka_readiness.delay
        if reason is not None:
            self._is_closing.set()
            self._kafka_readiness.refuse(reason)

    def close(self) -> None:
        """The worker ends: do not try again to reach Kafka, and let no thread wait."""
        self._is_closing.set()
        self._is_ready.set()

    @property
    def is_over(self) -> bool:
        """Whether Kafka has been reached and connectors run."""
        return self._is_over.is_set()

    def _load(self) -> None:
        # Requests wait for this, so all writes share one transaction and wait for the disk only once.
        with self._local.together():
            self._load_all()

    def _load_all(self) -> None:
        stored = self._local.configs.connectors()
        statuses = HerderStatuses(self._local)
        for ghost in set(self._local.statuses.connectors()) - stored.keys():
            statuses.forget(ghost)
        for name, each in stored.items():
            if self._reconciler.has(name):
                continue
            statuses.unassigned(name)
            target = TargetState(each.target_state)
            # A connector that is not to run only has its state shown, also when it is not selected.
            if self._only is None or name in self._only or target is not TargetState.RUNNING:
                self._reconciler.want(name, target)

    def _open(self, unsettled: Sequence[str]) -> None:
        try:
            with self._stages.during("initializing and reading to the end of internal topics"):
                kafka = self._opened()
                self._settle(kafka)
        except Exception as error:  # noqa: BLE001 (requests that wait for Kafka raise it)
            self._kafka_readiness.refuse(error)
            return
        self._kafka_readiness.open(kafka)
        # An interrupted creation may have been completed.
        self._queue.post(self._load)
        for name in unsettled:
            self._queue.release(name)
        self._is_ready.wait()
        self._queue.post(lambda: self._reconciler.opened(kafka))
        self._queue.post(self._is_over.set)

    def _opened(self) -> KafkaServices:
        """What *opening* returns, which is tried again until the worker ends, if starts are retried."""
        backoff = Backoff(self._is_closing)
        while True:
            try:
                return self._opening()
            except RetriableError as error:
                if not self._local.retries_start:
                    raise
                self._kafka_readiness.put_off(error)
                backoff.pause()
                if self._is_closing.is_set():
                    raise

    def _settle(self, kafka: KafkaServices) -> None:
        def run_spec(stored: StoredConnector) -> RunSpec:
            validator = self._local.validator
            return validator.run_spec(validator.resolved(stored.config))

        for name, error in kafka.changes.recover(run_spec).items():
            _log.error(
                "An interrupted change of the offsets of connector %s could not be finished; its next start "
                "retries it: %s",
                name,
                error,
            )


def create_or_update(files: Iterable[ConnectorFile], herder: Herder) -> None:
    """Create each connector, in order, or replace the configuration of one that is already stored.

    Raises :class:`~headrace.herder.errors.RequestError` at the first one that is refused.
    """
    stored = set(herder.connectors())
    for file in files:
        if file.name in stored or not _created(file, herder):
            _put(file, herder)


def _created(file: ConnectorFile, herder: Herder) -> bool:
    try:
        herder.create(
            CreateRequest(
                name=file.name,
                config=file.config,
                initial_state=file.initial_state,
                initial_offsets=file.initial_offsets,
            )
        )
    except AlreadyExistsError:
        # An earlier run was killed while it created the connector; the creation is completed once Kafka is reached.
        return False
    return True


def _put(file: ConnectorFile, herder: Herder) -> None:
    has_initial_settings = (
        file.initial_offsets is not None or file.initial_state is not TargetState.RUNNING
    )
    if has_initial_settings:
        _log.info(
            "Connector %s is already stored: its initial_state and initial_offsets are ignored.",
            file.name,
        )
    if herder.info(file.name).config != file.config:
        herder.put_config(file.name, file.config)
