"""What a configuration means for a connector that passes record batches on, or keeps its offsets in a consumer group."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from headrace.config.client_settings import OFFSETS_TOPIC_KEY
from headrace.config.connector_config import ConnectorConfig
from headrace.config.worker_config import WorkerConfig
from headrace.connect.config import Problem
from headrace.connect.connector import ExactlyOnceSupport, SourceConnector
from headrace.connect.group_offsets import OffsetGroup
from headrace.converters import BYTES_CONVERTER
from headrace.task.connector_spec import Delivery, PluginChoice

_NEEDLESS_TOPIC: Final = (
    "This connector keeps its source offsets in the consumer group {group!r} on the cluster that it writes to, and in no "
    "topic. Leave {key} out."
)


def default_converter(connector: SourceConnector, props: Mapping[str, str]) -> PluginChoice | None:
    """The converter of the connector's keys, values and headers if *props* name none; ``None``: the worker's."""
    if not connector.returns_encoded(props):
        return None
    return PluginChoice(class_name=BYTES_CONVERTER)


def offset_group_problems(group: OffsetGroup, config: ConnectorConfig) -> Iterator[Problem]:
    """Settings that contradict offsets in *group*. Pure."""
    if config.offsets_storage_topic is not None:
        yield (
            OFFSETS_TOPIC_KEY,
            _NEEDLESS_TOPIC.format(group=group.group_id, key=OFFSETS_TOPIC_KEY),
        )


def delivery(
    connector: SourceConnector,
    props: Mapping[str, str],
    worker: WorkerConfig,
    group: OffsetGroup | None,
) -> Delivery:
    """The guarantee that the connector runs with.

    One with its offsets in *group* may do without transactions by itself, in a worker that has them: nothing but its own
    offsets depends on it.
    """
    if group is None or not worker.exactly_once:
        return worker.delivery
    support = connector.exactly_once_support(props)
    is_without = support is ExactlyOnceSupport.UNSUPPORTED
    return Delivery.AT_LEAST_ONCE if is_without else Delivery.EXACTLY_ONCE
