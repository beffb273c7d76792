"""A connector's source offsets in a consumer group on the cluster that it writes to, with which nobody consumes (KIP-656)."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Final, Protocol, cast

from headrace.config.client_settings import ConnectorOffsetsGroup
from headrace.connect.errors import (
    ConnectError,
    OffsetsError,
    RetriableError,
    TaskFailedError,
)
from headrace.connect.group_offsets import GroupEntry, GroupOffsetCodec
from headrace.connect.partition import SourceOffset, SourcePartition
from headrace.connect.task import Offsets
from headrace.kafka.client_config import client_config
from headrace.kafka.deadline import Deadline
from headrace.kafka.sender import OffsetEntry
from headrace.kafka.sentences import counted
from headrace.kafka.topic_partition import TopicPartition
from headrace.kafka.wire.cluster import Cluster, ClusterMetadata
from headrace.kafka.wire.group_requests import GroupDescription, GroupMember
from headrace.kafka.wire.settings import wire_settings
from headrace.offsets.group_codec import as_stored, codec_of, group_change
from headrace.offsets.store import (
    CLOSED,
    LockedOffsetStore,
    OffsetSnapshot,
    OffsetTransaction,
)
from headrace.offsets.target import OffsetTarget, TargetGroup

_log = logging.getLogger(__name__)

Known = Mapping[SourcePartition, SourceOffset]

# As long as the worker's own store may take; a late read is reported, and repeated.
_ANSWER_SECONDS: Final = 10.0
# More of them would not make it clearer who they are.
_NAMED: Final = 3


class GroupClient(Protocol):
    """What is asked of the group's cluster; see :class:`~headrace.kafka.wire.cluster.Cluster`. One thread uses it at a time."""

    def committed_entries(
        self,
        group: str,
        topics: Collection[str] | None,
        deadline: Deadline,
        *,
        also: Collection[str] = (),
    ) -> list[GroupEntry]:
        """What is committed, with open transactions waited for; the first ones of a topic only if it is named."""
        ...

    def commit_entries(self, group: str, entries: Sequence[GroupEntry], deadline: Deadline) -> None:
        """Commit without a transaction."""
        ...

    def delete_offsets(
        self, group: str, places: Collection[TopicPartition], deadline: Deadline
    ) -> None:
        """Remove what is committed."""
        ...

    def describe_group(self, group: str, deadline: Deadline) -> GroupDescription:
        """Who the members are."""
        ...

    def metadata(self, topics: Collection[str], deadline: Deadline) -> ClusterMetadata:
        """Which topics there are."""
        ...

    def close(self) -> None:
        """Close the connections."""
        ...


