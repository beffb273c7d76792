"""One discovery: list, compare, look offsets up, record; when it is due, and how many failures are tolerated."""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from headrace.connect.errors import ConfigError, ConnectError, RetriableError, TaskFailedError
from headrace.discovery.enumerator import Comparison, PartitionEnumerator
from headrace.discovery.findings import LOSSES, Change, Finding, findings_by_topic
from headrace.discovery.listing import MetadataSource, listing
from headrace.discovery.offsets_initializer import (
    OffsetsInitializer,
    Reset,
    SpecifiedOffsets,
    earliest_starts,
    initializer_problems,
    resolved_starts,
    resolved_stops,
)
from headrace.discovery.offsets_retriever import (
    Offsets,
    PartitionOffsetsRetriever,
    PartitionsUnavailableError,
)
from headrace.discovery.state import Status
from headrace.discovery.subscribers import Growth, Subscriber
from headrace.kafka.deadline import Clock, Deadline, Reminder
from headrace.kafka.sentences import counted, listed
from headrace.kafka.topic_partition import TopicPartition
from headrace.kafka.wire.cluster import TopicMetadata

_LOG = logging.getLogger(__name__)
# A leader is usually elected within seconds, and asking costs a broker one request to its cache.
_RETRY_SECONDS: Final = 30.0


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

    def check(self, *, group_id: str | None) -> None:
        """Raise :class:`~headrace.connect.errors.ConfigError` for what cannot work; before anything is started."""
        problems = [*initializer_problems(self.starting, self.stopping, group_id=group_id)]
        if self.bounded and self.stopping is None:
            problems.append(("stopping offsets", "A bounded source has to say where it stops."))
        if problems:
            raise ConfigError(problems, where="The Kafka source")


