"""What a mirror copies next: discovery, remote topics, positions compared with the clusters, and each slot's share."""

from __future__ import annotations

import logging
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from headrace.connect.connector import Plan, PlanRequest
from headrace.connect.errors import TaskFailedError
from headrace.connect.group_offsets import GroupEntry
from headrace.connect.partition import SourceOffset, SourcePartition
from headrace.connect.task import Split
from headrace.discovery.discoverer import PartitionDiscoverer
from headrace.discovery.enumerator import PartitionEnumerator, PartitionSplit
from headrace.discovery.findings import Change, Finding
from headrace.discovery.owners import Owners, balanced_owners
from headrace.discovery.state import Kind
from headrace.kafka.deadline import Clock, Deadline
from headrace.kafka.topic_partition import TopicPartition
from headrace.mirror.policies import IdentityReplicationPolicy
from headrace.mirror.positions import DISCOVERED, Flow, Position
from headrace.mirror.settings import MirrorSourceConfig, same_cluster
from headrace.mirror.source_logs import SourceLogs
from headrace.mirror.source_task import END, REMOTE
from headrace.mirror.starts import (
    Begin,
    RemotePartition,
    Resume,
    Start,
    StartRules,
    Stop,
    stopped,
)
from headrace.mirror.subscription import REPORTED, restored
from headrace.mirror.target import MirrorTarget

_log = logging.getLogger(__name__)

PATIENCE_SECONDS: Final = 15.0
"""How long a plan waits for an answer of a cluster, at most; a plan that got none is tried again."""


class Stored(NamedTuple):
    """What the group has: the positions of this flow with their offsets, and whether its first discovery is over."""

    positions: Mapping[TopicPartition, Position]
    offsets: Mapping[TopicPartition, SourceOffset]
    is_discovered: bool


def stored(flow: Flow, known: Mapping[SourcePartition, SourceOffset]) -> Stored:
    """The offsets that are *known*, as positions of *flow*. Pure."""
    offsets = {
        place: offset
        for partition, offset in known.items()
        if (place := flow.place(partition)) is not None
    }
    positions = {place: Position.of(offset) for place, offset in offsets.items()}
    return Stored(positions, offsets, flow.discovery in known)


