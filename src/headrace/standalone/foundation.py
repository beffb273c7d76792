"""What every standalone worker stands on: its name, Kafka, its offsets, and the channel to its tasks."""

from __future__ import annotations

import logging
import os
import platform
import secrets
import time
from pathlib import Path

from headrace.connect.errors import ConnectError, RetriableError, TaskFailedError
from headrace.kafka.admin import CompactedTopic, KafkaAdmin
from headrace.kafka.client_config import client_config, producer_config
from headrace.kafka.deadline import Deadline
from headrace.kafka.reaching import wait_for_kafka
from headrace.observe.form import form_in_use
from headrace.runtime.channel import Channel
from headrace.runtime.offset_desk import OffsetDesk
from headrace.runtime.offset_homes import OffsetHomes
from headrace.runtime.own_topic import KafkaOwnTopic
from headrace.runtime.services import Timing
from headrace.runtime.settings.state_file import new_identity
from headrace.runtime.settings.worker_config import WorkerConfig
from headrace.standalone.java_offsets_import import import_java_offsets
from headrace.storage.kafka_offsets import KafkaOffsetStore
from headrace.storage.protocols import OffsetStore
from headrace.storage.sqlite import SqliteStorage

_log = logging.getLogger(__name__)
_OFFSETS_HOME = "offsets.home"
_GROUP_ID = "group.id"
# A read that is late is told and tried again from where it was, so this is how soon it is told.
_REFRESH_SECONDS = 10.0


def own_worker_id() -> str:
    """The name in statuses of a worker without listeners."""
    return f"{platform.node()}:{os.getpid()}"


def identity(config: WorkerConfig, storage: SqliteStorage, state_file: Path) -> str:
    """The worker's name in Kafka; one that had to be made is kept in the state file, and told."""
    known = config.group_id or storage.configs.setting(_GROUP_ID)
    group_id = known or f"headrace-{secrets.token_hex(4)}"
    has_begun = config.offsets_in_topic or storage.configs.setting(_OFFSETS_HOME) is not None
    if known is None:
        storage.configs.put_setting(_GROUP_ID, group_id)
    if known is None or not has_begun:
        _log.warning("%s", new_identity(config, group_id, state_file))
    return group_id


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
            "offset.storage.topic as they were, or give it a new state.file to begin anew."
        )


def offset_homes(desk: OffsetDesk) -> OffsetHomes:
    """Where connectors' offsets are: in *desk*, which is the worker's, and in topics of their own."""
    return OffsetHomes(
        desk, open_topic=lambda own: KafkaOwnTopic(own, refresh_seconds=_REFRESH_SECONDS)
    )


def channel_for(config: WorkerConfig, homes: OffsetHomes) -> Channel:
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
