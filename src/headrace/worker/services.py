"""What every worker opens, whoever starts its connectors: its name, Kafka, its offsets, the channel to its tasks."""

from __future__ import annotations

import logging
import os
import platform
import secrets
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from headrace.config.worker_config import WorkerConfig, new_identity
from headrace.connect.errors import ConfigError, ConnectError, RetriableError, TaskFailedError
from headrace.connect.partition import SourceOffset, SourcePartition
from headrace.kafka.admin import CompactedTopic, KafkaAdmin, wait_for_kafka
from headrace.kafka.client_config import client_config, producer_config
from headrace.kafka.deadline import Deadline
from headrace.observe.events import EventListener
from headrace.observe.log_format import form_in_use
from headrace.offsets.connector_stores import ConnectorOffsetStores, LockedOffsetStore
from headrace.offsets.connector_topic import KafkaOwnTopic
from headrace.offsets.java_file import OffsetsFileError, java_offsets
from headrace.offsets.kafka_store import KafkaOffsetStore
from headrace.runtime.channel_server import Channel
from headrace.runtime.driver_commits import (
    DriverOffsetCommitter,
    SecondaryOffsetTopic,
    coordinator_of,
)
from headrace.runtime.engine import Capacity, Engine
from headrace.runtime.services import RunSpec, Services, Timing
from headrace.storage.protocols import ConfigStore, OffsetStore
from headrace.storage.sqlite import SqliteStorage

_log = logging.getLogger(__name__)
_KEY: Final = "offset.storage.file.filename"
_IMPORT: Final = "offsets.import"
_BEGUN, _DONE = "begun", "done"


def import_java_offsets(file_name: str, store: OffsetStore, settings: ConfigStore) -> None:
    """Put the offsets in a Java worker's file into *store*, if that is empty and this was not done before.

    *settings* remembers it, also when the store was not empty: offsets that are reset later do not come
    back. Whoever dies half way does all of it again. A file that is missing or empty has no offsets, as in
    Kafka Connect, and is looked for again by the next start.

    Called once at a worker's start, before anything runs, by the thread that owns *store*. Raises
    :class:`~headrace.connect.errors.ConfigError` for a file that cannot be read, and what the store raises.
    """
    progress = settings.setting(_IMPORT)
    if progress == _DONE:
        return
    store.refresh()
    # What is there after a beginning was put there by it.
    if progress is None and not store.is_empty():
        _log.info(
            "The offsets in %s (%s) are not taken over: this worker has offsets already. headrace offsets "
            "import takes those of a single connector.",
            file_name,
            _KEY,
        )
        settings.put_setting(_IMPORT, _DONE)
        return
    found = _read(Path(file_name))
    if not found:
        _log.info("There are no offsets to take over in %s (%s).", file_name, _KEY)
        return
    settings.put_setting(_IMPORT, _BEGUN)
    for connector, offsets in found.items():
        store.put(connector, offsets)
    settings.put_setting(_IMPORT, _DONE)
    names = ", ".join(sorted(found))
    _log.info("The offsets of %s were taken over from %s (%s).", names, file_name, _KEY)


def _read(path: Path) -> Mapping[str, Mapping[SourcePartition, SourceOffset]]:
    try:
        return java_offsets(path.read_bytes())
    except FileNotFoundError:
        return {}
    except (OSError, OffsetsFileError) as error:
        told = error.strerror if isinstance(error, OSError) else str(error)
        sentence = f"{path} cannot be read: {(told or '').rstrip('.')}."
        raise ConfigError([(_KEY, sentence)], where="The worker's configuration") from error


_OFFSETS_HOME = "offsets.home"
_GROUP_ID = "group.id"
# A read that is late is told and tried again from where it was, so this is how soon it is told.
_REFRESH_SECONDS = 10.0


def own_worker_id() -> str:
    """The name in statuses of a worker without listeners."""
    return f"{platform.node()}:{os.getpid()}"


def identity(config: WorkerConfig, storage: SqliteStorage) -> str:
    """The worker's name in Kafka, made if there is none yet; see :func:`keep_identity`."""
    known = config.group_id or storage.configs.setting(_GROUP_ID)
    return known or f"headrace-{secrets.token_hex(4)}"


def keep_identity(config: WorkerConfig, storage: SqliteStorage, group_id: str) -> None:
    """Keep a name that had to be made in the state file, and tell of it.

    Called once Kafka has answered: a mistake in its address leaves no worker behind.
    """
    known = config.group_id or storage.configs.setting(_GROUP_ID)
    has_begun = config.offsets_in_topic or storage.configs.setting(_OFFSETS_HOME) is not None
    if known is None:
        storage.configs.put_setting(_GROUP_ID, group_id)
    if known is None or not has_begun:
        _log.warning("%s", new_identity(config, group_id, storage.path))


def reach_kafka(config: WorkerConfig) -> str:
    """The cluster's id, once a broker has answered; raises ``ConnectError`` when the start's deadline is over."""
    deadline = Deadline.after(config.start_deadline_ms / 1e3, time.monotonic)
    try:
        return wait_for_kafka(client_config(config.connection()), deadline, _log.warning)
    except RetriableError as error:
        seconds = config.start_deadline_ms / 1e3
        raise ConnectError(
            f"{error} Gave up after {seconds:g} s (headrace.start.deadline.ms)."
        ) from error


