"""The positions of a mirror: as source offsets, which users see, and as entries of the flow's group on the target. Pure."""

from __future__ import annotations

import base64
import json
from collections.abc import Collection, Mapping
from contextlib import suppress
from typing import Any, Final, NamedTuple, Self, cast
from uuid import UUID

from headrace.connect.errors import OffsetsError
from headrace.connect.group_offsets import GroupEntry, GroupOffsetCodec
from headrace.connect.partition import OffsetValue, SourceOffset, SourcePartition
from headrace.connect.task import Offsets
from headrace.kafka.topic_partition import TopicPartition, topic_id_text
from headrace.mirror.offset_checks import (
    OFFSET,
    invalid_offset,
    is_whole,
    number_in,
    shown,
    text_in,
    whole_in,
)
from headrace.mirror.policies import SOURCE_ALIAS_KEY, replication_policy

TARGET_ALIAS_KEY: Final = "target.cluster.alias"
DEFAULT_TARGET_ALIAS: Final = "target"
POLICY_PREFIX: Final = "replication.policy."
"""Of the keys that a naming policy may have: it is also made in slots, where other settings do not reach it."""

_CLUSTER, _TOPIC, _PARTITION, _FLOW = "cluster", "topic", "partition", "flow"
_CLUSTER_ID, _TOPIC_ID, _LEADER_EPOCH = "clusterId", "topicId", "leaderEpoch"
_DISCOVERED: Final = "discovered"
_OF_OFFSET: Final = frozenset({OFFSET, _CLUSTER_ID, _TOPIC_ID, _LEADER_EPOCH})

_VERSION: Final = 1
_LARGEST_EPOCH: Final = 2**31 - 1
_ID_BYTES: Final = 16

DISCOVERED: Final[SourceOffset] = {_DISCOVERED: True}
"""The offset of a flow's own source partition, once its first discovery is over."""


class Position(NamedTuple):
    """Everything before the offset *next* of a source partition is copied, or passed: markers, aborted records.

    *cluster_id* and *topic_id* say what was read, *leader_epoch* in which epoch the last batch was appended there; each is
    ``None`` where it is not known, as in a position that a user has given.
    """

    next: int
    cluster_id: str | None = None
    topic_id: UUID | None = None
    leader_epoch: int | None = None

    @property
    def offset(self) -> SourceOffset:
        """The source offset: that of the last record copied, as MirrorMaker's, so -1 before the first one."""
        return {OFFSET: self.next - 1, **self.identity}

    @property
    def is_earliest(self) -> bool:
        """Whether it says, as MirrorMaker's -1, that nothing is copied yet, so that the log is copied from wherever it begins.

        A start at offset 0 that discovery has found is that very offset of a log that it names.
        """
        return not self.next and not self.identity

    @property
    def identity(self) -> dict[str, OffsetValue]:
        """What is known besides the offset, as entries of a source offset."""
        found: dict[str, OffsetValue] = {}
        if self.cluster_id:
            found[_CLUSTER_ID] = self.cluster_id
        if self.topic_id is not None:
            found[_TOPIC_ID] = topic_id_text(self.topic_id)
        if self.leader_epoch is not None:
            found[_LEADER_EPOCH] = self.leader_epoch
        return found

    @classmethod
    def of(cls, offset: SourceOffset, *, called: str = "The source offset") -> Self:
        """The position that *offset* says; raises :class:`~headrace.connect.errors.OffsetsError` if it is none.

        *called* begins its sentence.
        """
        last = whole_in(offset, OFFSET, called)
        if last < -1:
            raise OffsetsError(
                invalid_offset(offset, OFFSET, called, "which cannot be less than -1")
            )
        strange = sorted(offset.keys() - _OF_OFFSET)
        if strange:
            raise OffsetsError(
                f"{called} has the key '{strange[0]}', which means nothing here; beside '{OFFSET}' there may be "
                f"'{_CLUSTER_ID}', '{_TOPIC_ID}' and '{_LEADER_EPOCH}'"
            )
        epoch = None
        if offset.get(_LEADER_EPOCH) is not None:
            epoch = whole_in(offset, _LEADER_EPOCH, called)
            if not 0 <= epoch <= _LARGEST_EPOCH:
                reason = "which cannot be negative, and has 31 bits"
                raise OffsetsError(invalid_offset(offset, _LEADER_EPOCH, called, reason))
        cluster = offset.get(_CLUSTER_ID)
        if not isinstance(cluster, str | None):
            reason = "which must be a string"
            raise OffsetsError(invalid_offset(offset, _CLUSTER_ID, called, reason))
        return cls(last + 1, cluster or None, _topic_id(offset, called), epoch)


