"""What every worker opens: its identity, the connection to Kafka, its offsets, the channel to its tasks."""

from __future__ import annotations

import logging
import os
import platform
import secrets
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from typing import Protocol

from headrace.config.state_file import new_identity
from headrace.config.worker_config import WorkerConfig
from headrace.connect.connector import SourceConnector
from headrace.connect.errors import ConfigError, RetriableError, TaskFailedError
from headrace.herder.topics import ActiveTopics
from headrace.kafka.admin import ANSWER_SECONDS, UNREACHABLE, CompactedTopic, KafkaAdmin
from headrace.kafka.client_config import ClientConfig, client_config, producer_config
from headrace.kafka.deadline import Deadline
from headrace.listener_tls import LISTENERS, TlsKeys
from headrace.observe.events import EventListener
from headrace.observe.log_format import named_form, worker_in_logs
from headrace.offsets.administration import OffsetChanges
from headrace.offsets.connector_stores import ConnectorOffsetStores
from headrace.offsets.connector_topic import KafkaConnectorTopic
from headrace.offsets.java_import import import_java_offsets
from headrace.offsets.kafka_store import KafkaOffsetStore
from headrace.offsets.store import LockedOffsetStore, OffsetRecordStore
from headrace.offsets.target import DriverStore, OffsetTopic
from headrace.plugins import SqlCheck, no_sql_check
from headrace.runtime.channel_server import Channel, ChannelTls
from headrace.runtime.driver_offsets import DriverOffsetCommitter
from headrace.runtime.engine import DataPlane, Engine
from headrace.runtime.fencing import coordinator_of
from headrace.runtime.secondary_offsets import SecondaryOffsetTopic
from headrace.runtime.services import MembershipError, RunSpec, Services, Timing
from headrace.storage.protocols import (
    ConfigStore,
    SettingStore,
    StatusStore,
    TaskCounts,
    TopicStore,
)
from headrace.storage.sqlite import SqliteStorage
from headrace.task.connector_spec import PluginChoice
from headrace.worker.data_plane import LazyEngine, foreign_modules

_OFFSETS_LOCATION = "offsets.home"
_GROUP_ID = "group.id"
_DEAD_LETTER_PARTITIONS = 1
# A late read is reported, and later resumed where it was; this is how soon it is reported.
_REFRESH_SECONDS = 10.0
# Waiting for a broker for longer than this is reported, and then again after each of these intervals.
_FIRST_REPORT_SECONDS = 2.0
_REPEAT_SECONDS = 10.0

_log = logging.getLogger(__name__)


def own_worker_id() -> str:
    """The name in statuses of a worker without listeners."""
    return f"{platform.node()}:{os.getpid()}"


def identity(config: WorkerConfig, storage: SqliteStorage) -> str:
    """The worker's name in Kafka, generated if there is none yet; see :func:`keep_identity`."""
    known = config.group_id or storage.settings.setting(_GROUP_ID)
    return known or f"headrace-{secrets.token_hex(4)}"


def keep_identity(config: WorkerConfig, storage: SqliteStorage, group_id: str) -> None:
    """Store a generated name in the state file, and log it.

    Called once Kafka has answered, so that a wrong address leaves no worker in the state file.
    """
    known = config.group_id or storage.settings.setting(_GROUP_ID)
    has_begun = config.offsets_in_topic or storage.settings.setting(_OFFSETS_LOCATION) is not None
    if known is None:
        storage.settings.put_setting(_GROUP_ID, group_id)
    if known is None or not has_begun:
        _log.warning("%s", new_identity(config, group_id, storage.path))


def reach_kafka(config: WorkerConfig, report: Callable[[str], None] = _log.warning) -> str:
    """The cluster's id, once a broker has answered; until then *report* is called with a sentence now and then.

    Raises :class:`~headrace.connect.errors.RetriableError` when the start's deadline has passed.
    """
    seconds = config.start_deadline_ms / 1e3
    deadline = Deadline.after(seconds, time.monotonic)
    try:
        return wait_for_kafka(client_config(config.connection()), deadline, report)
    except RetriableError as error:
        raise RetriableError(
            f"{error} Tried for {seconds:g} s (headrace.start.deadline.ms)."
        ) from error


