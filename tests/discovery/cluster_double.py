"""A cluster in memory: topics with ids and leaders, logs with their ends, commits of groups. Answers as the wire's cluster does."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from uuid import UUID

from headrace.connect.errors import RetriableError
from headrace.discovery.discoverer import Discovery, PartitionDiscoverer, Subscription
from headrace.discovery.enumerator import DiscoveryPolicies, PartitionEnumerator
from headrace.discovery.offsets_initializer import EarliestOffsets, OffsetsInitializer
from headrace.discovery.offsets_retriever import ClusterOffsetsRetriever
from headrace.discovery.state import EnumeratorState
from headrace.discovery.subscribers import Subscriber, TopicListSubscriber
from headrace.kafka.deadline import Deadline
from headrace.kafka.topic_partition import TopicPartition
from headrace.kafka.wire.cluster import (
    EARLIEST,
    LATEST,
    ClusterMetadata,
    IsolationLevel,
    ListedOffset,
    PartitionMetadata,
    TopicMetadata,
)
from headrace.kafka.wire.error_codes import (
    LEADER_NOT_AVAILABLE,
    UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode,
)

LIST = TopicListSubscriber(("t",))
FROM_EARLIEST = EarliestOffsets()
DEFAULT_POLICIES = DiscoveryPolicies()
T0, T1, T2, T3 = (TopicPartition("t", number) for number in range(4))


@dataclass
class Log:
    """One partition's log: ``[start, end)``, of which a reader of committed records sees what is before *stable*."""

    start: int = 0
    end: int = 0
    stable: int | None = None
    times: Mapping[int, int] = field(default_factory=dict[int, int])
    """The timestamp of each offset that has one."""
    leader: int | None = 1
    is_unavailable: bool = False
    """Metadata says that there is a leader, and it does not answer: what other leaders say is answered without it."""
    error: ErrorCode | None = None
    """What is answered in place of an offset."""

    def at(self, wanted: int, isolation: IsolationLevel) -> int | None:
        """What ListOffsets answers."""
        committed = isolation is IsolationLevel.READ_COMMITTED and self.stable is not None
        if wanted == EARLIEST:
            return self.start
        if wanted == LATEST:
            return self.stable if committed else self.end
        later = [at for at, time in self.times.items() if time >= wanted and at >= self.start]
        return min(later, default=None)


@dataclass
class ClusterDouble:
    """Its *asked* counts requests by kind; the next requests fail with *failures*, one after the other."""

    topics: dict[str, dict[int, Log]] = field(default_factory=dict[str, dict[int, Log]])
    ids: dict[str, UUID] = field(default_factory=dict[str, UUID])
    internal: set[str] = field(default_factory=set[str])
    errors: dict[str, ErrorCode] = field(default_factory=dict[str, ErrorCode])
    commits: dict[TopicPartition, int] = field(default_factory=dict[TopicPartition, int])
    hidden: set[TopicPartition | str] = field(default_factory=set[TopicPartition | str])
    """Partitions and topics that the next answer leaves out."""
    stale_ids: dict[str, UUID] = field(default_factory=dict[str, UUID])
    """Ids that the next answer has instead."""
    metadata_failures: list[Exception] = field(default_factory=list[Exception])
    offset_failures: list[Exception] = field(default_factory=list[Exception])
    asked: list[str] = field(default_factory=list[str])
    created: int = 0

    @classmethod
    def of(cls, *logs: Log) -> ClusterDouble:
        """A cluster with the topic ``t`` of these partitions."""
        cluster = cls()
        cluster.create("t", *logs)
        return cluster

    def add(self, *logs: Log, topic: str = "t") -> None:
        """More partitions."""
        log = self.topics[topic]
        log.update(enumerate(logs, len(log)))

    def create(self, topic: str, *logs: Log) -> None:
        """A topic with an id of its own, also when one of that name was there before."""
        self.topics[topic] = dict(enumerate(logs or (Log(),)))
        self.created += 1
        self.ids[topic] = UUID(int=self.created)

    def delete(self, topic: str) -> None:
        """As if it had never been there."""
        del self.topics[topic], self.ids[topic]

    def metadata(
        self, topics: Collection[str] | None, deadline: Deadline, *, again: bool = False
    ) -> ClusterMetadata:
        """As the wire's cluster."""
        self.asked.append("metadata again" if again else "metadata")
        if self.metadata_failures:
            raise self.metadata_failures.pop(0)
        names = self.topics if topics is None else topics
        answered = {name: self._topic(name) for name in names if name not in self.hidden}
        self.hidden, self.stale_ids = set(), {}
        return ClusterMetadata("c", {1: ("localhost", 9092)}, answered)

    def _topic(self, name: str) -> TopicMetadata:
        if name not in self.topics:
            return TopicMetadata(name, None, False, UNKNOWN_TOPIC_OR_PARTITION, {})
        if name in self.errors:
            return TopicMetadata(name, None, False, self.errors[name], {})
        partitions = {
            number: PartitionMetadata(number, log.leader, 0, None)
            for number, log in self.topics[name].items()
            if TopicPartition(name, number) not in self.hidden
        }
        topic_id = self.stale_ids.get(name, self.ids.get(name))
        return TopicMetadata(name, topic_id, name in self.internal, None, partitions)

    def list_offsets(
        self,
        wanted: Mapping[TopicPartition, int],
        deadline: Deadline,
        *,
        isolation: IsolationLevel = IsolationLevel.READ_COMMITTED,
    ) -> Mapping[TopicPartition, ListedOffset]:
        """As the wire's cluster."""
        self.asked.append("offsets")
        if self.offset_failures:
            raise self.offset_failures.pop(0)
        found = {place: self._offset(place, what, isolation) for place, what in wanted.items()}
        is_away = any(self._is_away(place) for place in wanted)
        if is_away and all(one.error is not None for one in found.values()):
            raise RetriableError("Kafka did not answer the offsets of its partitions in time.")
        return found

    def _is_away(self, place: TopicPartition) -> bool:
        """Whether its leader does not answer."""
        log = self.topics.get(place.topic, {}).get(place.partition)
        return log is not None and log.is_unavailable

    def _offset(self, place: TopicPartition, what: int, isolation: IsolationLevel) -> ListedOffset:
        log = self.topics.get(place.topic, {}).get(place.partition)
        if log is None:
            return ListedOffset(None, error=UNKNOWN_TOPIC_OR_PARTITION)
        if log.error is not None:
            return ListedOffset(None, error=log.error)
        if log.leader is None or log.is_unavailable:
            return ListedOffset(None, error=LEADER_NOT_AVAILABLE)
        return ListedOffset(log.at(what, isolation))

    def committed_offsets(
        self, group: str, partitions: Collection[TopicPartition], deadline: Deadline
    ) -> Mapping[TopicPartition, int | None]:
        """As the wire's cluster."""
        self.asked.append("committed")
        return {place: self.commits.get(place) for place in partitions}


