"""A standalone worker's herder, put together: to answer requests, to run given connectors to their end, or to hold them stopped."""

from __future__ import annotations

import logging
from collections.abc import Generator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from headrace.config.worker_config import WorkerConfig
from headrace.herder.answers import TargetState
from headrace.herder.services import KafkaServices, LocalServices
from headrace.herder.worker_herder import WorkerHerder
from headrace.observe.events import EventListener, to_all
from headrace.offsets.administration import OffsetChanges
from headrace.plugins import PluginConnectorValidator, ValidatedConnector
from headrace.runtime.engine import DataPlane
from headrace.storage.memory import MemoryConfigStore, MemoryStatusStore
from headrace.storage.protocols import ConfigStore, StatusStore, StoredConnector
from headrace.storage.sqlite import SqliteStorage
from headrace.worker.data_plane import lazy_engine
from headrace.worker.services import (
    Closing,
    Opening,
    identity,
    imported_offsets,
    keep_identity,
    offset_store,
    opened_services,
    own_worker_id,
    prepared,
    reach_kafka,
    settled_first,
    sql_check,
    timing,
    topic_listeners,
)

_log = logging.getLogger(__name__)


@contextmanager
def serving(  # noqa: PLR0913 - each caller leaves out what the other one gives
    config: WorkerConfig,
    *,
    state_file: Path | SqliteStorage,
    emit: EventListener,
    worker_id: str | None = None,
    validated: Sequence[ValidatedConnector] = (),
    data_plane: DataPlane | None = None,
    once: bool = False,
    retries_start: bool = False,
    command_options: str = "",
) -> Generator[WorkerHerder]:
    """A herder over *state_file* that has not been started; closed at the end, with everything that it opened.

    Nothing waits for Kafka here, and no JVM is started before a connector runs. Without *data_plane*, connectors run on Spark. With *once*,
    they end when everything has been read. With *retries_start*, Kafka is tried again after the start's deadline, until the herder is told
    to give up. *worker_id* is the worker's name in statuses, and *command_options* are those by which ``headrace`` commands reach it.
    *validated* are connectors that will be requested, and whose warnings have been logged. A caller that has already opened the state file
    passes its storage, and closes it. Raises :class:`~headrace.connect.errors.ConfigError` when another process has the state file.
    """
    with ExitStack() as opened:
        if isinstance(state_file, SqliteStorage):
            storage = state_file
        else:
            storage = opened.enter_context(closing(SqliteStorage(state_file)))
        yield _Worker(
            config=config,
            storage=storage,
            worker_id=worker_id or own_worker_id(),
            emit=emit,
            data_plane=data_plane or DataPlane.of(lazy_engine(config)),
            validated=validated,
            once=once,
            retries_start=retries_start,
            command_options=command_options,
        ).herder(opened)


@contextmanager
def running(
    config: WorkerConfig,
    connectors: Sequence[ValidatedConnector],
    *,
    state_file: Path,
    emit: EventListener,
    once: bool = False,
    data_plane: DataPlane | None = None,
) -> Generator[WorkerHerder]:
    """A herder of *connectors* alone, which run once its caller calls ``ready``; otherwise as :func:`serving`.

    Kafka has been reached by then, and the connectors are stored. With *once*, they end when everything has been read.
    Raises :class:`~headrace.connect.errors.ConnectError` when Kafka cannot be reached before the start's deadline, or
    another process has the state file.
    """
    with ExitStack() as opened:
        storage = opened.enter_context(closing(SqliteStorage(state_file)))
        herder = _Worker(
            config=config,
            storage=storage,
            worker_id=own_worker_id(),
            emit=emit,
            # One session, with the modules of all connectors from its start.
            data_plane=data_plane or DataPlane.of(lazy_engine(config, connectors)),
            validated=connectors,
            once=once,
        ).herder(opened)
        herder.start_only(stored(connectors))
        yield herder


@contextmanager
def stopped(
    config: WorkerConfig, connectors: Sequence[ValidatedConnector], *, state_file: Path
) -> Generator[WorkerHerder]:
    """A herder of *connectors* alone, all of them stopped, so that their offsets can be changed; it runs none.

    That they are stopped is not stored: however the process ends, the state file has the connectors in the states that they
    were in. Raises as :func:`running`.
    """
    with ExitStack() as opened:
        storage = opened.enter_context(closing(SqliteStorage(state_file)))
        herder = _Worker(
            config=config,
            storage=storage,
            worker_id=own_worker_id(),
            emit=lambda _: None,
            data_plane=DataPlane.of(lazy_engine(config)),
            validated=connectors,
            stores_connectors=False,
        ).herder(opened)
        herder.start_only(
            [replace(each, target_state=TargetState.STOPPED) for each in stored(connectors)]
        )
        yield herder


