"""The topic of dead letters, made before its connector starts (KIP-298)."""

from __future__ import annotations

import time

from headrace.connect.errors import TaskFailedError
from headrace.kafka.admin import KafkaAdmin
from headrace.kafka.client_config import client_config
from headrace.kafka.deadline import Deadline
from headrace.runtime.services import RunSpec

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