@dataclass(frozen=True, slots=True, kw_only=True)
class DiscoveryCounters:
    """What has happened since the start of the process; a snapshot, for metrics.

    *last_duration_ms* and *last_success_ms* (since 1970) are -1 before the first. *known*, *removed* and *held_back* count
    partitions as they are now, *new* those that were found after the first discovery. *data_losses* counts findings: what
    is gone, re-created or has lost its beginning.
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


class Discovery(NamedTuple):
    """What a discovery has come to.

    *failure* is the error of one that failed, where that is tolerated. It has a *comparison* only if the listing did not fail: what
    that says of revoked partitions counts. *unavailable* could not be resolved now and are tried again.
    """

    comparison: Comparison | None = None
    findings: tuple[Finding, ...] = ()
    unavailable: frozenset[TopicPartition] = frozenset()
    failure: RetriableError | None = None


class PartitionDiscoverer:
    """Runs discoveries, on the thread of its owner.

    Lives as long as the process: it knows when the next discovery is due, and how many have failed in a row. What has been
    discovered is in the enumerator only, which may be another one each time. *offsets* makes what looks offsets up until a
    deadline. Without *max_failures* they are repeated for as long as it takes.
    """

    def __init__(
        self,
        subscription: Subscription,
        metadata: MetadataSource,
        offsets: Callable[[Deadline], PartitionOffsetsRetriever],
        *,
        interval_seconds: float | None = 300.0,
        max_failures: int | None = 12,
        clock: Clock = time.monotonic,
    ) -> None:
        self._subscription = subscription
        self._metadata = metadata
        self._offsets = offsets
        self._interval = None if subscription.bounded else interval_seconds
        self._max_failures = max_failures
        self._clock = clock
        self._ended_at: float | None = None
        self._has_listed = False
        self._logged_as_held_back = frozenset[TopicPartition]()
        self._failing = Reminder()
        self._counters = DiscoveryCounters()

    @property
    def counters(self) -> DiscoveryCounters:
        """For metrics; may be read by any thread."""
        return self._counters

    def is_due(self, enumerator: PartitionEnumerator) -> bool:
        """Whether a discovery should be run now.

        The first one of a process is, but for a bounded source that has found its partitions before. While some are held
        back the next one comes sooner, and also where discovery is switched off. There it is repeated until it has succeeded
        once in this process: what was added while no process ran is not found by anything else.
        """
        if not enumerator.initial_discovery_finished:
            return True
        pauses = [self._interval] if self._interval is not None else []
        is_failing = self._counters.consecutive_failures > 0
        is_wanted = enumerator.unresolved() or self._is_owed
        if is_wanted and not (is_failing and pauses):
            pauses.append(_RETRY_SECONDS)
        if not pauses:
            return False
        return self._ended_at is None or self._clock() >= self._ended_at + min(pauses)

    def is_complete(self, enumerator: PartitionEnumerator) -> bool:
        """Whether no other partition will ever be found: a bounded source ends when those that it has are read."""
        if self._interval is not None or enumerator.unresolved() or self._is_owed:
            return False
        return enumerator.initial_discovery_finished

    def discover(self, enumerator: PartitionEnumerator, deadline: Deadline) -> Discovery:
        """Run one discovery, and record in *enumerator* what was found. Everything that was found is logged.

        A failure is counted and returned, and the next discovery comes after the interval. It is logged; where they are repeated
        for as long as it takes, the first one in a row, and one in ten minutes. Raised are: the error of the first discovery of
        a source; too many failures in a row; and what does not pass by itself, such as
        :class:`~headrace.discovery.enumerator.PartitionLossError` by policy, or a topic that does not exist.
        """
        is_first = not enumerator.initial_discovery_finished
        began = self._clock()
        try:
            found = self._discover(enumerator, deadline)
        except ConnectError:
            self._count_failure()
            raise
        finally:
            self._ended_at = self._clock()
            milliseconds = round((self._ended_at - began) * 1000)
            self._count(discoveries=self._counters.discoveries + 1, last_duration_ms=milliseconds)
        self._count_partitions(enumerator, found)
        if found.failure is None:
            self._count(consecutive_failures=0, last_success_ms=time.time_ns() // 1_000_000)
            self._failing.reset()
        else:
            self._count_failure()
            self._check_tolerable(found.failure, is_first=is_first)
        return found

    @property
    def _is_owed(self) -> bool:
        """Whether a listing of all that is subscribed to has yet to succeed in this process."""
        return not (self._has_listed or self._subscription.bounded)

    def _discover(self, enumerator: PartitionEnumerator, deadline: Deadline) -> Discovery:
        subscriber = self._subscriber(enumerator)
        known, ids = enumerator.known_topics(), enumerator.topic_ids
        try:
            listed = listing(self._metadata, subscriber.names, deadline, known=known, ids=ids)
            comparison = enumerator.discovered(subscriber, listed)
        except RetriableError as error:
            return Discovery(failure=error)
        # What is unclear may have partitions that are not known.
        self._has_listed = self._has_listed or not listed.unclear
        self._report(comparison.findings)
        return self._resolve(enumerator, comparison, self._offsets(deadline))

    def _resolve(
        self,
        enumerator: PartitionEnumerator,
        comparison: Comparison,
        retriever: PartitionOffsetsRetriever,
    ) -> Discovery:
        try:
            found = _looked_up(self._subscription, comparison, retriever)
            truncated = enumerator.resolved(found.starts, found.stops)
        except RetriableError as error:
            return Discovery(comparison, comparison.findings, failure=error)
        finally:
            # Those that are resolved are not affected.
            enumerator.failed((*comparison.initial, *comparison.new))
        further = (*_resets(found.resets), *self._unused(enumerator, comparison), *truncated)
        self._report(further)
        self._log_found(comparison, found.unavailable)
        return Discovery(comparison, (*comparison.findings, *further), found.unavailable)

    def _unused(self, enumerator: PartitionEnumerator, comparison: Comparison) -> Iterator[Finding]:
        """Specified offsets for partitions that are not there, said once, when the others are used."""
        starting = self._subscription.starting
        if isinstance(starting, SpecifiedOffsets) and comparison.initial:
            unused = starting.offsets.keys() - enumerator.partitions.keys()
            yield from findings_by_topic(
                Change.UNUSED,
                dict.fromkeys(unused, ""),
                "not there, so that the offsets specified do not count (found later, they start at their beginning)",
            )

    def _subscriber(self, enumerator: PartitionEnumerator) -> Subscriber:
        """Where discovery is off, another one is only about partitions that the first one has held back."""
        is_off = self._interval is None and not self._is_owed
        if is_off and enumerator.initial_discovery_finished:
            return _KnownOnly(self._subscription.subscriber, frozenset(enumerator.partitions))
        return self._subscription.subscriber

    def _check_tolerable(self, error: RetriableError, *, is_first: bool) -> None:
        failures = self._counters.consecutive_failures
        if is_first:
            raise error
        if self._max_failures is not None and failures >= self._max_failures:
            raise TaskFailedError(
                f"Partitions could not be discovered {counted(failures, 'time')} in a row; last: {error} If the cause passes by itself, "
                "partition.discovery.max.failures can be higher."
            ) from error
        most = self._max_failures
        times = "" if most is None else f", {failures} of at most {most} times in a row"
        if times or self._failing.is_due(self._clock()):
            _LOG.warning(
                "Partitions could not be discovered%s; new ones are found when they can. %s",
                times,
                error,
            )

    def _count_failure(self) -> None:
        before = self._counters
        self._count(failed=before.failed + 1, consecutive_failures=before.consecutive_failures + 1)

    def _count_partitions(self, enumerator: PartitionEnumerator, found: Discovery) -> None:
        before, comparison = self._counters, found.comparison
        states = Counter(one.status for one in enumerator.partitions.values())
        self._count(
            known=states[Status.ASSIGNED] + states[Status.UNASSIGNED],
            removed=states[Status.REMOVED],
        )
        if comparison is not None and found.failure is None:
            self._count(
                new=before.new + len(frozenset(comparison.new) - found.unavailable),
                held_back=len(comparison.held_back) + len(found.unavailable),
            )

    def _count(self, **changes: int) -> None:
        self._counters = replace(self._counters, **changes)

    def _report(self, findings: Collection[Finding]) -> None:
        """Log and count what was found, when it was found: a look-up that fails afterwards does not hide it."""
        for each in findings:
            level = logging.INFO if each.change is Change.RETURNED else logging.WARNING
            _LOG.log(level, "%s", each.sentence)
        changes = Counter(each.change for each in findings)
        before = self._counters
        self._count(
            recreated_topics=before.recreated_topics + changes[Change.RECREATED],
            data_losses=before.data_losses + sum(changes[each] for each in LOSSES),
        )

    def _log_found(self, comparison: Comparison, unavailable: Collection[TopicPartition]) -> None:
        for partitions, how, start in (
            (comparison.initial, "The first discovery", ""),
            (comparison.new, "A later discovery", ", to be read from the beginning"),
        ):
            resolved = [each for each in partitions if each not in unavailable]
            if resolved:
                topics = sorted({each.topic for each in resolved})
                _LOG.info(
                    "%s has found %s of %s%s: %s.",
                    how,
                    counted(len(resolved), "partition"),
                    counted(len(topics), "topic"),
                    start,
                    listed(topics),
                )
        held_back = frozenset((*comparison.held_back, *unavailable))
        if held_back - self._logged_as_held_back:
            _LOG.warning(
                "No leader answers now for %s, such as %s; reading begins when one does.",
                counted(len(held_back), "partition"),
                min(held_back),
            )
        self._logged_as_held_back = held_back


class _LookedUp(NamedTuple):
    starts: Offsets
    stops: Offsets
    resets: tuple[Reset, ...]
    unavailable: frozenset[TopicPartition]


def _looked_up(
    subscription: Subscription, comparison: Comparison, retriever: PartitionOffsetsRetriever
) -> _LookedUp:
    """The offsets of one discovery; partitions that have no answer now do not keep the others from theirs."""
    initial, new = frozenset(comparison.initial), frozenset(comparison.new)
    unavailable = frozenset[TopicPartition]()
    while True:
        try:
            found = resolved_starts(subscription.starting, sorted(initial - unavailable), retriever)
            starts = {**found.offsets, **earliest_starts(sorted(new - unavailable), retriever)}
            stops = resolved_stops(subscription.stopping, starts, retriever)
        except RetriableError as error:
            without = _without_answer(error, (initial | new) - unavailable, retriever)
            if not without:
                raise
            unavailable |= without
        else:
            return _LookedUp(starts, stops, found.resets, unavailable)


def _without_answer(
    error: RetriableError,
    asked: frozenset[TopicPartition],
    retriever: PartitionOffsetsRetriever,
) -> frozenset[TopicPartition]:
    """Those of *asked* because of which a look-up has failed with *error*, if it was because of some of them.

    Raises what *retriever* raises where it is because of all.
    """
    if isinstance(error, PartitionsUnavailableError):
        return error.partitions & asked
    # Some may have been asked for alone, and only their leader is away.
    try:
        retriever.beginning_offsets(sorted(asked))
    except PartitionsUnavailableError as unavailable:
        return unavailable.partitions & asked
    return frozenset()


def _resets(resets: Collection[Reset]) -> Iterator[Finding]:
    yield from findings_by_topic(
        Change.RESET,
        {each.place: f" starts at {each.start}" for each in resets if each.wanted is None},
        "with neither a specified nor a committed offset",
    )
    yield from findings_by_topic(
        Change.RESET,
        {
            each.place: f" starts at {each.start} and not at {each.wanted}"
            for each in resets
            if each.wanted is not None
        },
        "without the offset to start at in their logs",
    )


@dataclass(frozen=True, slots=True)
class _KnownOnly:
    """Of what *subscriber* finds, only what is *known*."""

    subscriber: Subscriber
    known: frozenset[TopicPartition]

    @property
    def names(self) -> frozenset[str] | None:
        return self.subscriber.names

    @property
    def growth(self) -> Growth:
        return self.subscriber.growth

    def subscribed(self, topics: Mapping[str, TopicMetadata]) -> Collection[TopicPartition]:
        return self.known.intersection(self.subscriber.subscribed(topics))