def stored(connectors: Sequence[ValidatedConnector]) -> list[StoredConnector]:
    """*connectors* as they are stored when they are to run."""
    return [StoredConnector(name=each.name, config=each.given) for each in connectors]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Worker:
    """What a herder is made of."""

    config: WorkerConfig
    storage: SqliteStorage
    worker_id: str
    emit: EventListener
    data_plane: DataPlane
    validated: Sequence[ValidatedConnector] = ()
    once: bool = False
    retries_start: bool = False
    command_options: str = ""
    stores_connectors: bool = True

    def herder(self, opened: ExitStack) -> WorkerHerder:
        """The herder; *opened* closes it, and what it opens."""
        group_id = identity(self.config, self.storage)
        local = self._local_services(group_id)
        kafka = KafkaOpening(
            self.config,
            local,
            self.storage,
            group_id=group_id,
            emit=to_all(self.emit, *topic_listeners(self.config, self.storage)),
            data_plane=self.data_plane,
            command_options=self.command_options,
        )
        opened.callback(kafka.close)
        herder = WorkerHerder(local, kafka.open)
        opened.callback(herder.close)
        return herder

    def _local_services(self, group_id: str) -> LocalServices:
        config, storage = self.config, self.storage
        configs, statuses = self._connector_stores()
        return LocalServices(
            configs=configs,
            statuses=statuses,
            topics=storage.topics,
            validator=PluginConnectorValidator(
                config, group_id, validated=self.validated, sql=sql_check(self.data_plane.engine)
            ),
            worker_id=self.worker_id,
            grace=timing(config).grace,
            slots=self.data_plane.engine.slots,
            once=self.once,
            retries_start=self.retries_start,
            masks_passwords=config.rest_mask_passwords,
            tracks_topics=config.topic_tracking_enable,
            may_reset_topics=config.topic_tracking_allow_reset,
            together=storage.together,
            unsettled=partial(_unsettled, storage),
        )

    def _connector_stores(self) -> tuple[ConfigStore, StatusStore]:
        if self.stores_connectors:
            return self.storage.configs, self.storage.statuses
        return MemoryConfigStore(), MemoryStatusStore()


def _unsettled(storage: SqliteStorage) -> list[str]:
    return [each.entry.connector for each in storage.changes.open_intents()]


class KafkaOpening:
    """Opens the services that need Kafka, on a thread that waits for it; closed by the thread that ends the worker.

    An attempt that has failed may be followed by another one.
    """

    def __init__(
        self,
        config: WorkerConfig,
        local: LocalServices,
        storage: SqliteStorage,
        *,
        group_id: str,
        emit: EventListener,
        data_plane: DataPlane,
        command_options: str,
    ) -> None:
        self._config = config
        self._local = local
        self._storage = storage
        self._group_id = group_id
        self._emit = emit
        self._data_plane = data_plane
        self._command_options = command_options
        self._closing = Closing()
        # A cluster may be away for days: the first attempt says so every few seconds.
        self._report = _log.warning

    def open(self) -> KafkaServices:
        """Wait for Kafka, and open everything.

        Raises ``RetriableError`` when Kafka is not reached in time, and other errors that another attempt cannot resolve.
        """
        try:
            return self._all_opened()
        except Exception:
            self._report = _log.debug
            self._closing.close_opened()
            raise

    def _all_opened(self) -> KafkaServices:
        cluster_id = reach_kafka(self._config, self._report)
        keep_identity(self._config, self._storage, self._group_id)
        opening = Opening(
            config=self._config,
            group_id=self._group_id,
            worker_id=self._local.worker_id,
            task_counts=self._storage.configs,
            statuses=self._storage.statuses,
            emit=self._emit,
            data_plane=self._data_plane,
            close_later=self._closing.later,
        )
        store = offset_store(self._config, self._group_id, self._storage)
        services = opened_services(opening, store)
        # Not closed by an attempt that fails: a data plane that was closed never starts.
        self._closing.later(self._data_plane.close)
        imported_offsets(opening, services, self._storage.settings)
        changes = OffsetChanges(services, self._storage.changes)
        ready = replace(
            prepared(services, settled_first(changes)),
            once=self._local.once,
            command_options=self._command_options,
        )
        return KafkaServices(services=ready, changes=changes, cluster_id=cluster_id)

    def close(self) -> None:
        """Close what was opened, in reverse order; called when nothing runs any more."""
        self._closing.close()
