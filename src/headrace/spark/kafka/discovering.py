"""What discovers a query's partitions, and what looks their offsets up, built from the query's options."""

from __future__ import annotations

import functools

from headrace.discovery.discoverer import PartitionDiscoverer, Subscription
from headrace.discovery.offsets_retriever import ClusterOffsetsRetriever
from headrace.kafka.deadline import Deadline
from headrace.spark.kafka.connection import connected
from headrace.spark.kafka.options import KafkaSourceOptions
from headrace.spark.kafka.subscription import starting, stopping, subscriber_of


def offsets_of(options: KafkaSourceOptions, deadline: Deadline) -> ClusterOffsetsRetriever:
    """Looks offsets up until *deadline*, as the reader of *options* sees them."""
    return ClusterOffsetsRetriever(
        cluster=connected(options),
        deadline=deadline,
        isolation=options.isolation,
        group_id=options.group_id,
    )


def discoverer_of(options: KafkaSourceOptions, *, is_bounded: bool) -> PartitionDiscoverer:
    """Discovers what *options* subscribe to; once, and with stops, for a bounded read."""
    subscription = Subscription(
        subscriber=subscriber_of(options),
        starting=starting(options),
        stopping=stopping(options) if is_bounded else None,
        bounded=is_bounded,
    )
    return PartitionDiscoverer(
        subscription,
        connected(options),
        functools.partial(offsets_of, options),
        interval_seconds=options.interval_seconds(is_bounded=is_bounded),
        max_failures=options.max_failures,
    )
