"""What a mirror copies next: discovery, remote topics, positions compared with the clusters, and each slot's share."""

from __future__ import annotations

import logging
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final, NamedTuple
from uuid import UUID

from headrace.connect.connector import Explained, Plan, PlanRequest
from headrace.connect.errors import PartitionError, TaskFailedError
from headrace.connect.group_offsets import GroupEntry
from headrace.connect.partition import KnownOffsets, SourceOffset, SourcePartition
from headrace.connect.task import Split
from headrace.discovery.discoverer import PartitionDiscoverer
from headrace.discovery.enumerator import PartitionEnumerator, PartitionSplit
from headrace.discovery.findings import Change, Finding
from headrace.discovery.owners import Owners, balanced_owners
from headrace.discovery.state import Kind
from headrace.kafka.deadline import Clock, Deadline
from headrace.kafka.sentences import listed
from headrace.kafka.topic_partition import TopicPartition
from headrace.mirror.policies import IdentityReplicationPolicy
from headrace.mirror.positions import DISCOVERED, Flow, Position
from headrace.mirror.settings import PATIENCE_SECONDS, MirrorSourceConfig, same_cluster
from headrace.mirror.source_logs import SourceLogs
from headrace.mirror.source_task import EPOCH, REMOTE
from headrace.mirror.starts import (
    Begin,
    Fail,
    FailedPartitions,
    RemotePartition,
    Resume,
    Start,
    StartRules,
    refused,
    said_by_topic,
)
from headrace.mirror.subscription import REPORTED, restored
from headrace.mirror.target import MirrorTarget

_log = logging.getLogger(__name__)

# As often as discovery looks by default: whoever copies is planned anew for it.
_LOOK_AGAIN_SECONDS: Final = 300.0
# A leader is elected within seconds; a run that ends with its work waits for it.
_ASKED_AGAIN_AFTER: Final = 1.0


class Stored(NamedTuple):
    """What the group has: the positions of this flow with their offsets, and whether its first discovery is over."""

    positions: Mapping[TopicPartition, Position]
    offsets: Mapping[TopicPartition, SourceOffset]
    is_discovered: bool


