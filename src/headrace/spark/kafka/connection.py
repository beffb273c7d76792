"""The connections of a Python process to the clusters of its queries, kept from one Spark task to the next."""

from __future__ import annotations

import functools
from collections.abc import Collection, Generator
from contextlib import contextmanager
from typing import Final

from headrace.connect.errors import ConnectError
from headrace.kafka.wire.cluster import Cluster
from headrace.kafka.wire.fetcher import Fetcher, FetchRange, FetchSettings
from headrace.kafka.wire.settings import wire_settings
from headrace.spark.kafka.options import KafkaSourceOptions

_ClientSettings = frozenset[tuple[str, str | int | bool]]

_MOST: Final = 8
# Those that no task uses, the last one used at the end.
_idle: Final = dict[tuple[_ClientSettings, FetchSettings], Fetcher]()


@functools.lru_cache(maxsize=_MOST)
def _connected(settings: _ClientSettings) -> Cluster:
    return Cluster(wire_settings(dict(settings)))


def connected(options: KafkaSourceOptions) -> Cluster:
    """The cluster of *options*: the same object for the same client settings. Spark's Python processes have one thread."""
    return _connected(_key(options))


@contextmanager
def fetching(
    options: KafkaSourceOptions,
    ranges: Collection[FetchRange],
    settings: FetchSettings | None = None,
) -> Generator[Fetcher]:
    """Fetches *ranges* on connections that stay open for the next task; not after an error of which nothing is known.

    No one else has the fetcher meanwhile: a task that was given up, and whose generator is closed some time later, harms
    no other one.
    """
    key = _key(options), settings or options.fetch_settings
    fetcher = _idle.pop(key, None) or Fetcher(connected(options), (), key[1])
    try:
        fetcher.add(ranges)
        yield fetcher
    except (ConnectError, GeneratorExit):
        _keep(key, fetcher)
        raise
    except BaseException:
        fetcher.close()
        raise
    else:
        _keep(key, fetcher)


def _keep(key: tuple[_ClientSettings, FetchSettings], fetcher: Fetcher) -> None:
    """Keep *fetcher* for the next task, at the cost of the one that has waited longest where there are many."""
    fetcher.remove(list(fetcher.positions))
    surplus = _idle.pop(key, None)
    _idle[key] = fetcher
    if surplus is None and len(_idle) > _MOST:
        surplus = _idle.pop(next(iter(_idle)))
    if surplus is not None:
        surplus.close()


def _key(options: KafkaSourceOptions) -> _ClientSettings:
    return frozenset(options.client.settings.items())