class Flow(NamedTuple):
    """What is copied from where to where: the aliases of two clusters."""

    source: str
    target: str

    def __str__(self) -> str:
        return f"{self.source}->{self.target}"

    @classmethod
    def of(cls, props: Mapping[str, str]) -> Self:
        """The flow of a connector's configuration."""
        target = props.get(TARGET_ALIAS_KEY, DEFAULT_TARGET_ALIAS)
        return cls(props.get(SOURCE_ALIAS_KEY, "").strip(), target.strip())

    def partition(self, place: TopicPartition) -> SourcePartition:
        """The source partition of a *place* on the source cluster."""
        return SourcePartition(
            {_CLUSTER: self.source, _TOPIC: place.topic, _PARTITION: place.partition}
        )

    @property
    def discovery(self) -> SourcePartition:
        """The source partition of the flow itself, whose offset says that its first discovery is over."""
        return SourcePartition({_CLUSTER: self.source, _FLOW: str(self)})

    def place(self, partition: SourcePartition) -> TopicPartition | None:
        """The place on the source cluster, ``None`` for :attr:`discovery`.

        Raises :class:`~headrace.connect.errors.OffsetsError` for a partition that this flow does not have.
        """
        if partition == self.discovery:
            return None
        cluster = text_in(partition, _CLUSTER)
        topic = text_in(partition, _TOPIC)
        number = number_in(partition, _PARTITION)
        if cluster != self.source:
            raise OffsetsError(
                f"Source partition {shown(partition)} is of the cluster {cluster!r}, and this connector copies from "
                f"{self.source!r}."
            )
        strange = sorted(partition.keys() - {_CLUSTER, _TOPIC, _PARTITION})
        if strange:
            raise OffsetsError(
                f"Source partition {shown(partition)} has the key {strange[0]!r}, which means nothing here."
            )
        return TopicPartition(topic, number)


def check_offsets(flow: Flow, offsets: Offsets) -> None:
    """Raise :class:`~headrace.connect.errors.OffsetsError`, with MirrorMaker's sentences, for what no task can resume from."""
    for partition, offset in offsets.items():
        place = flow.place(partition)
        if offset is None:
            continue
        if place is None:
            if dict(offset) != DISCOVERED:
                raise OffsetsError(
                    f"The offset of {shown(partition)} is {{{_DISCOVERED}=true}}: the first discovery is over."
                )
            continue
        called = f"Source offset {shown(offset)} for source partition {shown(partition)}"
        Position.of(offset, called=called)


def check_in_source(
    positions: Mapping[TopicPartition, Position],
    partitions: Mapping[str, Collection[int]],
    ends: Mapping[TopicPartition, int],
) -> None:
    """Raise :class:`~headrace.connect.errors.OffsetsError` for *positions* that a source with these *partitions* does not have.

    *partitions* are those of its topics by name, *ends* the ends of their logs, where they are known.
    """
    for place, position in positions.items():
        there = partitions.get(place.topic, ())
        if place.partition not in there:
            has = f"it has {len(there)}, numbered from 0" if there else "it has no such topic"
            raise OffsetsError(f"The source has no partition {place}: {has}.")
        end = ends.get(place)
        if end is not None and position.next > end:
            raise OffsetsError(
                f"The offset {position.next - 1} of {place} cannot have been copied: the source's log ends at {end}, so the last "
                f"record there has at most the offset {end - 1}."
            )