class Seen(NamedTuple):
    """What a plan is about: the *topics* that are copied, with their ids and numbers of partitions.

    At *due_at* by the planner's clock positions have to be committed again, or what has failed compared again. Partitions
    *are_left_out* whose leaders did not answer.
    """

    topics: frozenset[tuple[str, UUID | None, int]] = frozenset()
    due_at: float | None = None
    are_left_out: bool = False


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

    It knows nothing that a restart would miss, but for when something is due: positions, and that the first discovery is over,
    are in the group.
    """

    def __init__(
        self,
        config: MirrorSourceConfig,
        source: SourceLogs,
        target: MirrorTarget,
        discoverer: PartitionDiscoverer,
        *,
        command_options: str = "",
        clock: Clock = time.monotonic,
    ) -> None:
        self._config = config
        # Each is made anew when the configuration is asked for it, and there may be thousands of partitions.
        self._policy, self._topics_copied = config.policy, config.topics_copied
        self._flow = Flow.of(config.originals)
        self._rules = StartRules(
            connector=config.name,
            flow=self._flow,
            group=config.group_id,
            config=config,
            command_options=command_options,
        )
        self._source = source
        self._target = target
        self._discoverer = discoverer
        self._clock = clock
        self._enumerator: PartitionEnumerator | None = None
        self._has_begun = self._has_discovered = self._has_compared = False
        self._has_shared = False
        self._recalled: Collection[str] | None = None
        self._owners: Owners = {}
        self._slots = 0
        self._before: dict[TopicPartition, Position] = {}
        self._recommit_at: float | None = None
        self._look_again_at: float | None = None
        self._reported: dict[TopicPartition, tuple[str, str | None]] = {}
        self._removed: dict[str, str] = {}
        self._lacks_beginning = set[TopicPartition]()
        self._failed = FailedPartitions()
        self._just_failed = frozenset[TopicPartition]()
        self._seen = Seen()
        self._known: Mapping[SourcePartition, SourceOffset] = {}
        self._stored = Stored({}, {}, is_discovered=False)

    @property
    def seen(self) -> Seen:
        """What the last plan is about, for whoever looks whether another one is due; any thread may ask."""
        return self._seen

    def plan(self, request: PlanRequest) -> Plan:
        """What to store, or what to copy from now on.

        Starts, and positions that the rules move, are stored before anything is copied: a plan does one of the two. All
        partitions are compared with the source whenever copying begins, and copied until another plan is due. Those that the
        rules fail are left out, and are the plan's failure. Raises :class:`~headrace.connect.errors.TaskFailedError` when
        nothing is left to copy, once everything else is stored.
        """
        try:
            return self._planned(request)
        finally:
            self._note_due()

    def _planned(self, request: PlanRequest) -> Plan:
        if not self._has_begun:
            self._target.check_group()
            self._has_begun = True
        found = self._read(request.offsets)
        enumerator = self._discovered(found)
        splits = self._with_remote_topics(
            {split.place: split for split in enumerator.unassigned()}, found
        )
        self._note_unreadable(request.failed, found)
        if self._failed.keep(splits, found.positions):
            self._has_compared = False
        begun = self._begun(splits, found, request.unnamed)
        self._before |= found.positions
        changes = self._changes(splits, found, begun)
        if self._has_to_note_discovery(enumerator, found):
            changes[self._flow.discovery] = DISCOVERED
        if changes or self._is_recommit_due():
            changes = {**self._recommitted(found), **changes}
        plan = Plan(offsets=changes) if changes else self._copied(splits, found, request.slots)
        if self._has_compared and not plan.offsets:
            self._report_recovered(splits)
        failure = self._failed.failure()
        is_all = all(place in self._failed for place in splits)
        if failure is not None and is_all and not (plan.offsets or plan.has_work()):
            raise failure
        return replace(plan, failure=failure)

    def _note_unreadable(
        self, failed: Mapping[SourcePartition, PartitionError], found: Stored
    ) -> None:
        errors = {
            place: error
            for partition, error in failed.items()
            if (place := self._flow.place(partition)) is not None
        }
        self._just_failed = frozenset(errors)
        for place, error in errors.items():
            fail = self._rules.unreadable(place, error)
            self._failed.note_unreadable(place, found.positions.get(place), fail)

    def _read(self, offsets: KnownOffsets) -> Stored:
        """What is stored; while that has not changed, it is the same object."""
        known = offsets.known()
        if known is not self._known:
            self._known, self._stored = known, stored(self._flow, known)
        return self._stored

    def _copied(
        self, splits: Mapping[TopicPartition, PartitionSplit], found: Stored, slots: int
    ) -> Plan:
        """All partitions, if there is anything to read in one of them; or positions that have to be moved first."""
        considered = [place for place in splits if not self._stays_failed(place)]
        positions = {
            place: found.positions[place] for place in considered if place in found.positions
        }
        ends, silent, unreadable = self._source.readable_ends(positions)
        # An end below a position is looked into: records may be lost, or a transaction be open before a start.
        is_moved = any(end != positions[place].next for place, end in ends.items())
        if self._has_compared and not (is_moved or unreadable):
            return _nothing(silent)
        logs = self._source.logs(positions)
        starts = {
            place: self._rules.resumed(place, positions[place], log) for place, log in logs.items()
        }
        starts |= {place: refused(place, each) for place, each in unreadable.items()}
        changes = self._changes(splits, found, starts)
        if changes:
            return Plan(offsets=changes)
        self._has_compared = True
        going = [place for place in considered if self._failed.may_be_tried(place)]
        self._see(are_left_out=any(place not in logs for place in going))
        copied = [place for place in going if place in logs]
        if not any(place in ends and ends[place] > positions[place].next for place in copied):
            return _nothing(silent)
        self._has_shared = True
        return Plan(shares=self._shares(sorted(copied), found, slots), followed=True)

    def _stays_failed(self, place: TopicPartition) -> bool:
        """Whether *place* has failed, and is not to be looked at again yet."""
        return place in self._just_failed or (self._has_compared and place in self._failed)

    def explained(self, request: PlanRequest) -> Iterator[Explained]:
        """What plans would do with each partition that is copied now; nothing is created or stored."""
        found = self._read(request.offsets)
        splits = {split.place: split for split in self._discovered(found).unassigned()}
        gone = self._target.gone(self._copied_of(splits, found))
        splits = {place: each for place, each in splits.items() if place.topic not in gone}
        ends = self._source.readable_ends(splits).ends
        owners = balanced_owners(splits, request.slots)
        remote = self._target.existing([self._remote(place) for place in splits])
        begun = self._begun(
            {place: each for place, each in splits.items() if self._remote(place) in remote},
            found,
            request.unnamed,
        )
        positions = {place: each for place, each in found.positions.items() if place in splits}
        logs = self._source.logs(positions)
        for place in sorted(splits):
            start: Start | None = begun.get(place)
            if place in logs:
                start = self._rules.resumed(place, positions[place], logs[place])
            at = start.position.next if isinstance(start, Resume) else splits[place].start
            problem = start.problem if isinstance(start, Fail) else None
            yield Explained(
                name=str(place),
                slots=() if problem else (owners[place],),
                topic=self._remote(place).topic,
                partition=place.partition,
                size=max(0, ends[place] - at) if place in ends and at is not None else None,
                reason=problem,
                fails=problem is not None,
            )
        for topic, problem in sorted({**self._removed, **gone}.items()):
            yield Explained(name=topic, reason=problem, fails=True)

    # Discovery.

    def _discovered(self, found: Stored) -> PartitionEnumerator:
        """What is known of the source's partitions, after a discovery if one is due, or after slots have copied."""
        if self._enumerator is None:
            state = restored(found.positions, is_discovered=found.is_discovered)
            self._enumerator = PartitionEnumerator(state, REPORTED)
        is_look_due = self._look_again_at is not None and self._clock() >= self._look_again_at
        if is_look_due:
            self._look_again_at, self._has_compared = None, False
        is_due = is_look_due or self._discoverer.is_due(self._enumerator)
        if is_due or self._has_shared or not self._has_discovered:
            self._has_shared = False
            result = self._discoverer.discover(self._enumerator, Deadline.after(PATIENCE_SECONDS))
            self._note_findings(result.findings, found)
            self._has_discovered = self._has_discovered or result.comparison is not None
            self._target.doubt()
            self._see()
        return self._enumerator

    def _see(self, *, are_left_out: bool = False) -> None:
        topics = self._source.topics(self._topics_copied)
        self._seen = self._seen._replace(topics=topics, are_left_out=are_left_out)

    def _note_due(self) -> None:
        """Say when another plan is due, after each one: what has failed is looked at again, whatever else moves."""
        if not self._failed:
            self._look_again_at = None
        elif self._look_again_at is None:
            self._look_again_at = self._clock() + _LOOK_AGAIN_SECONDS
        times = [each for each in (self._recommit_at, self._look_again_at) if each is not None]
        self._seen = self._seen._replace(due_at=min(times, default=None))

    def _note_findings(self, findings: Iterable[Finding], found: Stored) -> None:
        """Keep losses of topics that the settings do not allow; those of a partition with a position are its own."""
        copied = {place.topic for place in found.positions}
        for each in findings:
            if each.change is Change.REMOVED and self._config.on_removed == "fail":
                self._removed[each.topic] = (
                    f"{each.sentence} Set mirror.on.removed to continue if that was intended."
                )
            # A topic that the first discovery of a process finds may only be subscribed to since then.
            is_known = self._has_discovered or each.topic in copied
            is_loss = each.change is Change.TRUNCATED and is_known
            if is_loss and self._config.on_lost == "fail":
                self._lacks_beginning |= {
                    TopicPartition(each.topic, one) for one in each.partitions
                }

    def _has_to_note_discovery(self, enumerator: PartitionEnumerator, found: Stored) -> bool:
        """Whether the first discovery is over, with a start for each partition that it has found, and that is not stored."""
        if found.is_discovered or not enumerator.initial_discovery_finished:
            return False
        kinds = {enumerator.partitions[place].kind for place in enumerator.unresolved()}
        return Kind.INITIAL not in kinds

    # Topics.

    def _with_remote_topics(
        self, splits: Mapping[TopicPartition, PartitionSplit], found: Stored
    ) -> dict[TopicPartition, PartitionSplit]:
        """Those of *splits* whose remote partition is there; topics are created and grown, but where the settings forbid it."""
        topics = {place.topic for place in splits}
        self._target.ensure_internal()
        copied = self._copied_of(splits, found)
        self._check_two_clusters()
        counts = {each: self._source.partitions(each) for each in topics}
        lacking = self._target.ensure(counts, copied)
        for topic in topics:
            self._removed.pop(topic, None)
        problems = {topic: each.problem for topic, each in lacking.items()}
        self._failed.topics = {**self._removed, **problems}
        return {
            place: split
            for place, split in splits.items()
            if place.topic not in lacking or place.partition < lacking[place.topic].first
        }

    def _copied_of(self, places: Collection[TopicPartition], found: Stored) -> set[str]:
        """The topics of *places* of which something has been copied."""
        copied = {place.topic for place in (*found.positions, *self._before) if place in places}
        topics = {place.topic for place in places}
        return copied | {*self._recalled_of(topics - copied, found)}

    def _recalled_of(self, topics: Collection[str], found: Stored) -> Collection[str]:
        """Those of *topics* without a position that another process has copied: asked once, the others are known here."""
        if self._recalled is None:
            is_asked = found.is_discovered and topics
            self._recalled = self._target.copied_before(topics) if is_asked else ()
        return self._recalled

    def _check_two_clusters(self) -> None:
        one, other = self._source.cluster_id, self._target.cluster_id
        if one and one == other and isinstance(self._policy, IdentityReplicationPolicy):
            raise TaskFailedError(same_cluster(str(self._flow)))

    # Starts.

    def _begun(
        self,
        splits: Mapping[TopicPartition, PartitionSplit],
        found: Stored,
        unnamed: Sequence[GroupEntry],
    ) -> dict[TopicPartition, Start]:
        """What the rules say of partitions without a position."""
        remote = {
            place: self._remote(place)
            for place in splits
            if place not in found.positions and not self._stays_failed(place)
        }
        ends = self._target.ends(remote.values())
        others = {TopicPartition(*each.place): each for each in unnamed}
        starts = dict[TopicPartition, Start]()
        for place, other in remote.items():
            if other in ends:
                is_shared = self._config.policy.is_heartbeats_topic(place.topic)
                seen = RemotePartition(other, ends[other], others.get(other), is_shared=is_shared)
                starts[place] = self._rules.without(place, seen)
        return starts

    def _changes(
        self,
        splits: Mapping[TopicPartition, PartitionSplit],
        found: Stored,
        starts: Mapping[TopicPartition, Start],
    ) -> dict[SourcePartition, SourceOffset]:
        """The positions that are to be stored before anything is copied. Logs what the rules say, and notes who fails."""
        self._report(starts, splits)
        self._failed.note(starts, found.positions)
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
        if split.place in self._lacks_beginning:
            # It was to be copied from there, and is compared with the log as any position: also by another process.
            return identity
        return None if split.start is None else identity._replace(next=split.start)

    def _report(
        self, starts: Mapping[TopicPartition, Start], places: Collection[TopicPartition]
    ) -> None:
        """Log what the rules say, once for as long as they say it of a partition; *places* are all that are copied."""
        said = {
            place: (each.warning, each.of_topic)
            for place, each in starts.items()
            if not isinstance(each, Fail) and each.warning is not None
        }
        new = {place: each for place, each in said.items() if self._reported.get(place) != each}
        for sentence, _ in said_by_topic(new):
            _log.warning("%s", sentence)
        others = {
            place: each
            for place, each in self._reported.items()
            if place in places and place not in starts
        }
        self._reported = others | said

    def _report_recovered(self, places: Collection[TopicPartition]) -> None:
        recovered = self._failed.recovered(places)
        if recovered:
            _log.info("Copied again, after an error had stopped it: %s.", listed(recovered))

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
        self, places: Sequence[TopicPartition], found: Stored, slots: int
    ) -> list[list[Split]]:
        """Each slot's partitions; those that had a slot before keep it while there are as many slots."""
        self._owners = balanced_owners(
            places, slots, self._owners if slots == self._slots else None
        )
        self._slots = slots
        shares: list[list[Split]] = [[] for _ in range(slots)]
        for place in places:
            shares[self._owners[place]].append(
                Split(
                    partition=self._flow.partition(place),
                    offset=found.offsets[place],
                    details={
                        REMOTE: self._remote(place).topic,
                        EPOCH: self._source.leader_epoch(place),
                    },
                )
            )
        return shares

    def _remote(self, place: TopicPartition) -> TopicPartition:
        remote = self._policy.remote_topic(self._flow.source, place.topic)
        return TopicPartition(remote, place.partition)


def _nothing(silent: Collection[TopicPartition]) -> Plan:
    """There is nothing to read now, as far as the source's brokers have said: those of *silent* partitions have not."""
    return Plan(ask_again_after=_ASKED_AGAIN_AFTER if silent else None)
