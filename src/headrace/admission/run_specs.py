"""Connectors with every setting resolved, ready to run."""

from __future__ import annotations

from headrace.admission.between import between_of
from headrace.admission.checked_connectors import Admitted
from headrace.runtime.services import RunSpec
from headrace.runtime.settings.connector_config import ConnectorConfig
from headrace.runtime.settings.own_offsets import own_offsets
from headrace.runtime.settings.secret_values import hidden_values
from headrace.runtime.settings.worker_config import WorkerConfig
from headrace.slot.work import BoundaryKind


def run_spec(admitted: Admitted, worker: WorkerConfig, group_id: str) -> RunSpec:
    """A connector with every setting resolved. Pure."""
    config = ConnectorConfig.parse(admitted.props)
    producer, admin = config.producer(worker), config.admin(worker)
    worker_topic = worker.offsets_topic(group_id) if worker.offsets_in_topic else None
    own = own_offsets(config, worker, group_id)
    key, value, header = admitted.converters
    hidden = hidden_values(
        admitted.secrets,
        admitted.settings,
        admitted.props,
        producer,
        admin,
        *(each.config for each in admitted.plugins),
    )
    return RunSpec(
        name=config.name,
        connector=admitted.connector,
        props=admitted.props,
        max_tasks=config.tasks_max,
        enforces_max_tasks=config.tasks_max_enforce,
        delivery=worker.delivery,
        producer=producer,
        admin=admin,
        offsets_topic=own.topic if own else worker_topic,
        own_offsets=own,
        key_converter=key,
        value_converter=value,
        header_converter=header,
        transforms=admitted.transforms,
        between=between_of(admitted.connector, admitted.props, admitted.transforms),
        boundary=config.boundary if worker.exactly_once else BoundaryKind.INTERVAL,
        commit_seconds=config.commit_seconds(worker),
        records_per_second=config.max_records_per_second,
        errors=config.errors,
        topic_groups=config.topic_groups if worker.topic_creation_enable else (),
        hidden=hidden,
    )
