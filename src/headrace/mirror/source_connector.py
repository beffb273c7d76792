"""The connector that copies topics from one cluster to another, exactly once, its progress a group on the target (KIP-656).

The unit of parallelism is a partition of the source: each belongs to one slot, which follows it. Partitions are discovered on
the driver.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import ClassVar, Final

from headrace.connect.config import Config, Problem
from headrace.connect.connector import (
    ExactlyOnceSupport,
    Explained,
    Plan,
    PlannedConnector,
    PlanRequest,
)
from headrace.connect.errors import OffsetsError, RetriableError, TaskFailedError
from headrace.connect.group_offsets import OffsetGroup
from headrace.connect.partition import SourceOffset, SourcePartition
from headrace.connect.task import Offsets, SourceTask
from headrace.discovery.discoverer import PartitionDiscoverer
from headrace.discovery.offsets_retriever import ClusterOffsetsRetriever
from headrace.kafka.deadline import Deadline
from headrace.kafka.topic_admin import TopicAdmin, TopicSetting, raise_refused
from headrace.kafka.topic_partition import TopicPartition
from headrace.kafka.wire.cluster import LATEST, Cluster, IsolationLevel
from headrace.mirror.clients import (
    client_problems,
    isolation,
    source_admin,
    source_cluster,
    target_admin,
    target_cluster,
    worker_admin,
)
from headrace.mirror.planning import FlowPlanner, stored
from headrace.mirror.positions import (
    Flow,
    MirrorOffsetCodec,
    Position,
    check_in_source,
    check_offsets,
)
from headrace.mirror.scheduler import Scheduler
from headrace.mirror.settings import GIVEN_TO_ALL, MirrorSourceConfig, mirror_problems
from headrace.mirror.source_logs import SourceLogs
from headrace.mirror.source_task import MirrorSourceTask
from headrace.mirror.subscription import subscription
from headrace.mirror.target import MirrorTarget, TargetClients
from headrace.mirror.topic_sync import topic_sync
from headrace.mirror.topic_watch import TopicWatch

_log = logging.getLogger(__name__)

_CODEC: Final = f"{MirrorOffsetCodec.__module__}:{MirrorOffsetCodec.__qualname__}"
# A person waits for it.
_LAG_SECONDS: Final = 10.0
# As does a request, which has a deadline of its own.
_CHECK_SECONDS: Final = 5.0


def _known_at(
    source: Cluster, places: Collection[TopicPartition]
) -> tuple[Mapping[str, Collection[int]], Mapping[TopicPartition, int]]:
    """The partitions of the topics of *places*, and where their logs end."""
    deadline = Deadline.after(_CHECK_SECONDS)
    topics = source.metadata({each.topic for each in places}, deadline).topics
    partitions = {name: topic.partitions for name, topic in topics.items() if topic.error is None}
    there = [each for each in places if each.partition in partitions.get(each.topic, ())]
    level = IsolationLevel.READ_UNCOMMITTED
    asked = dict.fromkeys(there, LATEST)
    found = source.list_offsets(asked, deadline, isolation=level) if asked else {}
    return partitions, {
        place: each.offset for place, each in found.items() if each.offset is not None
    }


class MirrorSourceConnector(PlannedConnector):
    """Copies the topics of a source cluster to the cluster of the worker."""

    config_class: ClassVar[type[Config]] = MirrorSourceConfig
    task_class: ClassVar[type[SourceTask]] = MirrorSourceTask
    passed_on: ClassVar[tuple[str, ...]] = GIVEN_TO_ALL

    def start(self, props: Mapping[str, str]) -> None:
        """See :class:`~headrace.connect.connector.SourceConnector`; the first plan is the first to connect."""
        self._config = MirrorSourceConfig.parse(props)
        self._clusters: list[Cluster] = []
        self._planner = self._planned_by() if self._config.enabled else None
        self._watch: TopicWatch | None = None
        self._topic_sync = topic_sync(self._config, self.context.target)

    def plan(self, request: PlanRequest) -> Plan:
        """See :class:`~headrace.mirror.planning.FlowPlanner`; nothing where the flow is not enabled."""
        if self._planner is None:
            return Plan()
        if self._watch is None:
            self._watch = self._watched(self._planner)
        found = self._planner.plan(request)
        # The topics that it changes exist only after the first plan.
        self._topic_sync.start()
        return found

    def explain(self, request: PlanRequest) -> Iterator[Explained]:
        """The partitions that are copied, with the source offsets that are left; nothing is created or stored."""
        if self._planner is not None:
            yield from self._planner.explained(request)

    def stop(self) -> None:
        """See :class:`~headrace.connect.connector.SourceConnector`."""
        watch: TopicWatch | None = getattr(self, "_watch", None)
        if watch is not None:
            watch.stop()
        scheduled: Scheduler | None = getattr(self, "_topic_sync", None)
        if scheduled is not None:
            scheduled.stop()
        for each in getattr(self, "_clusters", ()):
            each.close()

    def problems(self, props: Mapping[str, str]) -> Sequence[Problem]:
        """The settings, and those of the clients."""
        return mirror_problems(MirrorSourceConfig, props, client_problems)

    def exactly_once_support(self, props: Mapping[str, str]) -> ExactlyOnceSupport:
        """Unless aborted records are copied, or transactions are switched off."""
        return MirrorSourceConfig.parse(props).exactly_once_support

    def offset_group(self, props: Mapping[str, str]) -> OffsetGroup:
        """The group on the target that has the positions."""
        return OffsetGroup(
            group_id=MirrorSourceConfig.parse(props).group_id,
            codec=_CODEC,
            config=MirrorOffsetCodec.settings(props),
        )

    def returns_encoded(self, props: Mapping[str, str]) -> bool:
        """Record batches are passed on unopened where nothing has to look at them."""
        return True

    def validate_offsets(self, props: Mapping[str, str], offsets: Offsets) -> None:
        """With MirrorMaker's sentences, and -1 for a partition that is to be copied from its beginning."""
        check_offsets(Flow.of(props), offsets)

    def check_offsets(self, props: Mapping[str, str], offsets: Offsets) -> None:
        """That the source has the partitions, and their logs the offsets: MirrorMaker does not look."""
        flow = Flow.of(props)
        positions = {
            place: Position.of(offset)
            for partition, offset in offsets.items()
            if offset is not None and (place := flow.place(partition)) is not None
        }
        if not positions:
            return
        source = source_cluster(MirrorSourceConfig.parse(props))
        try:
            partitions, ends = _known_at(source, positions)
        except (RetriableError, TaskFailedError) as error:
            # Offsets may be given before the source is there, and what is wrong with it is reported when it is read.
            _log.info("Offsets are not compared with the source: %s", error)
            return
        finally:
            source.close()
        check_in_source(positions, partitions, ends)

    def alter_offsets(self, props: Mapping[str, str], offsets: Offsets) -> bool:
        """Make sure that the remote partitions are there, as an entry is stored for one; compared is at the next start.

        Raises :class:`~headrace.connect.errors.OffsetsError` for a partition that the source does not have.
        """
        self.validate_offsets(props, offsets)
        flow = Flow.of(props)
        given = (flow.place(each) for each, offset in offsets.items() if offset is not None)
        places = [each for each in given if each is not None]
        if any(offset is not None for offset in offsets.values()):
            self._config, self._clusters = MirrorSourceConfig.parse(props), []
            try:
                self._prepare(places)
            finally:
                self.stop()
        return True

    def lag(
        self, props: Mapping[str, str], offsets: Mapping[SourcePartition, SourceOffset]
    ) -> Mapping[SourcePartition, int]:
        """The source offsets after each position, records or not; of one that says -1, all that the log has."""
        config, flow = MirrorSourceConfig.parse(props), Flow.of(props)
        cluster = source_cluster(config)
        try:
            logs = SourceLogs(cluster, isolation(config), seconds=_LAG_SECONDS)
            positions = stored(flow, offsets).positions
            ends = logs.readable_ends(positions).ends
            starts = {
                **{place: each.next for place, each in positions.items() if not each.is_earliest},
                **logs.beginnings(place for place, each in positions.items() if each.is_earliest),
            }
        finally:
            cluster.close()
        return {
            flow.partition(place): max(0, end - starts[place])
            for place, end in ends.items()
            if place in starts
        }

    def _prepare(self, places: Sequence[TopicPartition]) -> None:
        """Have the remote partitions of *places* created, and the flow's own topic."""
        source = source_cluster(self._config)
        self._clusters.append(source)
        topics = {place.topic for place in places}
        known = source.metadata(topics, Deadline.after(self._config.patience_seconds)).topics
        for place in places:
            topic = known.get(place.topic)
            if topic is None or place.partition not in topic.partitions:
                raise OffsetsError(f"The source has no partition {place}.")
        target = self._target()
        target.ensure_internal()
        lacking = target.ensure({topic: len(known[topic].partitions) for topic in topics}, ())
        raise_refused(
            {
                place.topic: lacking[place.topic].problem
                for place in places
                if place.topic in lacking and place.partition >= lacking[place.topic].first
            }
        )

    def _watched(self, planner: FlowPlanner) -> TopicWatch:
        config = self._config
        watch = TopicWatch(
            source_cluster(config),
            config.topics_copied,
            lambda: planner.seen,
            interval_seconds=config.discovery_seconds,
        )
        context = self.context
        watch.start(config.name, context.request_task_reconfiguration, context.raise_error)
        return watch

    def _planned_by(self) -> FlowPlanner:
        config, source = self._config, source_cluster(self._config)
        self._clusters.append(source)
        discoverer = PartitionDiscoverer(
            subscription(config.topics_copied, config.start),
            source,
            lambda deadline: ClusterOffsetsRetriever(
                cluster=source, deadline=deadline, isolation=isolation(config)
            ),
            interval_seconds=config.discovery_seconds,
            max_failures=None,
        )
        logs = SourceLogs(source, isolation(config), seconds=self._config.patience_seconds)
        return FlowPlanner(
            config,
            logs,
            self._target(),
            discoverer,
            command_options=self.context.command_options,
        )

    def _target(self) -> MirrorTarget:
        config, worker, seconds = self._config, self.context.target, self._config.patience_seconds
        target = target_cluster(config, worker)
        self._clusters.append(target)
        admins = list[TopicAdmin]()

        def settings_of(topics: Collection[str]) -> Mapping[str, Mapping[str, TopicSetting]]:
            if not admins:
                admins.append(source_admin(config))
            return admins[0].topic_configs(topics, Deadline.after(seconds)).found

        clients = TargetClients(target, target_admin(config, worker), worker_admin(config, worker))
        return MirrorTarget(config, clients, settings_of, seconds=seconds)
