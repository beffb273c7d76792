"""Checkpoints: where groups of the source go on when they move to the target, as records, and as their committed offsets there.

The driver reads groups and translates their offsets. One task writes what is new, in one share; there is none while nothing
is. Delivery is as the worker's.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar

from headrace.connect.config import Config, Problem
from headrace.connect.connector import Explained, Plan, PlannedConnector, PlanRequest
from headrace.connect.record import SourceRecord
from headrace.connect.schema import BYTES
from headrace.connect.task import Offsets, SourceTask
from headrace.kafka.wire.cluster import Cluster
from headrace.mirror.checkpoint_planner import CheckpointPlanner, checkpoint_of
from headrace.mirror.checkpoints import GROUP, TOPIC, source_partition
from headrace.mirror.client_settings import ClientRole
from headrace.mirror.clients import admin_problems, source_admin_cluster, target_cluster
from headrace.mirror.formats import Checkpoint
from headrace.mirror.offset_checks import WRITTEN, check_written
from headrace.mirror.own_topics import checked_target_admin, ensure_compacted, patience
from headrace.mirror.settings import GIVEN_TO_ALL, MirrorCheckpointConfig, mirror_problems


class MirrorCheckpointTask(SourceTask):
    """Returns the checkpoints of its share."""

    def start(self, config: Mapping[str, str]) -> None:
        """See :class:`~headrace.connect.task.SourceTask`."""
        settings = MirrorCheckpointConfig.parse(config)
        self._topic = settings.policy.checkpoints_topic(settings.source_cluster_alias)
        self._left = list(self.context.splits)

    def poll(self) -> Sequence[SourceRecord] | None:
        """All of them; then the share is finished."""
        found, self._left = self._left, []
        return [self._record(each.details) for each in found] or None

    def _record(self, details: Mapping[str, object]) -> SourceRecord:
        checkpoint = checkpoint_of(details)
        key, value = checkpoint.encoded()
        return SourceRecord(
            topic=self._topic,
            partition=0,
            key=key,
            key_schema=BYTES,
            value=value,
            value_schema=BYTES,
            timestamp=int(time.time() * 1000),
            source_partition=source_partition(checkpoint),
            source_offset=WRITTEN,
        )


class MirrorCheckpointConnector(PlannedConnector):
    """MirrorMaker's ``org.apache.kafka.connect.mirror.MirrorCheckpointConnector``."""

    config_class: ClassVar[type[Config]] = MirrorCheckpointConfig
    task_class: ClassVar[type[SourceTask]] = MirrorCheckpointTask
    passed_on: ClassVar[tuple[str, ...]] = GIVEN_TO_ALL

    def start(self, props: Mapping[str, str]) -> None:
        """See :class:`~headrace.connect.connector.SourceConnector`; the first plan is the first to connect."""
        self._config = MirrorCheckpointConfig.parse(props)
        self._clusters: Sequence[Cluster] = ()
        self._planner: CheckpointPlanner | None = None
        if self._config.enabled and self._config.emit_seconds is not None:
            source = source_admin_cluster(self._config, ClientRole.CHECKPOINT_SOURCE_ADMIN)
            role = ClientRole.CHECKPOINT_TARGET_ADMIN
            target = target_cluster(self._config, self.context.target, role)
            self._clusters = (source, target)
            self._planner = CheckpointPlanner(self._config, source, target, self._ensure_topic)

    def plan(self, request: PlanRequest) -> Plan:
        """See :class:`~headrace.mirror.checkpoint_planner.CheckpointPlanner`; nothing where the flow is not enabled."""
        return Plan() if self._planner is None else self._planner.plan()

    def explain(self, request: PlanRequest) -> Iterator[Explained]:
        """The checkpoints that would be written; no offset is committed, and no topic created."""
        found: Sequence[Checkpoint] | None = () if self._planner is None else None
        while found is None:
            assert self._planner is not None
            found = self._planner.news()
        for each in found:
            name = f"group {each.group}, {each.topic}-{each.partition}: offset {each.downstream}"
            yield Explained(name=name, slots=(0,), topic=self._topic, partition=0)

    def stop(self) -> None:
        """See :class:`~headrace.connect.connector.SourceConnector`."""
        planner: CheckpointPlanner | None = getattr(self, "_planner", None)
        if planner is not None:
            planner.close()
        for each in getattr(self, "_clusters", ()):
            each.close()

    def problems(self, props: Mapping[str, str]) -> Sequence[Problem]:
        """The settings, and those of the clients."""
        return mirror_problems(MirrorCheckpointConfig, props, admin_problems)

    def returns_bytes(self, props: Mapping[str, str]) -> bool:
        """MirrorMaker's own formats, which others read."""
        return True

    def validate_offsets(self, props: Mapping[str, str], offsets: Offsets) -> None:
        """With MirrorMaker's sentences."""
        check_written(offsets, (GROUP, TOPIC), has_partition=True)

    def alter_offsets(self, props: Mapping[str, str], offsets: Offsets) -> bool:
        """No task reads them."""
        self.validate_offsets(props, offsets)
        return True

    @property
    def _topic(self) -> str:
        return self._config.policy.checkpoints_topic(self._config.source_cluster_alias)

    def _ensure_topic(self) -> None:
        config, deadline = self._config, patience(self._config)
        role = ClientRole.CHECKPOINT_TARGET_ADMIN
        ensure_compacted(
            checked_target_admin(config, self.context.target, role, deadline),
            self._topic,
            deadline,
            replication=config.checkpoints_topic_replication_factor,
            key="checkpoints.topic.replication.factor",
        )
