"""The two clusters of a flow in memory, and what plans it, as a worker has it: positions are in a mapping."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, cast
from uuid import UUID

from discovery.cluster_double import Clock, ClusterDouble, Log
from headrace.connect.connector import Plan, PlanRequest
from headrace.connect.errors import PartitionError
from headrace.connect.group_offsets import GroupEntry
from headrace.connect.partition import SourceOffset, SourcePartition
from headrace.discovery.discoverer import PartitionDiscoverer
from headrace.discovery.offsets_retriever import ClusterOffsetsRetriever
from headrace.kafka.deadline import Deadline
from headrace.kafka.topic_admin import TopicConfigs, TopicSetting, WantedTopic
from headrace.kafka.topic_partition import TopicPartition
from headrace.kafka.wire.cluster import ClusterMetadata, IsolationLevel, TopicMetadata
from headrace.kafka.wire.epoch_ends import EpochEnd, EpochEnds
from headrace.kafka.wire.error_codes import UNKNOWN_TOPIC_OR_PARTITION
from headrace.kafka.wire.group_requests import GroupDescription, GroupMember
from headrace.mirror.planning import FlowPlanner
from headrace.mirror.positions import Flow, Position
from headrace.mirror.settings import MirrorSourceConfig
from headrace.mirror.source_logs import SourceLogs
from headrace.mirror.subscription import subscription
from headrace.mirror.target import MirrorTarget, TargetClients
from headrace.testing.task_runs import StoredOffsets

FLOW = Flow("A", "B")
PROPS = {"name": "m", "source.cluster.alias": "A", "target.cluster.alias": "B", "topics": ".*"}


@dataclass
class FlowCluster(ClusterDouble):
    """A cluster that also knows its id, what it has answered last, and who consumes with a group."""

    cluster_id: str = "c"
    members: tuple[GroupMember, ...] = ()
    answered: ClusterMetadata | None = None
    unknown: list[set[str]] = field(default_factory=list[set[str]])
    """The topics that brokers do not know in the next answers that would have had one of them."""
    epochs: dict[TopicPartition, EpochEnd] = field(default_factory=dict[TopicPartition, EpochEnd])

    @property
    def known(self) -> ClusterMetadata:
        """As the wire's cluster."""
        return self.answered or ClusterMetadata(None, {}, {})

    def metadata(
        self, topics: Collection[str] | None, deadline: Deadline, *, again: bool = False
    ) -> ClusterMetadata:
        """As the wire's cluster."""
        found = super().metadata(topics, deadline, again=again)
        if self.unknown and not self.unknown[0].isdisjoint(found.topics):
            answered = dict(found.topics)
            found = found._replace(topics=answered)
            for name in self.unknown.pop(0) & answered.keys():
                answered[name] = TopicMetadata(name, None, False, UNKNOWN_TOPIC_OR_PARTITION, {})
        before = {} if topics is None else self.known.topics
        self.answered = ClusterMetadata(self.cluster_id, found.brokers, {**before, **found.topics})
        return self.answered._replace(topics=found.topics)

    def close(self) -> None:
        """As the wire's cluster."""

    def describe_group(self, group: str, deadline: Deadline) -> GroupDescription:
        """As the wire's cluster."""
        return GroupDescription("Stable" if self.members else "Empty", self.members)


@dataclass
class Admin:
    """Creates and grows topics of *cluster*; *refused* are those that it may not."""

    cluster: FlowCluster
    created: list[WantedTopic] = field(default_factory=list[WantedTopic])
    refused: dict[str, str] = field(default_factory=dict[str, str])
    retention_minutes: str | None = "10080"

    def create(self, wanted: Collection[WantedTopic], deadline: Deadline) -> dict[str, str]:
        """As the admin client."""
        for each in wanted:
            if each.name not in self.refused:
                self.created.append(each)
                self.cluster.create(each.name, *(Log() for _ in range(each.partitions)))
        return {each.name: self.refused[each.name] for each in wanted if each.name in self.refused}

    def grow(self, partitions: Mapping[str, int], deadline: Deadline) -> dict[str, str]:
        """As the admin client."""
        for name, count in partitions.items():
            if name not in self.refused:
                more = count - len(self.cluster.topics[name])
                self.cluster.add(*(Log() for _ in range(more)), topic=name)
        return {name: self.refused[name] for name in partitions if name in self.refused}

    def topic_configs(self, topics: Collection[str], deadline: Deadline) -> TopicConfigs:
        """As the admin client."""
        setting = TopicSetting(value="CreateTime", is_own=False)
        return TopicConfigs({each: {"message.timestamp.type": setting} for each in topics}, {})

    def broker_setting(self, name: str, deadline: Deadline) -> str | None:
        """As the admin client."""
        return self.retention_minutes


