"""A worker that answers requests and manages connectors; what it opens once Kafka has been reached."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

from headrace.config.worker_config import WorkerConfig
from headrace.connect.errors import RetriableError
from headrace.herder.services import KafkaServices, LocalServices
from headrace.herder.standalone import StandaloneHerder
from headrace.herder.topics import ActiveTopics
from headrace.observe.events import EventListener, to_all
from headrace.offsets.administration import OffsetChanges
from headrace.plugins import PluginConnectorValidator, SqlCheck, no_sql_check
from headrace.runtime.engine import Engine, LocalProcesses, Processes
from headrace.runtime.services import RunSpec
from headrace.storage.sqlite import SqliteStorage
from headrace.worker.data_plane import LazyEngine, foreign_modules, spark_engine
from headrace.worker.services import (
    ensure_dead_letters,
    identity,
    keep_identity,
    opened_services,
    own_worker_id,
    reach_kafka,
    timing,
)


class KafkaOpening:
    """Opens the services that need Kafka, on a thread that waits for it; closed by the thread that ends the worker."""

    def __init__(
        self,
        config: WorkerConfig,
        local: LocalServices,
        storage: SqliteStorage,
        *,
        group_id: str,
        emit: EventListener,
        engine: Engine,
        processes: Processes | None = None,
    ) -> None:
        self._config = config
        self._local = local
        self._storage = storage
        self._group_id = group_id
        self._emit = emit
        self._engine = engine
        self._processes = processes or LocalProcesses()
        # Services that are opened after the end are closed at once.
        self._lock = threading.Lock()
        self._opened = ExitStack()
        self._is_closed = False

    def open(self) -> KafkaServices:
        """Wait for Kafka, and open everything; raises ``ConnectError`` when Kafka is not reached in time."""
        cluster_id = reach_kafka(self._config)
        keep_identity(self._config, self._storage, self._group_id)
        services = opened_services(
            self._config,
            self._storage,
            group_id=self._group_id,
            worker_id=self._local.worker_id,
            emit=self._emit,
            engine=lambda: self._engine,
            close_later=self._close_later,
        )
        changes = OffsetChanges(services, self._storage.changes)
        ready = replace(
            services,
            processes=self._processes,
            prepare=_preparing(changes, services.engine),
        )
        return KafkaServices(services=ready, changes=changes, cluster_id=cluster_id)

    def close(self) -> None:
        """Close what was opened, in reverse order; called when nothing runs any more."""
        with self._lock:
            self._is_closed = True
        self._opened.close()

    def _close_later(self, close: Callable[[], None]) -> None:
        with self._lock:
            if not self._is_closed:
                self._opened.callback(close)
                return
        close()
        raise RetriableError("The worker is shutting down.")


def _preparing(changes: OffsetChanges, engine: Engine) -> Callable[[RunSpec], None]:
    """The steps before each start of a connector, on its run's thread."""

    def prepare(spec: RunSpec) -> None:
        # A separate instance, because it cannot be used again after its hook.
        changes.settle(replace(spec, connector=type(spec.connector)()))
        ensure_dead_letters(spec)
        if isinstance(engine, LazyEngine):
            names = (each.class_name for each in spec.plugins)
            engine.require(foreign_modules(spec.connector, names), sql=spec.sql_stage is not None)

    return prepare


@contextmanager
def serving(
    config: WorkerConfig,
    *,
    state_file: Path,
    emit: EventListener,
    storage: SqliteStorage | None = None,
    worker_id: str | None = None,
    engine: Engine | None = None,
    processes: Processes | None = None,
) -> Generator[StandaloneHerder]:
    """A herder over *state_file* that has not been started; closed at the end, with everything that it opened.

    Nothing waits for Kafka here, and no JVM is started before a connector runs. Without *engine*, connectors run
    on Spark. *worker_id* is the worker's name in statuses. *storage* is the state file if the caller has already
    opened it; the caller then closes it. Raises :class:`~headrace.connect.errors.ConfigError` when another process
    has the state file.
    """
    data_plane = engine or LazyEngine(lambda: spark_engine(config, ()), slots=config.slots)
    with ExitStack() as opened:
        if storage is None:
            storage = SqliteStorage(state_file)
            opened.callback(storage.close)
        group_id = identity(config, storage)
        validator = PluginConnectorValidator(config, group_id, sql=_sql_check(data_plane))
        local = _local_services(config, storage, validator, worker_id or own_worker_id())
        kafka = KafkaOpening(
            config,
            local,
            storage,
            group_id=group_id,
            emit=to_all(emit, *_topic_listeners(config, storage)),
            engine=data_plane,
            processes=processes,
        )
        opened.callback(kafka.close)
        herder = StandaloneHerder(local, kafka.open)
        opened.callback(herder.close)
        yield herder


def _local_services(
    config: WorkerConfig,
    storage: SqliteStorage,
    validator: PluginConnectorValidator,
    worker_id: str,
) -> LocalServices:
    return LocalServices(
        configs=storage.configs,
        statuses=storage.statuses,
        topics=storage.topics,
        validator=validator,
        worker_id=worker_id,
        slots=config.slots,
        grace=timing(config).grace,
        masks_passwords=config.rest_mask_passwords,
        tracks_topics=config.topic_tracking_enable,
        may_reset_topics=config.topic_tracking_allow_reset,
        together=storage.together,
        unsettled=partial(_unsettled, storage),
    )


def _sql_check(data_plane: Engine) -> SqlCheck:
    """Validation of SQL by Spark, as soon as it runs; none with another data plane."""
    return data_plane.sql_problems if isinstance(data_plane, LazyEngine) else no_sql_check


def _topic_listeners(config: WorkerConfig, storage: SqliteStorage) -> list[EventListener]:
    if not config.topic_tracking_enable:
        return []
    return [ActiveTopics(storage.topics, storage.configs)]


def _unsettled(storage: SqliteStorage) -> list[str]:
    return [each.entry.connector for each in storage.changes.open_intents()]