class GroupOffsets:
    """``ConnectorOffsets`` in a consumer group. Any thread may call.

    Offsets that the connector has in the *worker*'s store, as one has that MirrorMaker has run there, count until the
    connector's first start moves them into the group, in one transaction if there are any; those in the group win.
    *worker_topic* is where that store is, if it is in a topic. An offset whose place does not exist in the cluster is moved
    when it changes.

    Calls raise :class:`~headrace.connect.errors.RetriableError` when Kafka does not answer in time, also because a
    transaction with offsets of the group stays open, and :class:`~headrace.connect.errors.TaskFailedError` for errors that
    no retry can resolve.
    """

    def __init__(
        self,
        target: TargetGroup,
        connector: str,
        client: Callable[[], GroupClient],
        *,
        worker: LockedOffsetStore | None = None,
        worker_topic: str | None = None,
        seconds: float = _ANSWER_SECONDS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._target = target
        self._connector = connector
        self._codec = codec_of(target)
        self._make_client = client
        self._former = _FormerOffsets(worker, connector, self._codec)
        self._worker_topic = worker_topic
        self._client: GroupClient | None = None
        self._seconds = seconds
        self._clock = clock
        self._lock = threading.Lock()
        self._is_closed = False
        self._entries: list[GroupEntry] | None = None
        self._committed_topics = set[str]()
        """Topics to whose partitions something was committed since the last read: it may be pending, though it has ended."""
        self._snapshot = OffsetSnapshot({})
        self._overlaid: tuple[OffsetSnapshot, Known, OffsetSnapshot] | None = None

    def target(self, wanted: OffsetTarget) -> OffsetTarget:
        """The group."""
        return wanted

    def current(self) -> OffsetSnapshot:
        """All committed offsets, now; the same snapshot as before if no entry has changed."""
        # First: what is being moved leaves it when it is in the group.
        former = self._former.known()
        with self._asking() as (client, deadline):
            also = frozenset(self._committed_topics)
            entries = client.committed_entries(self._target.group_id, None, deadline, also=also)
            self._committed_topics -= also
            if entries != self._entries:
                self._snapshot = _snapshot(entries, self._codec, self._snapshot)
                self._entries = entries
            return self._over(self._snapshot, former)

    def differently_encoded(self) -> Offsets:
        """Offsets that are in the worker's store, and whose places exist."""
        former = self._former.known()
        if not former:
            return {}
        places = {each: self._codec.place(each) for each in former}
        with self._asking() as (client, deadline):
            found = client.metadata({topic for topic, _ in places.values()}, deadline).topics
        known = self.current().known()
        return {
            each: known[each]
            for each, (topic, number) in places.items()
            if topic in found and number in found[topic].partitions
        }

    def as_stored(self, offsets: Offsets) -> Offsets:
        """*offsets* in the form in which the group's entries give them back."""
        return as_stored(self._codec, offsets)

    def put(self, offsets: Offsets) -> None:
        """Commit *offsets* without a transaction; ``None`` removes."""
        change = group_change(self._target, self._codec, offsets)
        former = self._former.among(offsets)
        self.refuse_other_users()
        # What is left in the worker's store when the group has nothing would count again.
        self._former.remove([each for each in former if offsets[each] is None])
        with self._asking() as (client, deadline):
            client.commit_entries(change.group, change.entries, deadline)
            places = [TopicPartition(*each) for each in change.removed]
            client.delete_offsets(change.group, places, deadline)
        self._former.remove([each for each in former if offsets[each] is not None])

    def commit(self, offsets: Offsets, transaction: OffsetTransaction) -> None:
        """Have *transaction* commit *offsets*; removals come after it, because Kafka removes outside of transactions only."""
        self.refuse_other_users()
        change = group_change(self._target, self._codec, offsets)
        former = self._former.among(offsets)
        if former:
            assert self._worker_topic is not None, (
                "with transactions, the worker's store is a topic"
            )
            records = self._former.tombstones(former)
            change = change._replace(topic=self._worker_topic, records=records)
        try:
            transaction.commit_group(change)
        finally:
            with self._lock:
                self._committed_topics.update(each.topic for each in change.entries)

    def refuse_other_users(self) -> None:
        """Raise :class:`~headrace.connect.errors.TaskFailedError` while the group has members: they commit to it, too."""
        with self._asking() as (client, deadline):
            self._refuse_members(client, deadline)

    def catch_up(self) -> None:
        """Do nothing: there are no copies."""

    def settle(self, seconds: float) -> bool:
        """Return true: there are no copies."""
        return True

    def close(self) -> None:
        """Close the connections; later calls raise ``RetriableError``."""
        with self._lock:
            self._is_closed = True
            if self._client is not None:
                self._client.close()

    def _over(self, own: OffsetSnapshot, former: Known) -> OffsetSnapshot:
        """*own* over *former*; the same object as before if both are."""
        if not former:
            return own
        last = self._overlaid
        if last is None or last[0] is not own or last[1] is not former:
            both = OffsetSnapshot({**former, **own.known()}, unnamed=own.unnamed)
            last = self._overlaid = (own, former, both)
        return last[2]

    def _refuse_members(self, client: GroupClient, deadline: Deadline) -> None:
        members = client.describe_group(self._target.group_id, deadline).members
        if members:
            raise TaskFailedError(
                f"Connector {self._connector} keeps its source offsets in the consumer group "
                f"{self._target.group_id!r}, with which nobody may consume, but it has {_named(members)}. Stop "
                "what consumes with it, or give the connector another group. Nothing was committed to it."
            )

    @contextmanager
    def _asking(self) -> Generator[tuple[GroupClient, Deadline]]:
        """The client, for one call. Its time begins before others are waited for, so that each fails in time."""
        deadline = Deadline.after(self._seconds, self._clock)
        if not self._lock.acquire(timeout=self._seconds):
            raise RetriableError(
                f"Kafka did not answer earlier requests about the group {self._target.group_id!r} in time."
            )
        try:
            if self._is_closed:
                raise RetriableError(CLOSED)
            if self._client is None:
                self._client = self._make_client()
            yield self._client, deadline
        finally:
            self._lock.release()


class _FormerOffsets:
    """What a connector has in the worker's store, as far as a group can hold it. Any thread may call."""

    def __init__(
        self, worker: LockedOffsetStore | None, connector: str, codec: GroupOffsetCodec
    ) -> None:
        self._worker = worker
        self._connector = connector
        self._codec = codec
        self._seen: tuple[Known, Known] = ({}, {})
        """What the store had last, and what of it a group can hold."""

    def known(self) -> Known:
        """All of them, now; the same mapping as before if nothing has changed."""
        if self._worker is None:
            return {}
        stored = self._worker.current(self._connector).known()
        if not stored:
            # Nobody writes there any more: who runs the connector commits to the group.
            self._worker = None
            return {}
        if stored is not self._seen[0]:
            self._seen = (stored, self._readable(stored))
        return self._seen[1]

    def among(self, offsets: Offsets) -> list[SourcePartition]:
        """Those partitions of *offsets* that have one."""
        former = self.known()
        return [each for each in offsets if each in former]

    def tombstones(self, partitions: Sequence[SourcePartition]) -> Sequence[OffsetEntry]:
        """The records that remove the offsets of *partitions* from the worker's topic, for a transaction of the caller's."""
        assert self._worker is not None, "there are some"
        self._log(partitions)
        return self._worker.entries_for(self._connector, dict.fromkeys(partitions))

    def remove(self, partitions: Sequence[SourcePartition]) -> None:
        """Remove the offsets of *partitions*, which are in the group."""
        if self._worker is not None and partitions:
            self._log(partitions)
            self._worker.put(self._connector, dict.fromkeys(partitions))

    def _readable(self, stored: Known) -> Known:
        found = dict[SourcePartition, SourceOffset]()
        refused = list[OffsetsError]()
        for partition, offset in stored.items():
            try:
                found.update(cast("Known", as_stored(self._codec, {partition: offset})))
            except OffsetsError as error:
                refused.append(error)
        if refused:
            _log.warning(
                "Connector %s: %d of the %d source offsets that the worker's store has for this name are not of a connector "
                "of this kind; they are ignored. The first one: %s",
                self._connector,
                len(refused),
                len(stored),
                refused[0],
            )
        return found

    def _log(self, partitions: Sequence[SourcePartition]) -> None:
        _log.info(
            "Connector %s: the source offsets of %s move from the worker's offset store to the connector's "
            "consumer group.",
            self._connector,
            counted(len(partitions), "partition"),
        )


def _snapshot(
    entries: Sequence[GroupEntry], codec: GroupOffsetCodec, before: OffsetSnapshot
) -> OffsetSnapshot:
    """What *entries* store; with the same mapping of offsets as *before* if these are the same."""
    known = dict[SourcePartition, SourceOffset]()
    unnamed = list[GroupEntry]()
    for entry in entries:
        found = _source(codec, entry)
        if found is None:
            unnamed.append(entry)
        else:
            partition, offset = found
            known[partition] = offset
    same = before.known()
    return OffsetSnapshot(same if _are_equal(same, known) else known, unnamed=tuple(unnamed))


def _are_equal(one: Known, other: Known) -> bool:
    return len(one) == len(other) and all(one.get(each) == other[each] for each in other)


def _source(
    codec: GroupOffsetCodec, entry: GroupEntry
) -> tuple[SourcePartition, SourceOffset] | None:
    """What *entry* stores; ``None`` also for one that is not in the place of its source partition."""
    try:
        found = codec.source(entry)
        return None if found is None or codec.place(found[0]) != entry.place else found
    except ConnectError:
        raise
    except Exception as error:
        raise TaskFailedError(
            f"{type(codec).__name__} cannot read {entry!r} of its consumer group: {error!r}"
        ) from error


def _named(members: Sequence[GroupMember]) -> str:
    count = f"{len(members)} {'member' if len(members) == 1 else 'members'}"
    named = ", ".join(
        f"{each.client_id!r} at {each.host.removeprefix('/')}" for each in members[:_NAMED]
    )
    return f"{count} ({named}{', …' if len(members) > _NAMED else ''})"


def connector_group(
    own: ConnectorOffsetsGroup,
    connector: str,
    open_client: Callable[[ConnectorOffsetsGroup], GroupClient] | None = None,
    *,
    worker: LockedOffsetStore | None = None,
    worker_topic: str | None = None,
) -> GroupOffsets:
    """The offsets of *connector*, which are in the group *own*; contacts no broker."""
    group = own.group
    target = TargetGroup(group_id=group.group_id, codec=group.codec, config=dict(group.config))
    return GroupOffsets(
        target,
        connector,
        partial(open_client or open_group, own),
        worker=worker,
        worker_topic=worker_topic,
    )


def open_group(own: ConnectorOffsetsGroup) -> GroupClient:
    """A client of the cluster that holds the group; connects at its first request."""
    return Cluster(wire_settings(client_config(own.connection).settings))
