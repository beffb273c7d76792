"""The enumerator of FLIP-288: which partitions are known, which are initial and which are new, and what to do about each.

Pure: no client, no clock, no thread. Events come in as calls, and what is to be done is returned; one owner calls it. A
discovery is: ``discovered`` with what the cluster has said; look up the offsets of what it returns; ``resolved``, or ``failed``.
Then ``unassigned`` are to be handed out, and ``assigned`` notes who were. Everything is in ``snapshot``, at any moment.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum, auto
from typing import NamedTuple
from uuid import UUID

from headrace.connect.errors import TaskFailedError
from headrace.discovery.metadata import ClusterMetadata
from headrace.discovery.state import EnumeratorState
from headrace.discovery.subscribers import Subscriber
from headrace.kafka.topic_partition import TopicPartition


class DataLossPolicy(Enum):
    """What to do about records that cannot be read any more."""

    FAIL = "fail"
    CONTINUE = "continue"
    """Report it and read the rest."""


class RecreatedPolicy(Enum):
    """What to do about a topic that was deleted and created again: another topic id under the same name."""

    FAIL = "fail"
    CONTINUE = "continue"
    """Report it and go on at the position in the old topic, where the new one has one."""
    RESTART = "restart"
    """Report it and read the new topic from its beginning."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DiscoveryPolicies:
    """*removed*: a topic or partition that is gone. *recreated*: another topic of that name.

    *truncated*: a new partition whose first records are gone before they were read.
    """

    removed: DataLossPolicy = DataLossPolicy.FAIL
    recreated: RecreatedPolicy = RecreatedPolicy.FAIL
    truncated: DataLossPolicy = DataLossPolicy.FAIL


class Change(Enum):
    """What kind of a finding it is."""

    UNSUBSCRIBED = auto()
    """No longer subscribed to: not read any more, its position is kept."""
    REMOVED = auto()
    """Gone from the cluster; its position is kept."""
    RETURNED = auto()
    """There again, under the same topic id: reading resumes at its position."""
    RECREATED = auto()
    """Another topic of the same name."""
    TRUNCATED = auto()
    """New, and its log does not begin at 0."""
    RESET = auto()
    """An initial partition starts elsewhere than was wanted, as the reset strategy says."""


class Finding(NamedTuple):
    """Something that the operator should see, of one topic: to be logged and counted. *sentence* says it."""

    change: Change
    topic: str
    partitions: tuple[int, ...]
    sentence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """What a discovery has found.

    The offsets of *initial* are to be resolved by the user's initializer, those of *new* are the earliest; both are then
    given to ``resolved`` or ``failed``. *held_back* have no leader, and wait for a discovery that sees one. Readers give up
    *revoked*: removed, no longer subscribed to, or of a re-created topic; if these are read on, ``unassigned`` has them.
    """

    initial: tuple[TopicPartition, ...] = ()
    new: tuple[TopicPartition, ...] = ()
    held_back: tuple[TopicPartition, ...] = ()
    revoked: tuple[TopicPartition, ...] = ()
    findings: tuple[Finding, ...] = ()


class PartitionSplit(NamedTuple):
    """One partition to be read: what a reader gets.

    It begins at *position*, or where that is ``None`` at what the reader's own store of positions has, and without one there
    at *start*. Without a *start*, a position that is in no store either is an error. It ends before *stop*.
    """

    place: TopicPartition
    topic_id: UUID | None
    start: int | None
    stop: int | None
    position: int | None


class PartitionLossError(TaskFailedError):
    """Records are lost, and the policy is to fail. Nothing has been recorded."""


class PartitionEnumerator:
    """See the module. Restored from *state*; a fresh one has not finished the initial discovery."""

    def __init__(
        self, state: EnumeratorState | None = None, policies: DiscoveryPolicies | None = None
    ) -> None:
        raise NotImplementedError

    @property
    def initial_discovery_finished(self) -> bool:
        """Whether a discovery has returned, also with nothing; partitions found from then on are new."""
        raise NotImplementedError

    @property
    def known(self) -> Collection[TopicPartition]:
        """All partitions that have an entry, removed ones included."""
        raise NotImplementedError

    def discovered(self, subscriber: Subscriber, metadata: ClusterMetadata) -> Comparison:
        """A listing has returned. Call ``resolved`` or ``failed`` for what is to be resolved; others may be called in between.

        A second listing before that does not return the same partitions again. A partition is removed only where *metadata*
        says that its topic is unknown or has another id, never because it is missing.

        Raises :class:`PartitionLossError` by policy, and :class:`~headrace.connect.errors.TaskFailedError` for a topic or
        partition that is subscribed to and does not exist; both leave this object as it was.
        """
        raise NotImplementedError

    def resolved(
        self,
        starts: Mapping[TopicPartition, int],
        stops: Mapping[TopicPartition, int] | None = None,
    ) -> tuple[Finding, ...]:
        """The offsets of partitions from ``discovered`` have been looked up; from now on they are ``unassigned``.

        Raises :class:`PartitionLossError` for a new partition whose log has lost its beginning, by policy; then none of the
        *starts* counts.
        """
        raise NotImplementedError

    def failed(self, partitions: Iterable[TopicPartition]) -> None:
        """The offsets of *partitions* could not be had: the next discovery returns them again, as the same kind."""
        raise NotImplementedError

    def unassigned(self) -> list[PartitionSplit]:
        """What is to be handed to readers, in order."""
        raise NotImplementedError

    def assigned(self, partitions: Iterable[TopicPartition]) -> None:
        """Readers have got *partitions*, which were unassigned."""
        raise NotImplementedError

    def reader_lost(self, positions: Mapping[TopicPartition, int | None]) -> None:
        """A reader is gone: its partitions are unassigned again, with the position that each came back with, if any."""
        raise NotImplementedError

    def advanced(self, positions: Mapping[TopicPartition, int]) -> None:
        """Assigned partitions are read up to *positions*; for those who keep positions here and nowhere else.

        The start stays until a second position follows, so that a state says where the range of its own batch begins.
        """
        raise NotImplementedError

    def snapshot(self) -> EnumeratorState:
        """The state now; also between ``discovered`` and ``resolved``."""
        raise NotImplementedError
