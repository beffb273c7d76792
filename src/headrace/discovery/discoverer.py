"""One discovery: list, compare, look offsets up, record; how often, and how many failures are borne."""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass

from headrace.connect.errors import ConnectError
from headrace.discovery.enumerator import Comparison, Finding, PartitionEnumerator
from headrace.discovery.metadata import MetadataSource
from headrace.discovery.offsets_initializer import OffsetsInitializer, PartitionOffsetsRetriever
from headrace.discovery.subscribers import Subscriber
from headrace.kafka.deadline import Clock, Deadline

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Subscription:
    """What is read, from where, and up to where.

    *stopping* is asked when a partition is discovered. A *bounded* source ends when its partitions have reached their stops,
    and reads those of its first discovery only.
    """

    subscriber: Subscriber
    starting: OffsetsInitializer
    stopping: OffsetsInitializer | None = None
    bounded: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DiscoveryCounters:
    """What has happened since the start of the process; a snapshot, for metrics.

    *last_duration_ms* and *last_success_ms* (since 1970) are -1 before the first. *known*, *held_back* are as they are now.
    """

    discoveries: int = 0
    failed: int = 0
    consecutive_failures: int = 0
    last_duration_ms: int = -1
    last_success_ms: int = -1
    known: int = 0
    new: int = 0
    removed: int = 0
    held_back: int = 0
    recreated_topics: int = 0
    data_losses: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Discovery:
    """What a discovery has come to. *failure* is the error of one that failed and that is borne."""

    comparison: Comparison | None = None
    findings: tuple[Finding, ...] = ()
    failure: ConnectError | None = None


class PartitionDiscoverer:
    """Runs discoveries on the thread of its owner.

    Lives as long as the process: it knows when the next discovery is due, and how many have failed in a row. What has been
    discovered is only in the enumerator, which may be another one each time.
    """

    def __init__(
        self,
        subscription: Subscription,
        metadata: MetadataSource,
        retriever: PartitionOffsetsRetriever,
        *,
        interval_seconds: float | None = 300.0,
        max_failures: int = 12,
        clock: Clock = time.monotonic,
    ) -> None:
        raise NotImplementedError

    @property
    def counters(self) -> DiscoveryCounters:
        """For metrics; may be read by any thread."""
        raise NotImplementedError

    def is_due(self, enumerator: PartitionEnumerator) -> bool:
        """Whether a discovery should be run now.

        The first one of a process always is, but for a bounded source that has had its first discovery before.
        """
        raise NotImplementedError

    def is_complete(self, enumerator: PartitionEnumerator) -> bool:
        """Whether no partition will ever be found, so that a bounded source may end when all it has are read."""
        raise NotImplementedError

    def discover(self, enumerator: PartitionEnumerator, deadline: Deadline) -> Discovery:
        """Run one discovery, and record in *enumerator* what was found. Everything found is logged.

        A failure is logged, counted and returned; the next discovery is due an interval later. Raises the error of the first
        discovery of a source, of too many failures in a row, and what no repetition mends:
        :class:`~headrace.discovery.enumerator.PartitionLossError` by policy, a topic that does not exist.
        """
        raise NotImplementedError
