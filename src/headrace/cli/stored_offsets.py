"""A connector's stored source offsets, for a look: nothing is written, made or fenced."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from headrace.connect.errors import RetriableError
from headrace.connect.partition import SourceOffset, SourcePartition
from headrace.kafka.admin import KafkaAdmin
from headrace.kafka.client_config import client_config, producer_config
from headrace.kafka.deadline import Deadline
from headrace.runtime.own_topic import KafkaOwnTopic
from headrace.runtime.settings.connector_config import ConnectorConfig
from headrace.runtime.settings.own_offsets import OwnOffsets, own_offsets
from headrace.runtime.settings.worker_config import WorkerConfig
from headrace.storage.kafka_offsets import KafkaOffsetStore
from headrace.storage.overlaid_offsets import OverlaidOffsets
from headrace.storage.sqlite_look import seen_offsets, seen_setting

_GROUP_ID = "group.id"
# Somebody sits and waits, and may not have meant to ask a broker.
_PATIENCE_SECONDS = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredOffsets:
    """What is stored, and a sentence about it where that may not be what is expected."""

    offsets: Mapping[SourcePartition, SourceOffset] = field(
        default_factory=dict[SourcePartition, SourceOffset]
    )
    told: str | None = None


def stored_offsets(
    config: WorkerConfig, state_file: Path, connector: ConnectorConfig
) -> StoredOffsets:
    """The offsets of *connector*; none where Kafka is not reached within seconds, which is told.

    Raises :class:`~headrace.connect.errors.ConnectError` when they are there and cannot be read.
    """
    group_id = config.group_id or seen_setting(state_file, _GROUP_ID)
    own = own_offsets(connector, config, group_id or "")
    told = own and _unreached(KafkaAdmin(client_config(own.admin)), _patience_seconds(config))
    if told:
        return StoredOffsets(told=told)
    if config.offsets_in_topic:
        below = _in_worker_topic(config, group_id, connector.name)
    else:
        below = StoredOffsets(offsets=seen_offsets(state_file, connector.name))
    return _overlaid(own, below, connector.name, _patience_seconds(config)) if own else below


def _overlaid(
    own: OwnOffsets, below: StoredOffsets, connector: str, seconds: float
) -> StoredOffsets:
    """What the connector's own topic has, and else the worker's; there may be no such topic yet."""
    topic = KafkaOwnTopic(own, refresh_seconds=seconds)
    try:
        desk = topic.desk()
        if desk is None:
            return below
        known = desk.current(connector).known()
        return replace(below, offsets=OverlaidOffsets(known, below.offsets))
    finally:
        topic.close()


def _in_worker_topic(config: WorkerConfig, group_id: str | None, connector: str) -> StoredOffsets:
    if group_id is None and config.offset_storage_topic is None:
        return StoredOffsets(told="This worker has not run yet: it stores no offsets.")
    topic, seconds = config.offsets_topic(group_id or ""), _patience_seconds(config)
    admin = KafkaAdmin(client_config(config.connection()))
    told = _unreached(admin, seconds)
    if told:
        return StoredOffsets(told=told)
    if not admin.exists(topic, Deadline.after(seconds, time.monotonic)):
        return StoredOffsets(told=f"There is no topic {topic} yet: the worker stores no offsets.")
    return StoredOffsets(offsets=_in_topic(config, topic, connector))


def _patience_seconds(config: WorkerConfig) -> float:
    return min(_PATIENCE_SECONDS, config.start_deadline_ms / 1e3)


def _unreached(admin: KafkaAdmin, seconds: float) -> str | None:
    try:
        admin.check_reachable(Deadline.after(seconds, time.monotonic))
    except RetriableError as error:
        reason = admin.last_said or str(error)
        return f"Kafka was not reached ({reason.rstrip('.')}): this is as if it stored no offsets."
    return None


def _in_topic(
    config: WorkerConfig, topic: str, connector: str
) -> Mapping[SourcePartition, SourceOffset]:
    store = KafkaOffsetStore(
        topic,
        client=client_config(config.connection()),
        producer=producer_config(config.connection()),
    )
    try:
        store.refresh()
        return store.known(connector)
    finally:
        store.close()