def wait_for_kafka(
    config: ClientConfig,
    deadline: Deadline,
    report: Callable[[str], None],
    *,
    first_report_seconds: float = _FIRST_REPORT_SECONDS,
    repeat_seconds: float = _REPEAT_SECONDS,
) -> str:
    """The cluster's id, once a broker has answered; until then *report* is called with a sentence now and then.

    Called once, at a worker's start. Raises :class:`~headrace.connect.errors.RetriableError` with the
    address and the client's last error after *deadline*. Errors that waiting cannot resolve are raised
    at once.
    """
    admin = KafkaAdmin(config)
    address = config.settings.get("bootstrap.servers", "")
    patience = first_report_seconds
    while True:
        try:
            return admin.check_reachable(Deadline.after(deadline.remaining(patience)))
        except RetriableError as error:
            reason = admin.last_error or "No broker has answered"
            if deadline.expired:
                raise RetriableError(_unreached(str(address), reason)) from error
            report(f"Waiting for Kafka at {address}: {reason}")
            patience = repeat_seconds


def _unreached(address: str, reason: str) -> str:
    return f"Kafka at {address} was not reached: {reason.rstrip('.')}. {UNREACHABLE}"


def offset_store(config: WorkerConfig, group_id: str, storage: SqliteStorage) -> OffsetRecordStore:
    """The store of the worker's source offsets, with its topic created; refuses a location other than before."""
    topic = config.offsets_topic(group_id)
    location = f"the topic {topic}" if config.offsets_in_topic else "the state file"
    _refuse_other_location(storage, location)
    if config.offsets_in_topic:
        _ensure_offsets_topic(config, topic)
    # Stored only now: a topic that was mistyped or forbidden holds no offsets.
    storage.settings.put_setting(_OFFSETS_LOCATION, location)
    return kafka_offsets(config, topic) if config.offsets_in_topic else storage.offsets


def kafka_offsets(config: WorkerConfig, topic: str) -> OffsetRecordStore:
    """The store of source offsets in an existing *topic*."""
    return KafkaOffsetStore(
        topic,
        client=client_config(config.connection()),
        producer=producer_config(config.connection()),
        refresh_seconds=_REFRESH_SECONDS,
    )


def _ensure_offsets_topic(config: WorkerConfig, topic: str) -> None:
    KafkaAdmin(client_config(config.connection())).ensure_compacted_topic(
        CompactedTopic(
            name=topic,
            partitions=config.offset_storage_partitions,
            replication=config.offset_storage_replication_factor,
        ),
        Deadline.after(config.start_deadline_ms / 1e3, time.monotonic),
    )


def _refuse_other_location(storage: SqliteStorage, location: str) -> None:
    """Raise if offsets were stored elsewhere before: everything would be sent again."""
    stored = storage.settings.setting(_OFFSETS_LOCATION)
    if stored is not None and stored != location:
        raise TaskFailedError(
            f"This worker's source offsets are in {stored}, but its configuration now expects them "
            f"in {location}; everything would be read again. Restore the former exactly.once.source.support and "
            "offset.storage.topic, or set a new state.file to start from the beginning."
        )


def connector_offset_stores(
    worker_store: LockedOffsetStore, worker_topic: str | None
) -> ConnectorOffsetStores:
    """The stores of connectors' offsets: the worker's, which may be in a topic, and topics and groups of their own."""
    return ConnectorOffsetStores(
        worker_store,
        worker_topic=worker_topic,
        open_topic=lambda own: KafkaConnectorTopic(own, refresh_seconds=_REFRESH_SECONDS),
    )


def channel_for(
    config: WorkerConfig, stores: ConnectorOffsetStores, holds: Callable[[], bool] = lambda: True
) -> Channel:
    """The listener for the worker's tasks, while its membership of a group *holds*; its caller closes it.

    Raises :class:`~headrace.connect.errors.ConfigError` for an address on which this machine cannot listen.
    """
    host, _, port = config.channel_listener.rpartition(":")
    tls = _tls_of_channel(config) if config.encrypts_channel else None
    try:
        return Channel(
            stores.worker.put_entries,
            copy_first=stores.copies.first_entries,
            copy_later=stores.copies.later_entries,
            address=(host, int(port)),
            tls=tls,
            log=named_form(worker_in_logs()),
            holds=holds,
        )
    except OSError as error:
        problem = (
            f"This machine cannot listen on {config.channel_listener} ({error.strerror or error}). Set an address of it that the "
            "machines of Spark's executors reach, and a free port, or 0 for any."
        )
        raise ConfigError(
            [("headrace.channel.listener", problem)], where="The worker's configuration"
        ) from error


