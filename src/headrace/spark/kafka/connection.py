"""The connections of a Python process to the clusters of its queries, kept from one Spark task to the next."""

from __future__ import annotations

import functools
from collections.abc import Collection, Generator
from contextlib import contextmanager

from headrace.connect.errors import ConnectError
from headrace.discovery.discoverer import PartitionDiscoverer, Subscription
from headrace.discovery.offsets_retriever import ClusterOffsetsRetriever
from headrace.kafka.deadline import Deadline
from headrace.kafka.wire.cluster import Cluster
from headrace.kafka.wire.fetcher import Fetcher, FetchRange, FetchSettings
from headrace.kafka.wire.settings import wire_settings
from headrace.spark.kafka.options import KafkaSourceOptions
from headrace.spark.kafka.subscription import starting, stopping, subscriber_of


@functools.lru_cache(maxsize=8)
def _connected(settings: frozenset[tuple[str, str | int | bool]]) -> Cluster:
    return Cluster(wire_settings(dict(settings)))


@functools.lru_cache(maxsize=8)
def _fetching(
    settings: frozenset[tuple[str, str | int | bool]], fetch_settings: FetchSettings
) -> Fetcher:
    return Fetcher(_connected(settings), (), fetch_settings)


@contextmanager
def fetching(
    options: KafkaSourceOptions,
    ranges: Collection[FetchRange],
    settings: FetchSettings | None = None,
) -> Generator[Fetcher]:
    """Fetches *ranges* on connections that stay open for the next task; not after an error of which nothing is known."""
    fetcher = _fetching(_key(options), settings or options.fetch_settings)
    fetcher.add(ranges)
    try:
        yield fetcher
    except (ConnectError, GeneratorExit):
        raise
    except BaseException:
        _fetching.cache_clear()
        fetcher.close()
        raise
    finally:
        fetcher.remove([each.place for each in ranges])


def _key(options: KafkaSourceOptions) -> frozenset[tuple[str, str | int | bool]]:
    return frozenset(options.client.settings.items())


def connected(options: KafkaSourceOptions) -> Cluster:
    """The cluster of *options*: the same object for the same client settings. Spark's Python processes have one thread."""
    return _connected(_key(options))


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
