"""Heartbeats: a record to the target at regular intervals, by which others see that a flow is alive, and how late it is.

One task, and no source: a heartbeat that was not written is not made up for. Delivery is as the worker's.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar, Final

from headrace.connect.config import Config, Problem
from headrace.connect.connector import SourceConnector
from headrace.connect.partition import OffsetReader, SourcePartition
from headrace.connect.record import SourceRecord
from headrace.connect.schema import BYTES
from headrace.connect.task import Offsets, SourceTask
from headrace.mirror.client_settings import SERVERS, ClientRole
from headrace.mirror.clients import target_problems
from headrace.mirror.formats import Heartbeat
from headrace.mirror.offset_checks import WRITTEN, check_written
from headrace.mirror.own_topics import checked_target_admin, ensure_compacted, patience
from headrace.mirror.settings import GIVEN_TO_ALL, MirrorHeartbeatConfig, mirror_problems

_SOURCE: Final = "sourceClusterAlias"
_TARGET: Final = "targetClusterAlias"
# Starting a micro-batch costs about as much as waiting so long in an open one.
_STAYS_SECONDS: Final = 10.0
_WAIT_SECONDS: Final = 1.0
_NAP_SECONDS: Final = 0.1


class MirrorHeartbeatTask(SourceTask):
    """Returns a heartbeat when it starts, and one at each interval after that."""

    def __init__(
        self,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], float] = time.time,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._clock, self._now, self._sleep = clock, now, sleep

    def start(self, config: Mapping[str, str]) -> None:
        """See :class:`~headrace.connect.task.SourceTask`."""
        settings = MirrorHeartbeatConfig.parse(config)
        seconds = settings.emit_seconds
        assert seconds is not None, "there is no task without heartbeats"
        self._seconds = seconds
        self._topic = settings.policy.heartbeats_topic
        self._flow = settings.source_cluster_alias, settings.target_cluster_alias
        self._partition = SourcePartition({_SOURCE: self._flow[0], _TARGET: self._flow[1]})
        self._next_at = self._clock()

    def poll(self) -> Sequence[SourceRecord]:
        """The next heartbeat, after waiting up to a second for its time."""
        until = min(self._next_at, self._clock() + _WAIT_SECONDS)
        while (left := until - self._clock()) > 0 and not self.context.stopping():
            self._sleep(min(left, _NAP_SECONDS))
        at = self._clock()
        if at < self._next_at:
            return ()
        # What was missed, as in a suspended process, is not sent later.
        on_time = self._next_at + self._seconds
        self._next_at = on_time if on_time > at else at + self._seconds
        return [self._record(int(self._now() * 1000))]

    def resumes_cheaply(self) -> bool:
        """Only between heartbeats that are far apart."""
        return self._seconds > _STAYS_SECONDS

    def _record(self, now: int) -> SourceRecord:
        key, value = Heartbeat(*self._flow, now).encoded()
        return SourceRecord(
            topic=self._topic,
            partition=0,
            key=key,
            key_schema=BYTES,
            value=value,
            value_schema=BYTES,
            timestamp=now,
            source_partition=self._partition,
            source_offset=WRITTEN,
        )


class MirrorHeartbeatConnector(SourceConnector):
    """MirrorMaker's ``org.apache.kafka.connect.mirror.MirrorHeartbeatConnector``; like that, it does not look at ``enabled``."""

    config_class: ClassVar[type[Config]] = MirrorHeartbeatConfig
    task_class: ClassVar[type[SourceTask]] = MirrorHeartbeatTask
    passed_on: ClassVar[tuple[str, ...]] = GIVEN_TO_ALL

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock

    def start(self, props: Mapping[str, str]) -> None:
        """See :class:`~headrace.connect.connector.SourceConnector`; creates the topic unless it exists."""
        self._props = props
        self._config = MirrorHeartbeatConfig.parse(props)
        self._due_at = self._clock()
        if self._config.emit_seconds is not None:
            self._ensure_topic()

    def task_configs(self, max_tasks: int) -> Sequence[Mapping[str, str]]:
        """One task; none where heartbeats are switched off."""
        seconds = self._config.emit_seconds
        return () if seconds is None else (self._props,)

    def has_work(self, offsets: OffsetReader) -> bool:
        """Whether the next heartbeat is due."""
        seconds = self._config.emit_seconds
        if seconds is None or self._clock() < self._due_at:
            return False
        self._due_at = self._clock() + seconds
        return True

    def problems(self, props: Mapping[str, str]) -> Sequence[Problem]:
        """The settings, and those of the client."""
        return mirror_problems(MirrorHeartbeatConfig, props, target_problems)

    def returns_bytes(self, props: Mapping[str, str]) -> bool:
        """MirrorMaker's own formats, which others read."""
        return True

    def validate_offsets(self, props: Mapping[str, str], offsets: Offsets) -> None:
        """With MirrorMaker's sentences."""
        check_written(offsets, (_SOURCE, _TARGET))

    def alter_offsets(self, props: Mapping[str, str], offsets: Offsets) -> bool:
        """No task reads them."""
        self.validate_offsets(props, offsets)
        return True

    def _ensure_topic(self) -> None:
        config, worker, deadline = self._config, self.context.target, patience(self._config)
        if not worker and f"target.cluster.{SERVERS}" not in config.originals:
            # Nothing will be written.
            return
        role = ClientRole.HEARTBEATS_TARGET_ADMIN
        ensure_compacted(
            checked_target_admin(config, worker, role, deadline),
            config.policy.heartbeats_topic,
            deadline,
            replication=config.heartbeats_topic_replication_factor,
            key="heartbeats.topic.replication.factor",
        )