def _tls_of_channel(config: WorkerConfig) -> ChannelTls:
    context, fingerprint = TlsKeys.of(config.originals, LISTENERS).pinned_context()
    return ChannelTls(context=context, fingerprint=fingerprint)


def timing(config: WorkerConfig) -> Timing:
    """The configured time-outs and intervals."""
    return Timing(
        lease=config.lease_seconds,
        grace=config.task_shutdown_graceful_timeout_ms / 1e3,
        batch_budget=config.batch_budget_ms / 1e3,
        idle_poll=config.idle_poll_ms / 1e3,
        linger=config.poll_linger_ms / 1e3,
        poll_backoff_max=config.poll_idle_max_ms / 1e3,
        flush_interval=config.offset_flush_interval_ms / 1e3,
    )


class Closing:
    """What one thread opens, and another closes at the end; what is opened after the end is closed at once."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._opened = ExitStack()
        self._is_closed = False

    def later(self, close: Callable[[], None]) -> None:
        """Call *close* at the end, in reverse order; raises ``RetriableError`` when the end has come, and calls it at once."""
        with self._lock:
            if not self._is_closed:
                self._opened.callback(close)
                return
        close()
        raise RetriableError("The worker is shutting down.")

    def close(self) -> None:
        """The end."""
        with self._lock:
            self._is_closed = True
        self.close_opened()

    def close_opened(self) -> None:
        """Close what was opened by an attempt that has failed; another one may follow."""
        with self._lock:
            opened = self._opened.pop_all()
        opened.close()


@dataclass(frozen=True, slots=True, kw_only=True)
class Opening:
    """What is known of a worker before its services are opened.

    *close_later* registers the function that closes each of them as soon as it is open. *holds* says whether the group, if there is one,
    cannot have given this worker up, and *published_tasks* how many tasks of a connector that group knows.
    """

    config: WorkerConfig
    group_id: str
    worker_id: str
    task_counts: TaskCounts
    statuses: StatusStore
    emit: EventListener
    data_plane: DataPlane
    close_later: Callable[[Callable[[], None]], object]
    holds: Callable[[], bool] = lambda: True
    published_tasks: Callable[[str], int | None] = lambda _: None


def opened_services(opening: Opening, store: OffsetRecordStore) -> Services:
    """The *store* of offsets and the channel, opened in this order once Kafka has answered, with the data plane.

    Raises :class:`~headrace.connect.errors.ConnectError` when one of them cannot be opened.
    """
    config, group_id, close_later = opening.config, opening.group_id, opening.close_later
    data_plane = opening.data_plane
    worker_store = LockedOffsetStore(store)
    close_later(worker_store.close)
    topic = config.offsets_topic(group_id) if config.offsets_in_topic else None
    stores = connector_offset_stores(worker_store, topic)
    close_later(stores.close)
    channel = channel_for(config, stores, opening.holds)
    close_later(channel.close)
    return Services(
        engine=data_plane.engine,
        channel=channel,
        capacity=data_plane.capacity,
        processes=data_plane.processes,
        offsets=stores,
        task_counts=opening.task_counts,
        statuses=opening.statuses,
        group_id=group_id,
        worker_id=opening.worker_id,
        run_id=secrets.token_hex(8),
        timing=timing(config),
        emit=opening.emit,
        coordinator=coordinator_of,
        commit_offsets=DriverOffsetCommitter(stores, group_id).commit,
        secondary=_secondary(config, worker_store, group_id),
        require_membership=partial(_require_membership, opening),
        published_tasks=opening.published_tasks,
    )


def _require_membership(opening: Opening) -> None:
    if not opening.holds():
        raise MembershipError(
            f"This worker's membership of the group {opening.group_id!r} does not hold: Kafka has not acknowledged its heartbeats in time, "
            "so that the group may have given its work to others. It continues what it still has once Kafka answers."
        )


def imported_offsets(opening: Opening, services: Services, settings: SettingStore) -> None:
    """Import the offsets of a Java worker's file, once, if the configuration names one."""
    config = opening.config
    if config.offset_storage_file_filename is not None:
        import_java_offsets(
            config.offset_storage_file_filename,
            services,
            partial(_named_spec, config, opening.group_id),
            settings,
        )


