"""What a streaming query has still to read: discovery, the ends of its partitions, and each batch's share of them."""

from __future__ import annotations

import functools
import logging
import time
from collections.abc import Callable, Collection, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import asdict
from typing import Any, Final

from headrace.connect.errors import RetriableError
from headrace.discovery.discoverer import Discovery, PartitionDiscoverer
from headrace.discovery.enumerator import DiscoveryPolicies, PartitionEnumerator
from headrace.discovery.offsets_retriever import (
    Offsets,
    PartitionOffsetsRetriever,
    PartitionsUnavailableError,
)
from headrace.discovery.state import EnumeratorState
from headrace.kafka.deadline import Clock, Deadline
from headrace.kafka.sentences import counted
from headrace.kafka.topic_partition import TopicPartition
from headrace.spark.kafka.discovering import discoverer_of, offsets_of
from headrace.spark.kafka.options import KafkaSourceOptions
from headrace.spark.kafka.planning import limited
from headrace.spark.kafka.reading import lost
from headrace.spark.kafka.record_sizes import RecordSizes, sampled
from headrace.spark.kafka.subscription import policies_of

_log = logging.getLogger(__name__)

# An end that is below what has been read is asked for again after these seconds before it counts (KAFKA-7703).
_ASKED_AGAIN: Final = (0.0, 0.1, 0.4)
# As often as this AvailableNow asks for what is missing; fewer tries than discoveries may fail.
_FIRST_PAUSE, _LONGEST_PAUSE = 0.5, 5.0