class FlowPlanner:
    """Makes the plans of one connector, on its thread.

    It knows nothing that a restart would miss, but for what it has compared already, and when something is due: positions,
    and that the first discovery is over, are in the group.
    """

    def __init__(
        self,
        config: MirrorSourceConfig,
        source: SourceLogs,
        target: MirrorTarget,
        discoverer: PartitionDiscoverer,
        *,
        clock: Clock = time.monotonic,
    ) -> None:
        self._config = config
        self._flow = Flow.of(config.originals)
        self._rules = StartRules(
            connector=config.name, flow=self._flow, group=config.group_id, config=config
        )
        self._source = source
        self._target = target
        self._discoverer = discoverer
        self._clock = clock
        self._enumerator: PartitionEnumerator | None = None
        self._has_begun = self._has_discovered = False
        self._compared = set[TopicPartition]()
        self._owners: Owners = {}
        self._slots = 0
        self._planned: dict[TopicPartition, int] = {}
        self._before: dict[TopicPartition, Position] = {}
        self._recommit_at: float | None = None
        self._told = set[str]()

    def plan(self, request: PlanRequest) -> Plan:
        """What to store, or what to copy next.

        Starts, and positions that the rules move, are stored before anything is copied: a plan does one of the two.
        Raises :class:`~headrace.connect.errors.TaskFailedError` with what stops partitions, once everything else is stored.
        """
        if not self._has_begun:
            self._target.check_group()
            self._has_begun = True
        found = stored(self._flow, request.offsets.known())
        enumerator = self._discovered(found)
        splits = {split.place: split for split in enumerator.unassigned()}
        self._ensure_topics(splits, found)
        starts = {
            **self._begun(splits, found, request.unnamed),
            **self._resumed(splits, found),
        }
        self._tell(starts.values())
        self._before |= found.positions
        changes = self._changes(splits, found, starts)
        if self._has_to_note_discovery(enumerator, found):
            changes[self._flow.discovery] = DISCOVERED
        if changes or self._is_recommit_due():
            changes = {**self._recommitted(found), **changes}
        if changes:
            return Plan(offsets=changes)
        problems = {place: one.problem for place, one in starts.items() if isinstance(one, Stop)}
        if problems:
            raise TaskFailedError(" ".join(stopped(problems)))
        return Plan(shares=self._shares(splits, found, request.slots))

    # Discovery.

    def _discovered(self, found: Stored) -> PartitionEnumerator:
        """What is known of the source's partitions, after a discovery if one is due."""
        if self._enumerator is None:
            state = restored(found.positions, is_discovered=found.is_discovered)
            self._enumerator = PartitionEnumerator(state, REPORTED)
        is_cut_short = self._was_cut_short(found)
        if is_cut_short:
            # A slot ends early also because of what only a comparison of its positions with the source explains.
            self._compared -= self._planned.keys()
        self._planned = {}
        if is_cut_short or not self._has_discovered or self._discoverer.is_due(self._enumerator):
            result = self._discoverer.discover(self._enumerator, Deadline.after(PATIENCE_SECONDS))
            self._check_findings(result.findings)
            self._compared -= {
                TopicPartition(each.topic, number)
                for each in result.findings
                if each.change is Change.RECREATED
                for number in each.partitions
            }
            self._has_discovered = self._has_discovered or result.comparison is not None
            self._target.doubt()
        return self._enumerator

    def _was_cut_short(self, found: Stored) -> bool:
        return any(
            place not in found.positions or found.positions[place].next < end
            for place, end in self._planned.items()
        )

    def _check_findings(self, findings: Iterable[Finding]) -> None:
        """Raise for losses of topics by the settings; those of a partition with a position are its own."""
        for each in findings:
            if each.change is Change.REMOVED and self._config.on_removed == "fail":
                raise TaskFailedError(
                    f"{each.sentence} Set mirror.on.removed to continue to copy the others."
                )
            # What the first discovery of a process finds may only be subscribed to since then.
            is_loss = each.change is Change.TRUNCATED and self._has_discovered
            if is_loss and self._config.on_lost == "fail":
                raise TaskFailedError(
                    f"{each.sentence} Set mirror.on.lost to continue to copy what is left."
                )

    def _has_to_note_discovery(self, enumerator: PartitionEnumerator, found: Stored) -> bool:
        """Whether the first discovery is over, with a start for each partition that it has found, and that is not stored."""
        if found.is_discovered or not enumerator.initial_discovery_finished:
            return False
        kinds = {enumerator.partitions[place].kind for place in enumerator.unresolved()}
        return Kind.INITIAL not in kinds

    # Topics.

    def _ensure_topics(self, splits: Collection[TopicPartition], found: Stored) -> None:
        topics = {place.topic for place in splits}
        copied = {place.topic for place in (*found.positions, *self._before) if place in splits}
        self._target.ensure_internal()
        self._check_two_clusters()
        self._target.ensure({each: self._source.partitions(each) for each in topics}, copied)

    def _check_two_clusters(self) -> None:
        one, other = self._source.cluster_id, self._target.cluster_id
        if one and one == other and isinstance(self._config.policy, IdentityReplicationPolicy):
            raise TaskFailedError(same_cluster(str(self._flow)))

    # Starts.

    def _begun(
        self,
        splits: Mapping[TopicPartition, PartitionSplit],
        found: Stored,
        unnamed: Sequence[GroupEntry],
    ) -> dict[TopicPartition, Start]:
        """What the rules say of partitions without a position."""
        remote = {place: self._remote(place) for place in splits if place not in found.positions}
        ends = self._target.ends(remote.values())
        others = {TopicPartition(*each.place): each for each in unnamed}
        return {
            place: self._rules.without(
                place, RemotePartition(other, ends[other], others.get(other))
            )
            for place, other in remote.items()
            if other in ends
        }

    def _resumed(
        self, splits: Mapping[TopicPartition, PartitionSplit], found: Stored
    ) -> dict[TopicPartition, Start]:
        """What the rules say of positions that were not compared with the source's logs yet."""
        positions = {
            place: position
            for place, position in found.positions.items()
            if place in splits and place not in self._compared
        }
        logs = self._source.logs(positions)
        starts = dict[TopicPartition, Start]()
        for place, log in logs.items():
            starts[place] = self._rules.resumed(place, positions[place], log)
            if not isinstance(starts[place], Stop):
                self._compared.add(place)
        return starts

    def _changes(
        self,
        splits: Mapping[TopicPartition, PartitionSplit],
        found: Stored,
        starts: Mapping[TopicPartition, Start],
    ) -> dict[SourcePartition, SourceOffset]:
        """The positions that are to be stored before anything is copied."""
        changes = dict[SourcePartition, SourceOffset]()
        for place, start in starts.items():
            position = None
            if isinstance(start, Resume):
                position = start.position
            elif isinstance(start, Begin):
                position = self._first(splits[place])
            if position is not None and position != found.positions.get(place):
                changes[self._flow.partition(place)] = position.offset
        return changes

    def _first(self, split: PartitionSplit) -> Position | None:
        """Where a partition starts that has no position: what discovery has resolved, or where it was in this process."""
        identity = Position(0, self._source.cluster_id, self._source.topic_id(split.place.topic))
        if split.place in self._before:
            return self._before[split.place]
        return None if split.start is None else identity._replace(next=split.start)

    def _tell(self, starts: Iterable[Start]) -> None:
        for each in starts:
            told = None if isinstance(each, Stop) else each.told
            if told is not None and told not in self._told:
                self._told.add(told)
                _log.warning("%s", told)

    # Positions expire one by one.

    def _is_recommit_due(self) -> bool:
        return self._recommit_at is None or self._clock() >= self._recommit_at

    def _recommitted(self, found: Stored) -> dict[SourcePartition, SourceOffset]:
        """All positions as they are, so that none expires; but for those whose remote partition is gone."""
        self._recommit_at = self._clock() + self._target.recommit_seconds()
        remote = {place: self._remote(place) for place in found.positions}
        there = self._target.existing(remote.values()) if remote else frozenset[TopicPartition]()
        changes = {
            self._flow.partition(place): found.offsets[place]
            for place, other in remote.items()
            if other in there
        }
        if found.is_discovered:
            changes[self._flow.discovery] = DISCOVERED
        return changes

    # Shares.

    def _shares(
        self, splits: Collection[TopicPartition], found: Stored, slots: int
    ) -> list[list[Split]]:
        """For each slot its partitions that have something to read, up to where they end now."""
        places = sorted(self._compared.intersection(splits, found.positions))
        self._owners = balanced_owners(
            places, slots, self._owners if slots == self._slots else None
        )
        self._slots = slots
        ends = self._source.readable_ends(places)
        shares: list[list[Split]] = [[] for _ in range(slots)]
        for place in places:
            end, position = ends.get(place), found.positions[place]
            if end is None:
                continue
            if end < position.next:
                # Before a start that was chosen there may be an open transaction; or the log has lost something.
                self._compared.discard(place)
            elif end > position.next:
                self._planned[place] = end
                shares[self._owners[place]].append(self._split(place, found, end))
        return shares

    def _split(self, place: TopicPartition, found: Stored, end: int) -> Split:
        return Split(
            partition=self._flow.partition(place),
            offset=found.offsets[place],
            details={END: end, REMOTE: self._remote(place).topic},
        )

    def _remote(self, place: TopicPartition) -> TopicPartition:
        policy, source = self._config.policy, self._flow.source
        return TopicPartition(policy.remote_topic(source, place.topic), place.partition)