class TwoClusters:
    """A flow; each *process* plans anew with what is stored."""

    def __init__(self, **settings: str) -> None:
        self.source, self.target = (
            FlowCluster(cluster_id="source"),
            FlowCluster(cluster_id="target"),
        )
        self.admin = Admin(self.target)
        self.clock = Clock()
        self.stored: dict[SourcePartition, SourceOffset] = {}
        self.unnamed: list[GroupEntry] = []
        self.failure: str | None = None
        self.failed: dict[SourcePartition, PartitionError] = {}
        self.props = dict(PROPS)
        self.set(**settings)

    def set(self, **settings: str) -> None:
        """Change settings, whose dots are underscores here; another process begins."""
        self.props |= {key.replace("_", "."): value for key, value in settings.items()}
        self.restart()

    def restart(self) -> None:
        """Another process, which has what is stored."""
        config = MirrorSourceConfig.parse(self.props)
        self.copied = config.topics_copied
        source, target = cast("Any", self.source), cast("Any", self.target)
        level = IsolationLevel.READ_COMMITTED
        discoverer = PartitionDiscoverer(
            subscription(config.topics_copied, config.start),
            source,
            lambda deadline: ClusterOffsetsRetriever(
                cluster=source, deadline=deadline, isolation=level
            ),
            interval_seconds=config.discovery_seconds,
            clock=self.clock,
        )
        logs = SourceLogs(
            source,
            level,
            seconds=10,
            epoch_ends=lambda _, wanted, __: EpochEnds(
                {each: self.source.epochs[each] for each in wanted if each in self.source.epochs}
            ),
            sleep=self.clock.sleep,
        )
        clients = TargetClients(target, cast("Any", self.admin))
        made = MirrorTarget(
            config,
            clients,
            lambda topics: self.admin.topic_configs(topics, Deadline.after(1)).found,
            seconds=10,
        )
        self.planner = FlowPlanner(config, logs, made, discoverer, clock=self.clock)

    def plan(self, slots: int = 2) -> Plan:
        """The next plan; what it stores is stored, and its *failure* is that of the flow."""
        request = PlanRequest(
            slots=slots,
            offsets=StoredOffsets(self.stored),
            unnamed=tuple(self.unnamed),
            failed=self.failed,
        )
        self.failed = {}
        plan = self.planner.plan(request)
        self.failure = None if plan.failure is None else str(plan.failure)
        self.stored |= {place: offset for place, offset in plan.offsets.items() if offset}
        return plan

    def cannot_read(self, place: TopicPartition, why: str, *, last: int | None = None) -> None:
        """A task cannot read *place* on, for a reason that ends with the offset *last*, where that is known."""
        partition = FLOW.partition(place)
        after = None if last is None else Position(last + 1).offset
        self.failed[partition] = PartitionError(partition, why, source_offset=after)

    def shares(self, slots: int = 2) -> list[dict[TopicPartition, int]]:
        """Plan until there is something to copy, or nothing at all: each slot's partitions, and where it begins."""
        for _ in range(5):
            plan = self.plan(slots)
            assert not (plan.offsets and plan.has_work()), "it stores first, and copies then"
            if not plan.offsets:
                break
        assert plan.followed == plan.has_work()
        return [
            {
                place: Position.of(split.offset or {}).next
                for split in share
                if (place := FLOW.place(split.partition)) is not None
            }
            for share in plan.shares
        ]

    def copy(self) -> None:
        """All shares of a plan are copied to their ends, as far as they are stable."""
        for share in self.shares():
            for place in share:
                log = self.source.topics[place.topic][place.partition]
                end = log.end if log.stable is None else log.stable
                self.put(place, self.position(place)._replace(next=end, leader_epoch=0))
                remote = self.target.topics[f"A.{place.topic}"][place.partition]
                remote.end = max(remote.end, end)

    def put(self, place: TopicPartition, position: Position) -> None:
        """What is stored for *place*."""
        self.stored[FLOW.partition(place)] = position.offset

    def position(self, place: TopicPartition) -> Position:
        """What is stored for *place*."""
        return Position.of(self.stored[FLOW.partition(place)])

    def topic_id(self, topic: str) -> UUID:
        """Of the source."""
        return self.source.ids[topic]
