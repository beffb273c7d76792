"""What every worker opens: its identity, the connection to Kafka, its offsets, the channel to its tasks."""

from __future__ import annotations

import logging
import os
import platform
import secrets
import time
from collections.abc import Callable, Mapping
from functools import partial

from headrace.config.state_file import new_identity
from headrace.config.worker_config import WorkerConfig
from headrace.connect.connector import SourceConnector
from headrace.connect.errors import RetriableError, TaskFailedError
from headrace.kafka.admin import UNREACHABLE, CompactedTopic, KafkaAdmin
from headrace.kafka.client_config import ClientConfig, client_config, producer_config
from headrace.kafka.deadline import Deadline
from headrace.observe.events import EventListener
from headrace.observe.log_format import named_form, worker_in_logs
from headrace.offsets.connector_stores import ConnectorOffsetStores
from headrace.offsets.connector_topic import KafkaConnectorTopic
from headrace.offsets.java_import import import_java_offsets
from headrace.offsets.kafka_store import KafkaOffsetStore
from headrace.offsets.store import LockedOffsetStore, OffsetRecordStore
from headrace.offsets.target import DriverStore, OffsetTopic
from headrace.runtime.channel_server import Channel
from headrace.runtime.driver_offsets import DriverOffsetCommitter
from headrace.runtime.engine import DataPlane
from headrace.runtime.fencing import coordinator_of
from headrace.runtime.secondary_offsets import SecondaryOffsetTopic
from headrace.runtime.services import RunSpec, Services, Timing
from headrace.storage.sqlite import SqliteStorage
from headrace.task.connector_spec import PluginChoice

_OFFSETS_LOCATION = "offsets.home"
_GROUP_ID = "group.id"
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
    return _kafka_offsets(config, topic) if config.offsets_in_topic else storage.offsets


def _kafka_offsets(config: WorkerConfig, topic: str) -> OffsetRecordStore:
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


def channel_for(config: WorkerConfig, stores: ConnectorOffsetStores) -> Channel:
    """The listener for the worker's tasks; its caller closes it."""
    host, _, port = config.channel_listener.rpartition(":")
    return Channel(
        stores.worker.put_entries,
        copy_first=stores.copies.first_entries,
        copy_later=stores.copies.later_entries,
        host=host,
        port=int(port),
        log=named_form(worker_in_logs()),
    )


def timing(config: WorkerConfig) -> Timing:
    """The configured time-outs and intervals."""
    return Timing(
        lease=config.lease_ms / 1e3,
        grace=config.task_shutdown_graceful_timeout_ms / 1e3,
        batch_budget=config.batch_budget_ms / 1e3,
        idle_poll=config.idle_poll_ms / 1e3,
        linger=config.poll_linger_ms / 1e3,
        poll_backoff_max=config.poll_idle_max_ms / 1e3,
        flush_interval=config.offset_flush_interval_ms / 1e3,
    )


def opened_services(
    config: WorkerConfig,
    storage: SqliteStorage,
    *,
    group_id: str,
    worker_id: str,
    emit: EventListener,
    data_plane: DataPlane,
    close_later: Callable[[Callable[[], None]], object],
) -> Services:
    """The offset store and the channel, opened in this order once Kafka has answered, with the data plane.

    *close_later* registers the function that closes each of them as soon as it is open. Offsets of a Java worker's file
    are imported, if the configuration names one. Raises
    :class:`~headrace.connect.errors.ConnectError` when one of them cannot be opened.
    """
    worker_store = LockedOffsetStore(offset_store(config, group_id, storage))
    close_later(worker_store.close)
    topic = config.offsets_topic(group_id) if config.offsets_in_topic else None
    stores = connector_offset_stores(worker_store, topic)
    close_later(stores.close)
    channel = channel_for(config, stores)
    close_later(channel.close)
    services = Services(
        engine=data_plane.engine,
        channel=channel,
        capacity=data_plane.capacity,
        processes=data_plane.processes,
        offsets=stores,
        configs=storage.configs,
        statuses=storage.statuses,
        group_id=group_id,
        worker_id=worker_id,
        run_id=secrets.token_hex(8),
        timing=timing(config),
        emit=emit,
        coordinator=coordinator_of,
        commit_offsets=DriverOffsetCommitter(stores, group_id).commit,
        secondary=_secondary(config, worker_store, group_id),
    )
    if config.offset_storage_file_filename is not None:
        import_java_offsets(
            config.offset_storage_file_filename,
            services,
            partial(_named_spec, config, group_id),
            storage.settings,
        )
    return services


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
