"""The enumerator of FLIP-288: which partitions are known, which are initial and which are new, and what to do about each.

Pure: no client, no clock, no thread. Events come in as calls, and what is to be done is returned; one owner calls it. A
discovery is: ``discovered`` with what the cluster has said; look up the offsets of what it returns; ``resolved``, or ``failed``.
Then ``unassigned`` are to be handed out, and ``assigned`` notes who were. Everything is in ``snapshot``, at any moment.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType
from typing import Any, Final, NamedTuple
from uuid import UUID

from headrace.connect.errors import RetriableError, TaskFailedError
from headrace.discovery.findings import Change, Finding, findings_by_topic
from headrace.discovery.listing import Listing, has_other_id
from headrace.discovery.state import EnumeratorState, Kind, PartitionState, Status
from headrace.discovery.subscribers import Growth, Subscriber
from headrace.kafka.sentences import counted, listed
from headrace.kafka.topic_partition import TopicPartition, topic_id_text


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


class Comparison(NamedTuple):
    """What a discovery has found.

    The offsets of *initial* are to be resolved by the user's initializer, those of *new* are the earliest; both are then
    given to ``resolved`` or ``failed``. *held_back* have no leader, and wait for a discovery that sees one. Readers give up
    *revoked*: removed, no longer subscribed to, or of a re-created topic; if these are read on, ``unassigned`` has them.
    """

    initial: tuple[TopicPartition, ...]
    new: tuple[TopicPartition, ...]
    held_back: tuple[TopicPartition, ...]
    revoked: tuple[TopicPartition, ...]
    findings: tuple[Finding, ...]


class PartitionSplit(NamedTuple):
    """One partition to be read: what a reader gets.

    It begins at *position*, or where that is ``None`` at what the reader's own store of positions has, and without one there
    at *start*. Without a *start*, a position that is in no store either is an error. It ends before *stop*.

    *assignment* counts how often the partition has been handed out in this process. A reader that gives it up returns what it
    has got, with its *position*: so a report that comes late is not taken for one of the reader that has the partition now.
    """

    place: TopicPartition
    topic_id: UUID | None
    start: int | None
    stop: int | None
    position: int | None
    assignment: int


class PartitionLossError(TaskFailedError):
    """Records are lost, and the policy is to fail. Nothing has been recorded."""


class PartitionEnumerator:
    """See the module. Restored from *state*; a fresh one has not finished the initial discovery."""

    def __init__(
        self, state: EnumeratorState | None = None, policies: DiscoveryPolicies | None = None
    ) -> None:
        state = state or EnumeratorState()
        self._policies = policies or DiscoveryPolicies()
        self._finished = state.initial_discovery_finished
        self._partitions = dict(state.partitions)
        self._topic_ids = dict(state.topic_ids)
        # Those whose offsets are being looked up, with the id of the topic which was asked about.
        self._looked_up = dict[TopicPartition, UUID | None]()
        self._assignments = Counter[TopicPartition]()

    @property
    def initial_discovery_finished(self) -> bool:
        """Whether a discovery has returned, also with nothing; partitions found from then on are new."""
        return self._finished

    @property
    def partitions(self) -> Mapping[TopicPartition, PartitionState]:
        """All that are known, removed ones included; a view."""
        return MappingProxyType(self._partitions)

    def unresolved(self) -> list[TopicPartition]:
        """Those whose offsets are yet to be looked up, such as those without a leader, in no order."""
        return [
            place
            for place, one in self._partitions.items()
            if one.kind is not None and one.status is Status.UNASSIGNED
        ]

    def known_topics(self) -> frozenset[str]:
        """The topics of the partitions that are known and not removed."""
        return frozenset(
            place.topic
            for place, one in self._partitions.items()
            if one.status is not Status.REMOVED
        )

    @property
    def topic_ids(self) -> Mapping[str, UUID]:
        """The ids of all topics that are known, where the brokers have ids; a view."""
        return MappingProxyType(self._topic_ids)

    def discovered(self, subscriber: Subscriber, listing: Listing) -> Comparison:
        """A listing has returned. Call ``resolved`` or ``failed`` for what is to be resolved.

        Another listing before that does not return the same partitions again. A partition is removed only where *listing*
        says that its topic is unknown or has another id, never because it is missing.

        Raises :class:`PartitionLossError` by policy, :class:`~headrace.connect.errors.TaskFailedError` for a topic or a
        partition that is subscribed to and has never been there, and :class:`~headrace.connect.errors.RetriableError` for an
        incomplete first listing. Each leaves this object as it was.
        """
        wanted = frozenset(subscriber.subscribed(listing.topics))
        present = frozenset(place for place in wanted if _is_listed(place, listing))
        self._check_subscription(wanted - present, subscriber, listing)
        recreated = self._recreated({place.topic for place in wanted}, listing)
        absent = self._absent(present, recreated, subscriber, listing)
        returned = self._returned(present, recreated)
        findings = (
            *_findings_of(absent),
            *findings_by_topic(
                Change.RETURNED,
                dict.fromkeys(returned, ""),
                "there again, and read on where reading stopped",
            ),
            *self._recreations(recreated, listing),
        )
        self._check_policies(findings)

        known = {place.topic for place in self._partitions}
        revoked = [*self._remove(absent), *self._replace(recreated, present)]
        for place in returned:
            self._set(place, status=Status.UNASSIGNED)
        awaited = {
            place
            for place in present
            if self._finished and _is_awaited(place.topic, known, subscriber.growth)
        }
        self._add(present, listing, awaited)
        self._finished = True
        initial, new, held_back = self._to_look_up(present, listing)
        return Comparison(initial, new, held_back, tuple(sorted(revoked)), findings)

    def resolved(
        self,
        starts: Mapping[TopicPartition, int],
        stops: Mapping[TopicPartition, int] | None = None,
    ) -> tuple[Finding, ...]:
        """The offsets of partitions from ``discovered`` have been looked up; from now on they are ``unassigned``.

        What was asked about a topic that has been re-created meanwhile does not count, nor about a removed partition.

        Raises :class:`PartitionLossError` for a new partition whose log has lost its beginning, by policy; then none of the
        *starts* counts.
        """
        counting = [place for place in starts if self._is_current(place)]
        for place in starts:
            self._looked_up.pop(place, None)
        lost = [
            place
            for place in counting
            if self._partitions[place].expects_zero and starts[place] > 0
        ]
        findings = tuple(
            findings_by_topic(
                Change.TRUNCATED,
                {place: f" begins at {starts[place]}" for place in lost},
                "new, and without the first records, which were deleted before the discovery",
            )
        )
        if findings and self._policies.truncated is DataLossPolicy.FAIL:
            raise _loss(findings, "partition.discovery.on.truncated", "to read what is left")
        for place in counting:
            self._partitions[place] = PartitionState(
                Status.UNASSIGNED, starts[place], (stops or {}).get(place)
            )
        return findings

    def failed(self, partitions: Iterable[TopicPartition]) -> None:
        """The offsets of *partitions* could not be looked up: the next discovery returns them again, as the same kind."""
        for place in partitions:
            self._looked_up.pop(place, None)

    def unassigned(self) -> list[PartitionSplit]:
        """What is to be handed to readers, in order."""
        return self._splits(Status.UNASSIGNED)

    def with_readers(self) -> list[PartitionSplit]:
        """What readers have, in order."""
        return self._splits(Status.ASSIGNED)

    def assigned(self, partitions: Iterable[TopicPartition]) -> None:
        """Readers have got *partitions*, of those that ``unassigned`` has."""
        for place in partitions:
            one = self._partitions[place]
            if one.status is not Status.UNASSIGNED or one.kind is not None:
                raise ValueError(f"{place} is not there to be assigned.")
            self._set(place, status=Status.ASSIGNED)
            self._assignments[place] += 1

    def reader_lost(self, splits: Iterable[PartitionSplit]) -> None:
        """A reader is gone, or has given partitions up: what it had got, with the position that each came back with, if any.

        Those that are still read are unassigned again, each once, however often and however late this is said. What is said
        of a topic that has been created again, or of a partition that another reader has got since, does not count.
        """
        for split in splits:
            one = self._partitions.get(split.place)
            if one is None or one.status is Status.UNASSIGNED or not self._is_held(split):
                continue
            if split.position is not None:
                self._set(split.place, position=split.position)
            if one.status is Status.ASSIGNED:
                self._set(split.place, status=Status.UNASSIGNED)

    def _is_held(self, split: PartitionSplit) -> bool:
        """Whether the last reader of the partition has got *split*, and of the topic that is there now."""
        same_topic = split.topic_id in (None, self._topic_ids.get(split.place.topic))
        return same_topic and split.assignment == self._assignments[split.place]

    def advanced(self, positions: Mapping[TopicPartition, int]) -> None:
        """Assigned partitions are read up to *positions*; for those who keep positions here and nowhere else.

        They are their own only reader: what they say is about what they have just got from here, and never late.
        A start is kept until the second position: a state that has both says where the range that ends with it begins.
        """
        for place, position in positions.items():
            one = self._partitions[place]
            if one.status is not Status.ASSIGNED:
                raise ValueError(f"{place} is not assigned, so it cannot be read up to {position}.")
            start = one.start if one.position is None else None
            self._partitions[place] = one._replace(start=start, position=position)

    def snapshot(self) -> EnumeratorState:
        """The state now; also between ``discovered`` and ``resolved``."""
        return EnumeratorState(
            partitions=dict(self._partitions),
            topic_ids=dict(self._topic_ids),
            initial_discovery_finished=self._finished,
        )

    # What a listing means.

    def _check_subscription(
        self, missing: Iterable[TopicPartition], subscriber: Subscriber, listing: Listing
    ) -> None:
        known = {place.topic for place in self._partitions}
        topics = sorted((listing.unknown & (subscriber.names or frozenset())) - known)
        if topics:
            raise TaskFailedError(
                f"{counted(len(topics), 'topic')} to be read, and not on the brokers: {listed(topics)}. Create what is missing, or "
                "correct the names."
            )
        for place in sorted(missing):
            if self._was_never_there(place, listing):
                raise TaskFailedError(
                    f"The partition {place} is to be read and is not on the brokers. Correct the set of partitions."
                )
        unclear = sorted(listing.unclear)
        if unclear and not self._finished:
            raise RetriableError(
                f"The brokers do not yet say all about {listed(unclear)} ({listing.unclear[unclear[0]]}), and the first "
                "discovery has to find every partition."
            )

    def _was_never_there(self, place: TopicPartition, listing: Listing) -> bool:
        if place.topic in listing.unclear:
            return False
        return place not in self._partitions or self._has_other_id(place.topic, listing)

    def _has_other_id(self, topic: str, listing: Listing) -> bool:
        return has_other_id(listing, topic, self._topic_ids)

    def _recreated(self, topics: Iterable[str], listing: Listing) -> frozenset[str]:
        return frozenset(topic for topic in topics if self._has_other_id(topic, listing))

    def _absent(
        self,
        present: frozenset[TopicPartition],
        recreated: frozenset[str],
        subscriber: Subscriber,
        listing: Listing,
    ) -> dict[TopicPartition, Change]:
        """Those that are not to be read any more, and why. What *listing* says nothing about is not among them."""
        absent = dict[TopicPartition, Change]()
        names = subscriber.names
        for place, one in self._partitions.items():
            if one.status is Status.REMOVED or place in present or place.topic in recreated:
                continue
            if place.topic in listing.unknown:
                absent[place] = Change.REMOVED
            elif (
                (names is not None and place.topic not in names)
                or _is_listed(place, listing)
                # It was re-created with fewer partitions after it had been dropped from the subscription.
                or self._has_other_id(place.topic, listing)
            ):
                absent[place] = Change.UNSUBSCRIBED
        return absent

    def _returned(
        self, present: frozenset[TopicPartition], recreated: frozenset[str]
    ) -> list[TopicPartition]:
        return [
            place
            for place, one in self._partitions.items()
            if one.status is Status.REMOVED and place in present and place.topic not in recreated
        ]

    def _recreations(self, recreated: frozenset[str], listing: Listing) -> Iterator[Finding]:
        numbers = {topic: list[int]() for topic in sorted(recreated)}
        for place in sorted(self._partitions):
            if place.topic in numbers:
                numbers[place.topic].append(place.partition)
        for topic, partitions in numbers.items():
            now = listing.topics[topic].topic_id
            yield Finding(
                Change.RECREATED,
                topic,
                tuple(partitions),
                f"The topic {topic} was deleted and created again: its id was {topic_id_text(self._topic_ids[topic])} and is "
                f"now {topic_id_text(now) if now else 'none'}. What had not been read of the old one is lost.",
            )

    def _check_policies(self, findings: Iterable[Finding]) -> None:
        removed = [each for each in findings if each.change is Change.REMOVED]
        if removed and self._policies.removed is DataLossPolicy.FAIL:
            raise _loss(removed, "partition.discovery.on.removed", "to read the others")
        recreated = [
            each for each in findings if each.change is Change.RECREATED and self._has_started(each)
        ]
        if recreated and self._policies.recreated is RecreatedPolicy.FAIL:
            raise _loss(
                recreated,
                "partition.discovery.on.recreated",
                "to go on at the old position, or to restart to read the new topic from its beginning",
            )

    def _has_started(self, finding: Finding) -> bool:
        return any(
            self._partitions[TopicPartition(finding.topic, each)].kind is None
            for each in finding.partitions
        )

    # What becomes of the entries.

    def _remove(self, absent: Iterable[TopicPartition]) -> Iterator[TopicPartition]:
        for place in absent:
            if self._partitions[place].status is Status.ASSIGNED:
                yield place
            self._set(place, status=Status.REMOVED)

    def _replace(
        self, recreated: frozenset[str], present: frozenset[TopicPartition]
    ) -> Iterator[TopicPartition]:
        """Partitions of re-created topics: forgotten where the new topic has none, else as the policy says."""
        restarts = self._policies.recreated is not RecreatedPolicy.CONTINUE
        for place in [each for each in self._partitions if each.topic in recreated]:
            one = self._partitions[place]
            if one.status is Status.ASSIGNED:
                yield place
            if place not in present:
                del self._partitions[place]
            elif restarts or one.kind is not None:
                self._partitions[place] = _RECREATED
            else:
                start = one.start if one.position is None else None
                self._set(place, status=Status.UNASSIGNED, start=start)

    def _add(
        self,
        present: frozenset[TopicPartition],
        listing: Listing,
        awaited: Container[TopicPartition],
    ) -> None:
        kind = Kind.NEW if self._finished else Kind.INITIAL
        for place in present - self._partitions.keys():
            self._partitions[place] = PartitionState(
                Status.UNASSIGNED, kind=kind, expects_zero=place in awaited
            )
        for topic in {place.topic for place in present}:
            topic_id = listing.topics[topic].topic_id
            if topic_id is not None:
                self._topic_ids[topic] = topic_id

    def _to_look_up(
        self,
        present: frozenset[TopicPartition],
        listing: Listing,
    ) -> tuple[tuple[TopicPartition, ...], ...]:
        """Initial ones, new ones, and those that are held back, each in order."""
        initial, new, held_back = (
            list[TopicPartition](),
            list[TopicPartition](),
            list[TopicPartition](),
        )
        for place in present:
            one = self._partitions[place]
            if one.kind is None or place in self._looked_up:
                continue
            if listing.topics[place.topic].partitions[place.partition].leader is None:
                held_back.append(place)
                continue
            self._looked_up[place] = self._topic_ids.get(place.topic)
            (new if one.kind is Kind.NEW else initial).append(place)
        return tuple(sorted(initial)), tuple(sorted(new)), tuple(sorted(held_back))

    def _is_current(self, place: TopicPartition) -> bool:
        """Whether the offsets of *place* are being looked up, and of the topic that is there now."""
        one = self._partitions.get(place)
        is_awaited = one is not None and one.kind is not None and one.status is Status.UNASSIGNED
        if not is_awaited or place not in self._looked_up:
            return False
        return self._topic_ids.get(place.topic) == self._looked_up[place]

    def _splits(self, status: Status) -> list[PartitionSplit]:
        coming = 1 if status is Status.UNASSIGNED else 0
        return [
            PartitionSplit(
                place,
                self._topic_ids.get(place.topic),
                one.start,
                one.stop,
                one.position,
                self._assignments[place] + coming,
            )
            for place, one in sorted(self._partitions.items())
            if one.status is status and one.kind is None
        ]

    def _set(self, place: TopicPartition, **changes: Any) -> None:  # noqa: ANN401 (fields of PartitionState)
        self._partitions[place] = self._partitions[place]._replace(**changes)


def _is_awaited(topic: str, known: Container[str], growth: Growth) -> bool:
    """Whether a partition of *topic* that is new was made while the topic was subscribed to.

    Of one that was not, no one has wanted the records that are gone.
    """
    return growth is Growth.TOPICS or (growth is Growth.PARTITIONS and topic in known)


def _is_listed(place: TopicPartition, listing: Listing) -> bool:
    topic = listing.topics.get(place.topic)
    return topic is not None and place.partition in topic.partitions


_RECREATED: Final = PartitionState(Status.UNASSIGNED, kind=Kind.NEW, expects_zero=True)
_SAYS: Final = {
    Change.REMOVED: "not on the brokers any more",
    Change.UNSUBSCRIBED: "no longer subscribed to, and not read on, though their positions are kept",
}


def _findings_of(absent: Mapping[TopicPartition, Change]) -> Iterator[Finding]:
    for change, says in _SAYS.items():
        details = {at: "" for at, why in absent.items() if why is change}
        yield from findings_by_topic(change, details, says)


def _loss(findings: Iterable[Finding], setting: str, otherwise: str) -> PartitionLossError:
    sentences = " ".join(each.sentence for each in findings)
    return PartitionLossError(f"{sentences} Set {setting} to continue {otherwise}.")