def offset_store(config: WorkerConfig, group_id: str, storage: SqliteStorage) -> OffsetStore:
    """Where the worker's source offsets are, its topic made; refuses another place than before.

    Those of a Java worker's file are in it, where the configuration names one.
    """
    topic = config.offsets_topic(group_id)
    home = f"the topic {topic}" if config.offsets_in_topic else "the state file"
    _refuse_other_home(storage, home)
    if config.offsets_in_topic:
        _ensure_offsets_topic(config, topic)
    # Not before it is there: nothing can lie in a topic that was mistyped or forbidden.
    storage.configs.put_setting(_OFFSETS_HOME, home)
    store = _kafka_offsets(config, topic) if config.offsets_in_topic else storage.offsets
    if config.offset_storage_file_filename is not None:
        try:
            import_java_offsets(config.offset_storage_file_filename, store, storage.configs)
        except BaseException:
            store.close()
            raise
    return store


def _kafka_offsets(config: WorkerConfig, topic: str) -> OffsetStore:
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


def _refuse_other_home(storage: SqliteStorage, home: str) -> None:
    """Offsets that were left elsewhere would be missed, and everything sent again."""
    stored = storage.configs.setting(_OFFSETS_HOME)
    if stored is not None and stored != home:
        raise TaskFailedError(
            f"This worker's source offsets are in {stored}, but its configuration now looks for them "
            f"in {home}; everything would be read again. Set exactly.once.source.support and "
            "offset.storage.topic as they were, or give it a new state.file to begin again."
        )


def offset_homes(desk: LockedOffsetStore) -> ConnectorOffsetStores:
    """Where connectors' offsets are: in *desk*, which is the worker's, and in topics of their own."""
    return ConnectorOffsetStores(
        desk, open_topic=lambda own: KafkaOwnTopic(own, refresh_seconds=_REFRESH_SECONDS)
    )


def channel_for(config: WorkerConfig, homes: ConnectorOffsetStores) -> Channel:
    """The listener for the worker's tasks; its caller closes it."""
    host, _, port = config.channel_listener.rpartition(":")
    return Channel(
        homes.worker.put_entries,
        copy_first=homes.copies.first_entries,
        copy_later=homes.copies.later_entries,
        host=host,
        port=int(port),
        log=form_in_use,
    )


def timing(config: WorkerConfig) -> Timing:
    """How long things may take, as configured."""
    return Timing(
        lease=config.lease_ms / 1e3,
        grace=config.task_shutdown_graceful_timeout_ms / 1e3,
        batch_budget=config.batch_budget_ms / 1e3,
        idle_poll=config.idle_poll_ms / 1e3,
        linger=config.poll_linger_ms / 1e3,
        longest_rest=config.poll_idle_max_ms / 1e3,
        flush_interval=config.offset_flush_interval_ms / 1e3,
    )


def opened_services(
    config: WorkerConfig,
    storage: SqliteStorage,
    *,
    group_id: str,
    worker_id: str,
    emit: EventListener,
    engine: Callable[[], Engine],
    close_later: Callable[[Callable[[], None]], object],
) -> Services:
    """The offset store, the channel and the data plane, opened in this order once Kafka has answered.

    *close_later* is given how to close each of them as soon as it is there. Raises
    :class:`~headrace.connect.errors.ConnectError` when one of them cannot be opened.
    """
    desk = LockedOffsetStore(offset_store(config, group_id, storage))
    close_later(desk.close)
    homes = offset_homes(desk)
    close_later(homes.close)
    channel = channel_for(config, homes)
    close_later(channel.close)
    data_plane = engine()
    close_later(data_plane.close)
    return Services(
        engine=data_plane,
        channel=channel,
        capacity=Capacity(data_plane.slots),
        offsets=homes,
        configs=storage.configs,
        statuses=storage.statuses,
        group_id=group_id,
        worker_id=worker_id,
        run_id=secrets.token_hex(8),
        timing=timing(config),
        emit=emit,
        coordinator=coordinator_of,
        commit_offsets=DriverOffsetCommitter(homes, group_id).commit,
        secondary=_secondary(config, desk, group_id),
    )


def _secondary(
    config: WorkerConfig, desk: LockedOffsetStore, group_id: str
) -> SecondaryOffsetTopic | None:
    if not config.offsets_in_topic:
        return None
    topic = config.offsets_topic(group_id)
    return SecondaryOffsetTopic(desk, topic, producer=config.connection(), group_id=group_id)


# What is late is told and tried again.
_PATIENCE_SECONDS = 15.0
_PARTITIONS = 1


def ensure_dead_letters(spec: RunSpec) -> None:
    """Make the connector's topic of dead letters, with one partition, unless it is there or none is asked for.

    Called on the driver at each start of the connector. Raises
    :class:`~headrace.connect.errors.RetriableError` when Kafka does not answer in time.
    """
    topic = spec.errors.dead_letters
    if topic is None or not spec.errors.tolerate:
        return
    try:
        KafkaAdmin(client_config(spec.admin)).ensure_topic(
            topic,
            Deadline.after(_PATIENCE_SECONDS, time.monotonic),
            partitions=_PARTITIONS,
            replication=spec.errors.replication,
        )
    except TaskFailedError as error:
        raise TaskFailedError(
            f"The topic of dead letters of connector {spec.name} cannot be made: {error} Make topic {topic!r} "
            "yourself, or set errors.deadletterqueue.topic.replication.factor to what the brokers allow "
            f"(now {spec.errors.replication})."
        ) from error
