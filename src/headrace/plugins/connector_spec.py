"""A validated connector, and the spec that runs it: every setting resolved."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from headrace.config.client_settings import (
    ConnectorOffsetsGroup,
    ConnectorOffsetsTopic,
    connector_offsets_topic,
    why_not_by_wire,
)
from headrace.config.connector_config import ConnectorConfig
from headrace.config.secret_values import connector_secrets
from headrace.config.worker_config import WorkerConfig
from headrace.connect.connector import SourceConnector
from headrace.connect.group_offsets import OffsetGroup
from headrace.connect.setting import Setting
from headrace.offsets.target import DriverStore, OffsetTarget, OffsetTopic, TargetGroup
from headrace.plugins.offset_group import delivery
from headrace.plugins.sql_step import sql_stage
from headrace.runtime.services import RunSpec
from headrace.task.connector_spec import (
    BoundaryKind,
    Delivery,
    PluginChoice,
    SenderKind,
    StageChoice,
)
from headrace.task.sql.step import is_sql


@dataclass(frozen=True, slots=True, kw_only=True)
class ValidatedConnector:
    """A connector whose configuration has been checked; made, but not started.

    *props* are resolved and hold secrets: only *given*, with its placeholders, may be stored or shown.
    *secrets* are what was put in, each with its placeholder. *converters* are those of ``ROLES``, as slots make them,
    and so are the *transforms*. *settings* are those of the connector's class and of its aliases.
    """

    name: str
    connector: SourceConnector
    props: Mapping[str, str] = field(repr=False)
    given: Mapping[str, str] = field(repr=False)
    secrets: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    converters: tuple[PluginChoice, ...] = field(default=(), repr=False)
    transforms: tuple[StageChoice, ...] = field(default=(), repr=False)
    settings: tuple[Setting, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def plugins(self) -> tuple[PluginChoice, ...]:
        """Everything that its slots instantiate besides tasks."""
        return (*self.converters, *(one for each in self.transforms for one in each.plugins))

    @property
    def has_sql(self) -> bool:
        """Whether its records pass through Spark's JVM."""
        return any(map(is_sql, self.transforms))


@dataclass(frozen=True, slots=True, kw_only=True)
class ChosenSender:
    """What sends a connector's records, and what of the producer's settings headrace's own sender cannot have, where that was not asked for by name."""

    kind: SenderKind
    reason: str | None = None


def chosen_sender(
    config: ConnectorConfig, worker: WorkerConfig, *, has_group: bool = False
) -> ChosenSender:
    """What sends for the connector: what it names, or the wire if that can have its producer's settings.

    Offsets of a group are committed by the wire alone, so with a group there is nothing to choose.
    """
    if has_group:
        return ChosenSender(kind=SenderKind.WIRE, reason=why_not_by_wire(config, worker))
    if config.sender is not None:
        return ChosenSender(kind=SenderKind(config.sender))
    reason = why_not_by_wire(config, worker)
    return ChosenSender(
        kind=SenderKind.WIRE if reason is None else SenderKind.CLIENT, reason=reason
    )


def run_spec(validated: ValidatedConnector, worker: WorkerConfig, group_id: str) -> RunSpec:
    """A connector with every setting resolved. Pure."""
    config = ConnectorConfig.parse(validated.props)
    producer, admin = config.producer(worker), config.admin(worker)
    worker_topic = worker.offsets_topic(group_id) if worker.offsets_in_topic else None
    group = validated.connector.offset_group(validated.props)
    own = None if group else connector_offsets_topic(config, worker, group_id)
    delivered = delivery(validated.connector, validated.props, worker, group)
    key, value, header = validated.converters
    sender = chosen_sender(config, worker, has_group=group is not None)
    secrets = connector_secrets(
        validated.secrets,
        validated.settings,
        validated.props,
        producer,
        admin,
        *(each.config for each in validated.plugins),
    )
    return RunSpec(
        name=config.name,
        connector=validated.connector,
        props=validated.props,
        max_tasks=config.tasks_max,
        enforces_max_tasks=config.tasks_max_enforce,
        delivery=delivered,
        producer=producer,
        sender=sender.kind,
        not_by_wire=sender.reason,
        admin=admin,
        offsets=_target(group, own, worker_topic),
        offsets_topic=own,
        offsets_group=group and ConnectorOffsetsGroup.reached_as(producer, group),
        key_converter=key,
        value_converter=value,
        header_converter=header,
        transforms=validated.transforms,
        sql_stage=sql_stage(validated.connector, validated.props, validated.transforms),
        boundary=config.boundary if delivered is Delivery.EXACTLY_ONCE else BoundaryKind.INTERVAL,
        commit_seconds=config.commit_seconds(worker),
        records_per_second=config.max_records_per_second,
        errors=config.errors,
        topic_groups=config.topic_groups if worker.topic_creation_enable else (),
        secrets=secrets,
    )


def offsets_group(
    validated: ValidatedConnector, worker: WorkerConfig
) -> ConnectorOffsetsGroup | None:
    """The consumer group that holds the connector's source offsets, if that is one. Pure."""
    producer = ConnectorConfig.parse(validated.props).producer(worker)
    group = validated.connector.offset_group(validated.props)
    return group and ConnectorOffsetsGroup.reached_as(producer, group)


def _target(
    group: OffsetGroup | None, own: ConnectorOffsetsTopic | None, worker_topic: str | None
) -> OffsetTarget:
    if group is not None:
        return TargetGroup(group_id=group.group_id, codec=group.codec, config=dict(group.config))
    if own is not None:
        return OffsetTopic(name=own.topic, has_secondary=True)
    return DriverStore() if worker_topic is None else OffsetTopic(name=worker_topic)