@dataclass
class Clock:
    """A clock that a test sets."""

    now: float = 0.0

    def __call__(self) -> float:
        """Seconds."""
        return self.now

    def sleep(self, seconds: float) -> None:
        """They have passed."""
        self.now += seconds


@dataclass
class Source:
    """A source of partitions as its users build it: each process has a discoverer, the state is carried from one to the next."""

    cluster: ClusterDouble
    subscriber: Subscriber = LIST
    starting: OffsetsInitializer = FROM_EARLIEST
    stopping: OffsetsInitializer | None = None
    bounded: bool = False
    group_id: str | None = "g"
    isolation: IsolationLevel = IsolationLevel.READ_COMMITTED
    interval_seconds: float | None = 300.0
    max_failures: int | None = 12
    policies: DiscoveryPolicies = DEFAULT_POLICIES
    clock: Clock = field(default_factory=Clock)

    def __post_init__(self) -> None:
        self.restart(EnumeratorState())

    def discover(self) -> Discovery:
        """One discovery, whether it is due or not."""
        return self.discoverer.discover(self.enumerator, Deadline.after(10))

    def found(self) -> dict[TopicPartition, int | None]:
        """Discover, hand everything out, and answer where each of these partitions starts."""
        self.discover()
        return self.handed_out()

    def handed_out(self) -> dict[TopicPartition, int | None]:
        """Hand out what is unassigned; where each is read from."""
        splits = self.enumerator.unassigned()
        self.enumerator.assigned(split.place for split in splits)
        return {
            split.place: split.start if split.position is None else split.position
            for split in splits
        }

    def restart(self, state: EnumeratorState | None = None) -> None:
        """Another process, which has what was stored: *state*, or else what is known at this moment."""
        stored = (state or self.enumerator.snapshot()).to_json()
        self.enumerator = PartitionEnumerator(EnumeratorState.from_json(stored), self.policies)
        self.discoverer = PartitionDiscoverer(
            Subscription(
                subscriber=self.subscriber,
                starting=self.starting,
                stopping=self.stopping,
                bounded=self.bounded,
            ),
            self.cluster,
            self._retriever,
            interval_seconds=self.interval_seconds,
            max_failures=self.max_failures,
            clock=self.clock,
        )

    def _retriever(self, deadline: Deadline) -> ClusterOffsetsRetriever:
        return ClusterOffsetsRetriever(
            cluster=self.cluster,
            deadline=deadline,
            isolation=self.isolation,
            group_id=self.group_id,
        )