class Backlog:
    """Decides where the batches of one query end. Used by one thread.

    It knows nothing that a restart would miss: what has been found and read is in the states that it is given and returns.
    In memory are only clocks: when the next discovery is due, and since when a batch waits for more records.
    """

    def __init__(
        self,
        options: KafkaSourceOptions,
        discoverer: PartitionDiscoverer,
        offsets: Callable[[Deadline], PartitionOffsetsRetriever],
        policies: DiscoveryPolicies,
        *,
        sizes: RecordSizes | None = None,
        clock: Clock = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._options = options
        self._discoverer = discoverer
        self._offsets = offsets
        self._policies = policies
        self._sizes = sizes
        self._clock = clock
        self._sleep = sleep
        self._ends: Offsets = {}
        self._position: Offsets = {}
        self._unavailable = frozenset[TopicPartition]()
        # The first batch of a process does not wait: it may be long since the last one.
        self._waits_since = float("-inf")
        self._is_available_now = False
        self._has_target = False

    def stop_at_what_there_is(self) -> None:
        """The next call of :meth:`advanced` finds what there is; from then on nothing else exists (AvailableNow)."""
        self._is_available_now = True
        self._has_target = False

    def advanced(self, start: EnumeratorState, *, is_limited: bool) -> EnumeratorState:
        """Where a batch ends that begins at *start*; equal to *start* if there is nothing to do.

        Runs a discovery if one is due. Raises :class:`~headrace.connect.errors.RetriableError` when Kafka does not answer in
        time, and :class:`~headrace.spark.kafka.reading.DataLossError` and the errors of a discovery by policy.
        """
        enumerator = PartitionEnumerator(start, self._policies)
        if self._has_target:
            begins = _begins(enumerator)
        else:
            begins = self._all(enumerator) if self._is_available_now else self._looked(enumerator)
        # Those that have not answered do not advance.
        reached = {place: self._ends.get(place, begin) for place, begin in begins.items()}
        ends = self._limited(begins, reached, is_limited=is_limited)
        changed = {place: end for place, end in ends.items() if end != begins[place]}
        fresh = {place: begins[place] for place in begins if _has_no_position(start, place)}
        enumerator.advanced({**fresh, **changed})
        self._position = ends
        return enumerator.snapshot()

    def report(self) -> dict[str, Any] | None:
        """For the query's progress: the ends of partitions, how many offsets the query is behind, discovery's counters."""
        if not self._ends:
            return None
        behind = [end - self._position.get(place, end) for place, end in self._ends.items()]
        topics = dict[str, dict[str, int]]()
        for place, end in sorted(self._ends.items()):
            topics.setdefault(place.topic, {})[str(place.partition)] = end
        return {
            "topics": topics,
            "offsetsBehindLatest": {
                "min": min(behind),
                "max": max(behind),
                "avg": sum(behind) / len(behind),
                "total": sum(behind),
            },
            "discovery": asdict(self._discoverer.counters),
        }

    def _all(self, enumerator: PartitionEnumerator) -> Offsets:
        """As ``_looked``, and waits for what is missing: AvailableNow would end as if that had been read.

        Raises :class:`~headrace.connect.errors.RetriableError` for what is still missing at the deadline.
        """
        deadline = Deadline.after(self._options.timeout_seconds, self._clock)
        pause = _FIRST_PAUSE
        while True:
            failure = self._discover(enumerator).failure
            begins = self._looked(enumerator, has_discovered=True)
            missing = _missing(enumerator, begins.keys() - self._ends.keys(), failure)
            if missing is None:
                self._has_target = True
                return begins
            if deadline.expired:
                raise RetriableError(
                    f"{missing} A query with trigger(availableNow=True) would end without what is there. Check the brokers."
                )
            self._sleep(deadline.remaining(pause))
            pause = min(2 * pause, _LONGEST_PAUSE)

    def _looked(self, enumerator: PartitionEnumerator, *, has_discovered: bool = False) -> Offsets:
        """Discover if that is due, and find out where the partitions end; answers where each is now."""
        if not has_discovered and self._discoverer.is_due(enumerator):
            self._discover(enumerator)
            has_discovered = True
        begins = _begins(enumerator)
        self._ends = self._now(begins)
        if _below(self._ends, begins) and not has_discovered:
            # It may be another topic of the same name, which a discovery tells from records that are lost.
            self._discover(enumerator)
            begins = _begins(enumerator)
            self._ends = self._now(begins)
        for place in _below(self._ends, begins):
            lost(
                f"{place} ends at offset {self._ends[place]}, and this query has read it up to {begins[place]}: the "
                "brokers have lost what was written in between.",
                fails=self._options.fail_on_data_loss,
            )
        return begins

    def _discover(self, enumerator: PartitionEnumerator) -> Discovery:
        return self._discoverer.discover(enumerator, Deadline.after(self._options.timeout_seconds))

    def _now(self, begins: Offsets) -> Offsets:
        retriever = self._offsets(Deadline.after(self._options.timeout_seconds))
        ends = _available(retriever.end_offsets, begins.keys())
        self._report_unavailable(begins.keys() - ends.keys())
        for pause in _ASKED_AGAIN:
            below = _below(ends, begins)
            if not below:
                break
            self._sleep(pause)
            # Before a start that was specified, a transaction may be open: the last stable offset is lower then.
            written = _available(retriever.high_watermarks, below)
            ends |= {
                place: min(written.get(place, begins[place]), begins[place]) for place in below
            }
        return ends

    def _report_unavailable(self, places: AbstractSet[TopicPartition]) -> None:
        """Once, and not at every trigger."""
        if places - self._unavailable:
            _log.warning(
                "The brokers do not say now where the logs of %s end, such as %s; reading goes on when they do.",
                counted(len(places), "partition"),
                min(places),
            )
        self._unavailable = frozenset(places)

    def _limited(self, begins: Offsets, ends: Offsets, *, is_limited: bool) -> Offsets:
        options = self._options
        backlog = {
            place: (begins[place], end) for place, end in ends.items() if end > begins[place]
        }
        if not is_limited or not backlog:
            return ends
        total = sum(end - begin for begin, end in backlog.values())
        if options.min_offsets is not None and not self._is_available_now:
            waited = self._clock() - self._waits_since
            if total < options.min_offsets and waited < options.trigger_delay_seconds:
                return begins
        self._waits_since = self._clock()
        if options.max_partition_offsets is not None:
            most = options.max_partition_offsets
            backlog = {
                place: (begin, min(end, begin + most)) for place, (begin, end) in backlog.items()
            }
        most = self._most(backlog)
        shares = {place: end for place, (_, end) in backlog.items()}
        return {**ends, **(shares if most is None else limited(backlog, most))}

    def _most(self, backlog: Mapping[TopicPartition, tuple[int, int]]) -> int | None:
        """How many offsets a batch has at most, ``None`` without a limit."""
        options = self._options
        if options.max_bytes is None or self._sizes is None:
            return options.max_offsets
        within = self._sizes.offsets_in(options.max_bytes, backlog)
        return within if options.max_offsets is None else min(within, options.max_offsets)


def backlog_of(options: KafkaSourceOptions) -> Backlog:
    """The backlog of the query with *options*. Nothing is asked before its first call."""
    return Backlog(
        options,
        discoverer_of(options, is_bounded=False),
        functools.partial(offsets_of, options),
        policies_of(options),
        sizes=RecordSizes(functools.partial(sampled, options)),
    )


def _begins(enumerator: PartitionEnumerator) -> Offsets:
    """Where each partition that is to be read is now. All that are unassigned are this query's, which has one reader."""
    added = enumerator.unassigned()
    enumerator.assigned([each.place for each in added])
    # Of one that had been read before, the start belongs to a batch of that time.
    enumerator.advanced({each.place: each.position for each in added if each.position is not None})
    splits = enumerator.with_readers()
    begins = {each.place: each.start if each.position is None else each.position for each in splits}
    return {place: begin for place, begin in begins.items() if begin is not None}


def _available(
    asked: Callable[[Collection[TopicPartition]], Offsets], places: Collection[TopicPartition]
) -> dict[TopicPartition, int]:
    """The answers of *asked* for those of *places* that have one now."""
    left = frozenset(places)
    while left:
        try:
            return dict(asked(left))
        except PartitionsUnavailableError as error:
            if not error.partitions & left:
                raise
            left -= error.partitions
    return {}


def _missing(
    enumerator: PartitionEnumerator,
    without_end: AbstractSet[TopicPartition],
    failure: RetriableError | None,
) -> str | None:
    """A sentence about what is not known of what there is; ``None`` if everything is."""
    if failure is not None:
        return f"Discovery failed: {failure}"
    if unresolved := enumerator.unresolved():
        return f"The partition {min(unresolved)} has no leader."
    if without_end:
        return f"The brokers do not say where {min(without_end)} ends now."
    return None


def _below(ends: Offsets, begins: Offsets) -> list[TopicPartition]:
    return [place for place, end in ends.items() if end < begins[place]]


def _has_no_position(state: EnumeratorState, place: TopicPartition) -> bool:
    before = state.partitions.get(place)
    return before is None or before.position is None
