"""The topics that the connectors of a mirror write for themselves: created as MirrorMaker creates them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from headrace.connect.errors import TaskFailedError
from headrace.kafka.admin import KafkaAdmin
from headrace.kafka.deadline import Deadline
from headrace.kafka.topic_admin import TopicAdmin
from headrace.mirror.client_settings import ClientRole
from headrace.mirror.clients import target_admin, worker_admin
from headrace.mirror.settings import MirrorConnectorConfig

COMPACTED: Final = {"cleanup.policy": "compact"}
"""The settings of the topics of heartbeats, checkpoints and offset syncs."""


def patience(config: MirrorConnectorConfig) -> Deadline:
    """Until when a start waits for a cluster."""
    return Deadline.after(config.patience_seconds)


def ensure_compacted(
    admin: KafkaAdmin, topic: str, deadline: Deadline, *, replication: int, key: str
) -> None:
    """Create *topic*, with one partition, unless it exists; *key* is the setting that says its *replication* factor.

    Raises :class:`~headrace.connect.errors.RetriableError` when the cluster does not answer in time, and
    :class:`~headrace.connect.errors.TaskFailedError` when it refuses.
    """
    try:
        admin.ensure_topic(
            topic, deadline, partitions=1, replication=replication, settings=COMPACTED
        )
    except TaskFailedError as error:
        raise TaskFailedError(
            f"{error} The replication factor of topic {topic!r} is that of {key}, {replication}."
        ) from error


def checked_target_admin(
    config: MirrorConnectorConfig, worker: Mapping[str, str], role: ClientRole, deadline: Deadline
) -> TopicAdmin:
    """An admin client of the target, which is the cluster that the tasks write to.

    *worker* is as for :func:`~headrace.mirror.clients.target_cluster`. Raises
    :class:`~headrace.connect.errors.TaskFailedError` when the connector's own settings lead to another one.
    """
    named, writing = target_admin(config, worker, role), worker_admin(config, worker)
    if writing is not None:
        check_one_cluster(named, writing, deadline)
    return named


def check_one_cluster(named: TopicAdmin, writing: TopicAdmin, deadline: Deadline) -> None:
    """Raise unless the connector's own settings lead to the cluster that the tasks write to: topics are of no use in another."""
    here, there = named.cluster_id(deadline), writing.cluster_id(deadline)
    if here != there:
        raise TaskFailedError(
            f"target.cluster.bootstrap.servers leads to the cluster {here}, and this worker writes to {there}: name the "
            "worker's own cluster, or leave it out. For records in another cluster, run a worker there."
        )