class _Unloaded(SourceConnector):
    """Stands for a connector of which only the name is known."""

    def start(self, props: Mapping[str, str]) -> None:
        """Not called."""


def _named_spec(config: WorkerConfig, group_id: str, connector: str) -> RunSpec:
    """Settings for writing offsets of *connector*, which may not exist, with the worker's own settings for Kafka."""
    topic = OffsetTopic(name=config.offsets_topic(group_id))
    converter = PluginChoice(class_name="")
    return RunSpec(
        name=connector,
        connector=_Unloaded(),
        props={},
        max_tasks=1,
        delivery=config.delivery,
        producer=config.connection(),
        offsets=topic if config.offsets_in_topic else DriverStore(),
        key_converter=converter,
        value_converter=converter,
        header_converter=converter,
    )


def _secondary(
    config: WorkerConfig, worker_store: LockedOffsetStore, group_id: str
) -> SecondaryOffsetTopic | None:
    if not config.offsets_in_topic:
        return None
    topic = config.offsets_topic(group_id)
    return SecondaryOffsetTopic(
        worker_store, topic, producer=config.connection(), group_id=group_id
    )


class TopicStores(Protocol):
    """The stores that active topics need."""

    @property
    def topics(self) -> TopicStore:
        """The active topics."""
        ...

    @property
    def configs(self) -> ConfigStore:
        """The connectors that have any."""
        ...


def topic_listeners(config: WorkerConfig, storage: TopicStores) -> list[EventListener]:
    """What notes in *storage* which topics connectors write to, unless *config* says not to."""
    if not config.topic_tracking_enable:
        return []
    return [ActiveTopics(storage.topics, storage.configs)]


def sql_check(engine: Engine) -> SqlCheck:
    """Validation of SQL by Spark, as soon as it runs; none with another data plane."""
    return engine.sql_problems if isinstance(engine, LazyEngine) else no_sql_check


def settled_first(changes: OffsetChanges) -> Callable[[RunSpec], None]:
    """Has the run of a connector begin by finishing a change of its offsets that was begun: no other worker can be at it."""

    def settle(spec: RunSpec) -> None:
        # A separate instance, because it cannot be used again after its hook.
        changes.settle(replace(spec, connector=type(spec.connector)()))

    return settle


def prepared(services: Services, settle: Callable[[RunSpec], None]) -> Services:
    """*services* with the steps before each start of a connector, on its run's thread, of which *settle* is the first."""
    engine = services.engine

    def prepare(spec: RunSpec) -> None:
        settle(spec)
        ensure_dead_letters(spec)
        if isinstance(engine, LazyEngine):
            names = (each.class_name for each in spec.plugins)
            engine.require(foreign_modules(spec.connector, names), sql=spec.sql_stage is not None)

    return replace(services, prepare=prepare)


def ensure_dead_letters(spec: RunSpec) -> None:
    """Create the connector's topic of dead letters, with one partition, if it is configured and missing.

    Called on the driver at each start of the connector. Raises
    :class:`~headrace.connect.errors.RetriableError` when Kafka does not answer in time.
    """
    topic = spec.errors.dead_letters
    if topic is None or not spec.errors.tolerate:
        return
    try:
        KafkaAdmin(client_config(spec.admin)).ensure_topic(
            topic,
            Deadline.after(ANSWER_SECONDS, time.monotonic),
            partitions=_DEAD_LETTER_PARTITIONS,
            replication=spec.errors.replication,
        )
    except TaskFailedError as error:
        raise TaskFailedError(
            f"The topic of dead letters of connector {spec.name} cannot be created: {error} Create topic {topic!r} "
            "yourself, or set errors.deadletterqueue.topic.replication.factor to a value that the brokers allow "
            f"(now {spec.errors.replication})."
        ) from error