class MirrorOffsetCodec(GroupOffsetCodec):
    """Keys each position by the remote partition, and stamps it with the flow and with what was read.

    The stamp is JSON in the metadata of the entry. Entries without it, with another flow's, or of another version are not
    this codec's. The flow's own entry is kept under the first partition of its internal topic on the target.
    """

    def __init__(self, config: Mapping[str, str]) -> None:
        super().__init__(config)
        self._flow = Flow.of(config)
        self._policy = replication_policy(config)

    @staticmethod
    def settings(props: Mapping[str, str]) -> dict[str, str]:
        """Those of a connector's *props* that this class is made from."""
        aliases = (SOURCE_ALIAS_KEY, TARGET_ALIAS_KEY)
        return {
            key: value
            for key, value in props.items()
            if key in aliases or key.startswith(POLICY_PREFIX)
        }

    def entry(self, partition: SourcePartition, offset: SourceOffset) -> GroupEntry:
        """See :class:`~headrace.connect.group_offsets.GroupOffsetCodec`."""
        check_offsets(self._flow, {partition: offset})
        topic, number = self.place(partition)
        source = self._flow.place(partition)
        stamp: dict[str, object] = {"v": _VERSION, "flow": str(self._flow)}
        if source is None:
            return GroupEntry(topic, number, 0, _written({**stamp, _DISCOVERED: True}))
        position = Position.of(offset)
        stamp["topic"] = source.topic
        if source.partition != number:
            stamp["partition"] = source.partition
        if position.cluster_id:
            stamp["cluster"] = position.cluster_id
        if position.topic_id is not None:
            stamp["id"] = topic_id_text(position.topic_id)
        if position.leader_epoch is not None:
            stamp["epoch"] = position.leader_epoch
        return GroupEntry(topic, number, position.next, _written(stamp))

    def place(self, partition: SourcePartition) -> tuple[str, int]:
        """See :class:`~headrace.connect.group_offsets.GroupOffsetCodec`."""
        source = self._flow.place(partition)
        if source is None:
            return self._policy.offset_ranges_topic(self._flow.source), 0
        return self._policy.remote_topic(self._flow.source, source.topic), source.partition

    def source(self, entry: GroupEntry) -> tuple[SourcePartition, SourceOffset] | None:
        """See :class:`~headrace.connect.group_offsets.GroupOffsetCodec`."""
        stamp = _stamp(entry.metadata)
        if stamp is None or stamp.get("v") != _VERSION or stamp.get("flow") != str(self._flow):
            return None
        try:
            found = self._read(entry, stamp)
            # The names may have changed since: what is committed for it now has another place.
            return found if found and self.place(found[0]) == entry.place else None
        except OffsetsError:
            return None

    def _read(
        self, entry: GroupEntry, stamp: Mapping[str, Any]
    ) -> tuple[SourcePartition, SourceOffset] | None:
        if stamp.get(_DISCOVERED) is True:
            return self._flow.discovery, DISCOVERED
        topic, number = stamp.get("topic"), stamp.get("partition", entry.partition)
        if not isinstance(topic, str) or not is_whole(number):
            return None
        written = {
            _CLUSTER_ID: stamp.get("cluster"),
            _TOPIC_ID: stamp.get("id"),
            _LEADER_EPOCH: stamp.get("epoch"),
        }
        known = {key: value for key, value in written.items() if value is not None}
        position = Position.of({OFFSET: entry.offset - 1, **known})
        return self._flow.partition(TopicPartition(topic, number)), position.offset


def writer_of(metadata: str) -> str:
    """Whose an entry with that *metadata* is, for a sentence: ``the flow A->B``, or someone unknown."""
    stamp = _stamp(metadata)
    if stamp is None:
        return "another program"
    if stamp.get("v") != _VERSION:
        return f"a headrace whose stamps have the version {stamp.get('v')!r}"
    return f"the flow {stamp.get('flow')}"


def _stamp(metadata: str) -> dict[str, Any] | None:
    try:
        # Some brokers' answers keep a NUL that ends the text.
        found: object = json.loads(metadata.rstrip("\0"))
    except ValueError:
        return None
    if not isinstance(found, dict) or "v" not in found or "flow" not in found:
        return None
    return cast("dict[str, Any]", found)


def _written(stamp: Mapping[str, object]) -> str:
    return json.dumps(stamp, separators=(",", ":"), ensure_ascii=False)


def _topic_id(offset: SourceOffset, called: str) -> UUID | None:
    text = offset.get(_TOPIC_ID)
    if text is None:
        return None
    with suppress(ValueError):
        octets = base64.urlsafe_b64decode(f"{text}==")
        if isinstance(text, str) and len(octets) == _ID_BYTES:
            return UUID(bytes=octets)
    reason = "which is text of 22 characters, as Kafka's tools show it"
    raise OffsetsError(invalid_offset(offset, _TOPIC_ID, called, reason))
