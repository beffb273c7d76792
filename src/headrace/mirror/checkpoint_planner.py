"""What a checkpoint connector does when: reads groups and where records went, plans checkpoints, commits offsets on the target."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Final, NamedTuple

import pyarrow as pa

from headrace.connect.connector import Plan
from headrace.connect.errors import RetriableError, TaskFailedError
from headrace.connect.group_offsets import GroupEntry
from headrace.connect.task import Split
from headrace.kafka.deadline import Clock, Deadline
from headrace.kafka.sentences import counted
from headrace.kafka.wire.cluster import Cluster
from headrace.kafka.wire.group_requests import DEAD
from headrace.mirror.checkpoints import (
    Key,
    entries_to_commit,
    is_news,
    key_of,
    may_be_moved,
    source_partition,
    translated,
)
from headrace.mirror.client_settings import Side
from headrace.mirror.filters import group_filter, topic_filter
from headrace.mirror.formats import Checkpoint, OffsetSync
from headrace.mirror.offset_ranges import OffsetRangeStore
from headrace.mirror.offset_syncs import OffsetSyncStore
from headrace.mirror.positions import Flow
from headrace.mirror.range_columns import decoded_ranges
from headrace.mirror.settings import PATIENCE_SECONDS, MirrorCheckpointConfig
from headrace.mirror.topic_tail import TopicTail
from headrace.mirror.translation import Translation

_log = logging.getLogger(__name__)

CHECKPOINT: Final = "checkpoint"
"""In the details of a split: the fields of the checkpoint that is to be written."""

_SOON_SECONDS: Final = 0.1
# What a plan says travels to a slot in one message.
_MOST_AT_ONCE: Final = 2_000


class _Followed(NamedTuple):
    """A topic, and what is made of its records."""

    tail: TopicTail
    take: Callable[[pa.RecordBatch], Iterable[ValueError]]
    """Returns what is wrong with records that are none of a mirror."""


class CheckpointPlanner:
    """Makes the plans of one connector, on its thread, which owns the clients *source* and *target*, too.

    What was written before is read from the topic of checkpoints: so nothing is lost with a slot, and nothing is written twice
    after a restart. *ensure_topic* makes sure that it exists.
    """

    def __init__(
        self,
        config: MirrorCheckpointConfig,
        source: Cluster,
        target: Cluster,
        ensure_topic: Callable[[], None],
        *,
        clock: Clock = time.monotonic,
    ) -> None:
        self._config = config
        self._source, self._target = source, target
        self._ensure_topic = ensure_topic
        self._clock = clock
        self._topics = topic_filter(config.originals)
        self._chosen_groups = group_filter(config.originals)
        self._translation = Translation(
            Flow(config.source_cluster_alias, config.target_cluster_alias),
            config.policy,
            OffsetSyncStore(is_precise=True),
        )
        self._written: dict[Key, Checkpoint] = {}
        self._groups: Sequence[str] = ()
        self._is_begun = self._is_loaded = False
        self._is_memory_only = False
        now = clock()
        self._refresh_at: float | None = now
        self._emit_at = _first(config.emit_seconds, now)
        self._commit_at = _first(config.sync_offsets_seconds, now)
        self._unreadable = set[str]()
        self._not_moved: dict[str, str] = {}
        self._followed = [*self._made()]

    def plan(self) -> Plan:
        """The checkpoints that are to be written now, if any are; commits offsets if that is due."""
        if not self._is_begun:
            self._ensure_topic()
            self._is_begun = True
        if not self._is_loaded and not self._load():
            return Plan(ask_again_after=_SOON_SECONDS)
        if self._is_due(self._refresh_at):
            self._refresh_groups()
            self._refresh_at = self._next(self._config.refresh_groups_seconds)
        emits, commits = self._is_due(self._emit_at), self._is_due(self._commit_at)
        if not (emits or commits):
            return Plan()
        found = self._translated()
        if commits:
            self._commit(found)
            self._commit_at = self._next(self._config.sync_offsets_seconds)
        return self._emitted(found) if emits else Plan()

    def news(self) -> list[Checkpoint] | None:
        """The checkpoints that would be written now, without writing anything; ``None`` until everything is read."""
        if not self._is_loaded and not self._load():
            return None
        self._refresh_groups()
        return self._news(self._translated())

    def close(self) -> None:
        """Close the connections that reading has made."""
        for each in self._followed:
            each.tail.close()

    # What is read.

    def _made(self) -> Iterator[_Followed]:
        config, policy, flow = self._config, self._config.policy, self._translation.flow
        topic = policy.checkpoints_topic(flow.source)
        yield _Followed(
            TopicTail(self._target, topic, self._written.clear), _each(self._take_checkpoint)
        )
        at_source = config.offset_syncs_topic_location == Side.SOURCE.value
        cluster = self._source if at_source else self._target
        syncs = TopicTail(cluster, config.offset_syncs_topic, self._forget_syncs)
        yield _Followed(syncs, _each(self._take_sync))
        topic = policy.offset_ranges_topic(flow.source)
        yield _Followed(TopicTail(self._target, topic, self._forget_ranges), self._take_ranges)
        topic = policy.offset_ranges_topic(flow.target)
        yield _Followed(TopicTail(self._source, topic, self._forget_back), self._take_back)

    def _load(self) -> bool:
        """Read everything for the first time; whether that is done."""
        deadline = Deadline.after(PATIENCE_SECONDS, self._clock)
        checkpoints, *others = self._followed
        try:
            self._read(checkpoints, deadline)
        except TaskFailedError as error:
            self._remember_only(error)
        if self._is_begun and checkpoints.tail.is_there is False:
            self._is_begun = False
            raise RetriableError(
                f"The topic {checkpoints.tail.topic} was made sure of, and the brokers do not know it yet; it is tried again."
            )
        if not self._is_memory_only and not checkpoints.tail.is_complete:
            return False
        for each in others:
            self._read(each, deadline)
        if not all(each.tail.is_complete for each in others):
            return False
        self._translation.syncs.complete()
        self._is_loaded = True
        if not any(each.tail.is_there for each in others):
            names = " nor ".join(each.tail.topic for each in others[:2])
            _log.warning(
                "Connector %s: there is neither %s. Without a mirror that writes one of them, offsets cannot be translated.",
                self._config.name,
                names,
            )
        return True

    def _remember_only(self, error: TaskFailedError) -> None:
        """Go on as MirrorMaker does where the topic of checkpoints cannot be read."""
        if not self._is_memory_only:
            _log.warning(
                "Connector %s: %s What was written before is not known; offsets that are far behind are not translated.",
                self._config.name,
                error,
            )
            self._is_memory_only = True
            self._forget_syncs()

    def _read(self, followed: _Followed, deadline: Deadline) -> None:
        for columns in followed.tail.read(deadline):
            for error in followed.take(columns):
                self._report_unreadable(followed.tail.topic, error)

    def _report_unreadable(self, topic: str, error: Exception) -> None:
        if topic not in self._unreadable:
            self._unreadable.add(topic)
            _log.warning(
                "Connector %s: The topic %s has a record that is none of a mirror: %s It is left out, and others of this topic are "
                "without being logged.",
                self._config.name,
                topic,
                error,
            )

    def _take_checkpoint(self, key: bytes, value: bytes) -> None:
        found = Checkpoint.decoded(key, value)
        self._written[key_of(found)] = found

    def _take_sync(self, key: bytes, value: bytes) -> None:
        self._translation.syncs.add(OffsetSync.decoded(key, value))

    def _take_ranges(self, columns: pa.RecordBatch) -> Iterable[ValueError]:
        found, refused = decoded_ranges(columns)
        for each in found:
            self._translation.ranges.extend(each)
        return refused

    def _take_back(self, columns: pa.RecordBatch) -> Iterable[ValueError]:
        found, refused = decoded_ranges(columns)
        for each in found:
            self._translation.add_back(each)
        return refused

    def _forget_syncs(self) -> None:
        self._translation.syncs = OffsetSyncStore(is_precise=not self._is_memory_only)
        if self._is_loaded:
            self._translation.syncs.complete()

    def _forget_ranges(self) -> None:
        self._translation.ranges = OffsetRangeStore()

    def _forget_back(self) -> None:
        self._translation.back = OffsetRangeStore()

    # Groups.

    def _refresh_groups(self) -> None:
        """Find the groups of the source that have positions in topics that are copied."""
        deadline = Deadline.after(PATIENCE_SECONDS, self._clock)
        chosen = [
            each.group_id
            for each in self._source.list_groups(deadline)
            if each.is_of_consumers and self._chosen_groups.copies(each.group_id)
        ]
        committed = self._source.committed_by_groups(chosen, deadline)
        found = [
            group
            for group, entries in committed.items()
            if any(self._topics.copies(each.topic) for each in entries)
        ]
        if set(found) != set(self._groups):
            _log.info(
                "Connector %s translates the offsets of %s.",
                self._config.name,
                counted(len(found), "group"),
            )
        self._groups = sorted(found)

    def _translated(self) -> list[Checkpoint]:
        deadline = Deadline.after(PATIENCE_SECONDS, self._clock)
        # First: what groups have read by then was copied before.
        committed = self._source.committed_by_groups(self._groups, deadline)
        for each in self._followed[1 if self._is_memory_only else 0 :]:
            self._read(each, deadline)
        return sorted(translated(committed, self._translation, self._topics))

    # What is written.

    def _emitted(self, found: Iterable[Checkpoint]) -> Plan:
        news = self._news(found)
        now = news[:_MOST_AT_ONCE]
        if len(now) == len(news):
            self._emit_at = self._next(self._config.emit_seconds)
        if self._is_memory_only:
            self._written |= {key_of(each): each for each in now}
        if not now:
            return Plan()
        share = [
            Split(partition=source_partition(each), details={CHECKPOINT: list(each)})
            for each in now
        ]
        return Plan(shares=[share], has_more=len(now) < len(news))

    def _news(self, found: Iterable[Checkpoint]) -> list[Checkpoint]:
        return [each for each in found if is_news(each, self._written.get(key_of(each)))]

    def _commit(self, found: Iterable[Checkpoint]) -> None:
        """Commit translated offsets of groups that nobody consumes with on the target."""
        deadline = Deadline.after(PATIENCE_SECONDS, self._clock)
        listed = self._target.list_groups(deadline)
        states = {each.group_id: each.state for each in listed}
        by_group = {
            group: [*each]
            for group, each in groupby(self._existing(found, deadline), key=_group)
            if may_be_moved(states.get(group, DEAD) or self._state(group, deadline))
        }
        committed = self._target.committed_by_groups(by_group, deadline)
        for group, checkpoints in by_group.items():
            entries = entries_to_commit(checkpoints, committed[group])
            if entries:
                self._commit_entries(group, entries, deadline)

    def _commit_entries(
        self, group: str, entries: Sequence[GroupEntry], deadline: Deadline
    ) -> None:
        try:
            self._target.commit_entries(group, entries, deadline)
        except TaskFailedError as error:
            # A consumer may just have joined, or this client may not write for this group: others have no part in it.
            self._report_not_moved(group, str(error))
        else:
            self._not_moved.pop(group, None)

    def _report_not_moved(self, group: str, reason: str) -> None:
        """Log *reason*, unless it is the last one of *group*, whose offsets have not been moved since."""
        if self._not_moved.get(group) != reason:
            self._not_moved[group] = reason
            _log.warning(
                "Connector %s: The offsets of the group %r were not moved on the target: %s",
                self._config.name,
                group,
                reason,
            )

    def _existing(self, found: Iterable[Checkpoint], deadline: Deadline) -> Iterator[Checkpoint]:
        """Those of partitions that the target has: for others nothing can be committed."""
        wanted = [*found]
        names = {each.topic for each in wanted}
        known = self._target.metadata(names, deadline).topics if names else {}
        for each in wanted:
            if each.partition in known[each.topic].partitions:
                yield each

    def _state(self, group: str, deadline: Deadline) -> str:
        """The state of a group where brokers do not say it in their lists."""
        return self._target.describe_group(group, deadline).state

    # When.

    def _is_due(self, at: float | None) -> bool:
        return at is not None and self._clock() >= at

    def _next(self, seconds: float | None) -> float | None:
        return None if seconds is None else self._clock() + seconds


def checkpoint_of(details: Mapping[str, object]) -> Checkpoint:
    """The checkpoint in the *details* of a split."""
    fields = details[CHECKPOINT]
    assert isinstance(fields, list)
    return Checkpoint(*fields)


def _each(
    take: Callable[[bytes, bytes], None],
) -> Callable[[pa.RecordBatch], Iterable[ValueError]]:
    """*take* for the key and the value of each record that has one."""

    def take_all(columns: pa.RecordBatch) -> Iterator[ValueError]:
        pairs = zip(columns["key"].to_pylist(), columns["value"].to_pylist(), strict=True)
        for key, value in pairs:
            try:
                if value is not None:
                    take(key or b"", value)
            except ValueError as error:
                yield error

    return take_all


def _first(seconds: float | None, now: float) -> float | None:
    return None if seconds is None else now


def _group(checkpoint: Checkpoint) -> str:
    return checkpoint.group
