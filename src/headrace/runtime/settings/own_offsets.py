"""A connector's own topic of source offsets (KIP-618): which one it is, and who reaches it how. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from headrace.connect.config import Problem
from headrace.kafka.client_config import connection_settings
from headrace.runtime.settings.client_problems import shares_servers
from headrace.runtime.settings.connector_config import ConnectorConfig
from headrace.runtime.settings.worker_config import WorkerConfig

KEY: Final = "offsets.storage.topic"
_SERVERS: Final = "bootstrap.servers"


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnOffsets:
    """A topic of source offsets besides the worker's, in the cluster that the connector's tasks write to.

    *partitions* and *replication* are for making it, as the worker's is made. *reader*, *writer* and *admin* are
    the settings of clients, in the Java client's names. *namesake* is those of a client of the worker's cluster, where
    the worker's own topic has the same name: seen from other addresses it may be the same topic.
    """

    topic: str
    partitions: int
    replication: int
    reader: Mapping[str, str] = field(repr=False)
    writer: Mapping[str, str] = field(repr=False)
    admin: Mapping[str, str] = field(repr=False)
    namesake: Mapping[str, str] | None = field(default=None, repr=False)


def own_offsets(config: ConnectorConfig, worker: WorkerConfig, group_id: str) -> OwnOffsets | None:
    """The connector's own topic; ``None`` where it names none, or the worker's in the worker's cluster."""
    topic = config.offsets_storage_topic
    if topic is None:
        return None
    worker_topic = worker.offsets_topic(group_id) if worker.offsets_in_topic else None
    producer = config.producer(worker)
    if topic == worker_topic and shares_servers(producer[_SERVERS], worker):
        return None
    servers = {_SERVERS: producer[_SERVERS]}
    readers = {**worker.under("consumer."), **config.under("consumer.override.")}
    admins = {**config.admin(worker), **servers, **config.under("admin.override.")}
    return OwnOffsets(
        topic=topic,
        partitions=worker.offset_storage_partitions,
        replication=worker.offset_storage_replication_factor,
        reader={**connection_settings(producer), **servers, **connection_settings(readers)},
        writer=producer,
        admin=admins,
        namesake=worker.connection() if topic == worker_topic else None,
    )


def own_offsets_problems(config: ConnectorConfig) -> Iterator[Problem]:
    """Other uses of the connector's own topic that would mix offsets with something else. Pure."""
    topic = config.offsets_storage_topic
    if topic is None:
        return
    used = {
        "topic": "The connector's records go",
        "errors.deadletterqueue.topic.name": "The connector's dead letters go",
    }
    for key, what in used.items():
        if topic == config.originals.get(key, "").strip():
            yield (
                KEY,
                f"{what} to {topic} ({key}). Name a topic that holds nothing but source offsets.",
            )
