"""Any order of discoveries, failures, assignments, restores, additions, removals and re-creations: nothing lost, nothing twice."""

from __future__ import annotations

import copy
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from uuid import UUID

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from discovery.cluster_double import ClusterDouble, Log
from headrace.connect.errors import TaskFailedError
from headrace.discovery.enumerator import (
    Comparison,
    DataLossPolicy,
    DiscoveryPolicies,
    PartitionEnumerator,
    PartitionLossError,
    PartitionSplit,
    RecreatedPolicy,
)
from headrace.discovery.findings import Change
from headrace.discovery.listing import listing
from headrace.discovery.state import EnumeratorState, Kind
from headrace.discovery.subscribers import (
    Growth,
    Subscriber,
    TopicListSubscriber,
    TopicPatternSubscriber,
)
from headrace.kafka.deadline import Deadline
from headrace.kafka.topic_partition import TopicPartition
from project.sampling import drawn

TOPICS = st.sampled_from("abc")
NUMBERS = st.integers(0, 3)
NAMES = st.frozensets(TOPICS)
LOGS = st.tuples(st.sampled_from([0, 5]), st.sampled_from([1, None]))
"""Where the log of a partition begins when it is first seen, and its leader."""
Incarnation = tuple[UUID, int]
"""One partition of one topic, whatever other topic has its name later."""


@dataclass
class Expected:
    """What a source must know at some moment; copied with each checkpoint."""

    has_discovered: bool = False
    kinds: dict[Incarnation, Kind] = field(default_factory=dict[Incarnation, Kind])
    """How each was found."""
    positions: dict[Incarnation, int] = field(default_factory=dict[Incarnation, int])
    """Where each is to be read from: at first where it starts."""
    stops: dict[Incarnation, int] = field(default_factory=dict[Incarnation, int])
    readers: dict[TopicPartition, Incarnation] = field(
        default_factory=dict[TopicPartition, Incarnation]
    )
    topics: set[str] = field(default_factory=set[str])
    """Of which partitions were found."""
    awaited: set[Incarnation] = field(default_factory=set[Incarnation])
    """Those that were made while their topic was subscribed to, so that a log without its beginning is a loss."""


class EnumeratorMachine(RuleBasedStateMachine):
    """The cluster changes, and discoveries are listings and look-ups that end at any time."""

    recreated = RecreatedPolicy.RESTART
    truncated = DataLossPolicy.CONTINUE

    @initialize(names=NAMES)
    def begin(self, names: frozenset[str]) -> None:
        """No topic, and nothing known."""
        self.cluster = ClusterDouble()
        self.policies = DiscoveryPolicies(
            removed=DataLossPolicy.CONTINUE, recreated=self.recreated, truncated=self.truncated
        )
        self.enumerator = PartitionEnumerator(policies=self.policies)
        self.subscribe(names)
        self.expected = Expected()
        self.looking_up: list[Comparison] = []
        self.said: list[PartitionSplit] = []
        self.checkpoint = (EnumeratorState(), Expected())

    # The cluster.

    @rule(topic=TOPICS, logs=st.lists(LOGS, min_size=1, max_size=3))
    def create(self, topic: str, logs: list[tuple[int, int | None]]) -> None:
        """Or delete and create again."""
        self.cluster.create(topic, *(Log(start, start, leader=leader) for start, leader in logs))

    @rule(topic=TOPICS)
    def delete(self, topic: str) -> None:
        """If it is there."""
        if topic in self.cluster.topics:
            self.cluster.delete(topic)

    @rule(topic=TOPICS, log=LOGS)
    def add_partition(self, topic: str, log: tuple[int, int | None]) -> None:
        """If the topic is there, and has few."""
        if 0 < len(self.cluster.topics.get(topic, ())) < 4:
            self.cluster.add(Log(log[0], log[0], leader=log[1]), topic=topic)

    @rule(topic=TOPICS, number=NUMBERS, records=st.integers(1, 9), deleted=st.integers(0, 3))
    def write(self, topic: str, number: int, records: int, deleted: int) -> None:
        """And have retention delete some of the oldest records."""
        log = self.cluster.topics.get(topic, {}).get(number)
        if log is not None:
            log.end += records
            log.start = min(log.start + deleted, log.end)

    @rule(topic=TOPICS, number=NUMBERS)
    def lose_leader(self, topic: str, number: int) -> None:
        """Of one partition."""
        log = self.cluster.topics.get(topic, {}).get(number)
        if log is not None:
            log.leader = None

    @rule()
    def elect(self) -> None:
        """A leader for each partition."""
        for logs in self.cluster.topics.values():
            for log in logs.values():
                log.leader = 1

    @rule(topic=TOPICS, number=st.none() | NUMBERS)
    def hide(self, topic: str, number: int | None) -> None:
        """From the next answer."""
        self.cluster.hidden = {topic if number is None else TopicPartition(topic, number)}

    # The source.

    @rule(names=NAMES)
    def subscribe(self, names: frozenset[str]) -> None:
        """To other topics."""
        self.names = names
        self.subscriber = self.subscriber_of(names)

    def subscriber_of(self, names: frozenset[str]) -> Subscriber:
        """A pattern, which topics begin to match."""
        return TopicPatternSubscriber(re.compile("|".join(sorted(names)) or "nothing"))

    @rule()
    def list_topics(self) -> None:
        """What is found is of the right kind; its offsets are looked up later."""
        deadline = Deadline.after(10)
        ids = self.enumerator.snapshot().topic_ids
        known = self.enumerator.known_topics()
        listed = listing(self.cluster, self.subscriber.names, deadline, known=known, ids=ids)
        before = self.enumerator.snapshot()
        try:
            found = self.enumerator.discovered(self.subscriber, listed)
        except TaskFailedError:
            assert (self.subscriber.names or frozenset()) - self.cluster.topics.keys()
            assert before == self.enumerator.snapshot()
            return
        if self.recreated is RecreatedPolicy.CONTINUE:
            self._keep_positions(found, ids)
        kind = Kind.NEW if self.expected.has_discovered else Kind.INITIAL
        self.expected.has_discovered = True
        for place in self.subscriber.subscribed(listed.topics):
            incarnation = self._incarnation(place)
            grows = self.subscriber.growth is Growth.TOPICS or place.topic in self.expected.topics
            if incarnation not in self.expected.kinds and kind is Kind.NEW and grows:
                self.expected.awaited.add(incarnation)
            self.expected.kinds.setdefault(incarnation, kind)
        self.expected.topics |= {place.topic for place in self.enumerator.partitions}
        for places, of_kind in ((found.initial, Kind.INITIAL), (found.new, Kind.NEW)):
            for place in places:
                assert of_kind is self.expected.kinds[self._incarnation(place)]
                assert self._incarnation(place) not in self.expected.positions
        for place in found.revoked:
            del self.expected.readers[place]
        self.looking_up.append(found)

    @rule()
    def discover(self) -> None:
        """A listing and its look-up, with nothing between them."""
        before = len(self.looking_up)
        self.list_topics()
        if len(self.looking_up) > before:
            self._look_up(self.looking_up.pop())

    @precondition(lambda self: self.looking_up)
    @rule(data=st.data())
    def look_up(self, data: st.DataObject) -> None:
        """The offsets of one listing, whatever has become of its topics; those without an answer have failed."""
        self._look_up(self.looking_up.pop(data.draw(st.integers(0, len(self.looking_up) - 1))))

    @precondition(lambda self: self.looking_up)
    @rule()
    def fail(self) -> None:
        """To look the offsets up."""
        found = self.looking_up.pop()
        self.enumerator.failed((*found.initial, *found.new))

    @rule(at_most=st.integers(1, 3))
    def assign(self, at_most: int) -> None:
        """Each to one reader, from where it is to be read."""
        for split in self.enumerator.unassigned()[:at_most]:
            assert split.topic_id
            incarnation = (split.topic_id, split.place.partition)
            start = split.start if split.position is None else split.position
            assert split.place not in self.expected.readers
            assert self.expected.positions[incarnation] == start
            assert self.expected.stops[incarnation] == split.stop
            self.expected.readers[split.place] = incarnation
            self.enumerator.assigned([split.place])

    @rule()
    def read(self) -> None:
        """All that is there of what readers have."""
        for place, incarnation in self.expected.readers.items():
            log = self.cluster.topics.get(place.topic, {}).get(place.partition)
            position = self.expected.positions[incarnation]
            if log is not None and incarnation[0] == self.cluster.ids[place.topic]:
                position = max(position, log.end)
            self.expected.positions[incarnation] = position
            self.enumerator.advanced({place: position})

    @rule(place=st.builds(TopicPartition, TOPICS, NUMBERS), tells=st.booleans())
    def lose_reader(self, place: TopicPartition, tells: bool) -> None:  # noqa: FBT001
        """Of one partition; it may say where it was."""
        incarnation = self.expected.readers.pop(place, None)
        if incarnation is not None:
            position = self.expected.positions[incarnation] if tells else None
            (split,) = (each for each in self.enumerator.with_readers() if each.place == place)
            self.said.append(split._replace(position=position))
            self.enumerator.reader_lost(self.said[-1:])

    @rule()
    def say_again(self) -> None:
        """All that was ever said of lost readers; it comes late, and changes nothing."""
        before = self.enumerator.snapshot()
        self.enumerator.reader_lost(self.said)
        assert before == self.enumerator.snapshot()

    @rule()
    def store(self) -> None:
        """What is known, in the midst of anything."""
        self.checkpoint = (self.enumerator.snapshot(), copy.deepcopy(self.expected))

    @rule()
    def crash(self) -> None:
        """And go on from what was stored."""
        state, expected = self.checkpoint
        stored = EnumeratorState.from_json(state.to_json())
        self.enumerator = PartitionEnumerator(stored, self.policies)
        self.expected = copy.deepcopy(expected)
        self.looking_up, self.said = [], []

    @invariant()
    def readers_are_those_of_the_enumerator(self) -> None:
        """No partition has two, and none is forgotten."""
        assert sorted(self.expected.readers) == [
            each.place for each in self.enumerator.with_readers()
        ]

    def teardown(self) -> None:
        """In the end every partition that is there has a reader, and only these."""
        if not hasattr(self, "cluster"):
            return
        self.elect()
        for topic in (self.names | {"x"}) - self.cluster.topics.keys():
            self.cluster.create(topic)
        self.cluster.hidden = set()
        while self.looking_up:
            self.fail()
        # What was lost is read on when the policy says so.
        self.truncated = DataLossPolicy.CONTINUE
        policies = replace(self.policies, truncated=self.truncated)
        self.enumerator = PartitionEnumerator(self.enumerator.snapshot(), policies)
        self.list_topics()
        self._look_up(self.looking_up.pop())
        self.assign(100)
        there = {
            TopicPartition(topic, number): (self.cluster.ids[topic], number)
            for topic, logs in self.cluster.topics.items()
            for number in logs
            if topic in self.names
        }

        assert there == self.expected.readers

    def _look_up(self, found: Comparison) -> None:
        starts = dict[TopicPartition, int]()
        for place in (*found.initial, *found.new):
            log = self.cluster.topics.get(place.topic, {}).get(place.partition)
            if log is not None and log.leader is not None:
                starts[place] = log.end if place in found.initial else log.start
        stops = {place: start + 9 for place, start in starts.items()}
        before = self.enumerator.snapshot()
        try:
            findings = self.enumerator.resolved(starts, stops)
        except PartitionLossError:
            assert self.truncated is DataLossPolicy.FAIL
            assert before == self.enumerator.snapshot()
            assert any(self._is_lost(self._known(place), start) for place, start in starts.items())
            findings = ()
        self.enumerator.failed((*found.initial, *found.new))
        lost = set[Incarnation]()
        for split in self.enumerator.unassigned():
            incarnation = self._known(split.place)
            if split.place not in starts or incarnation in self.expected.positions:
                continue
            assert (starts[split.place], stops[split.place]) == (split.start, split.stop)
            if self._is_lost(incarnation, starts[split.place]):
                lost.add(incarnation)
            self.expected.positions[incarnation] = starts[split.place]
            self.expected.stops[incarnation] = stops[split.place]
        reported = {
            self._known(TopicPartition(each.topic, number))
            for each in findings
            for number in each.partitions
        }
        assert lost == reported
        assert not (lost and self.truncated is DataLossPolicy.FAIL)

    def _is_lost(self, incarnation: Incarnation, start: int) -> bool:
        """Whether the records before *start* are a loss, and have not been reported."""
        is_found = incarnation in self.expected.positions
        return start > 0 and incarnation in self.expected.awaited and not is_found

    def _known(self, place: TopicPartition) -> Incarnation:
        """What the enumerator takes *place* for, whatever it is now."""
        return self.enumerator.topic_ids[place.topic], place.partition

    def _keep_positions(self, found: Comparison, ids: Mapping[str, UUID]) -> None:
        """Of topics that were created again."""
        for each in found.findings:
            for number in each.partitions if each.change is Change.RECREATED else ():
                position = self.expected.positions.get((ids[each.topic], number))
                if position is not None and number in self.cluster.topics[each.topic]:
                    incarnation = self._incarnation(TopicPartition(each.topic, number))
                    self.expected.positions[incarnation] = position
                    self.expected.stops[incarnation] = self.expected.stops[ids[each.topic], number]

    def _incarnation(self, place: TopicPartition) -> Incarnation:
        return self.cluster.ids[place.topic], place.partition


class ContinuingMachine(EnumeratorMachine):
    """Topics that were created again are read on at the old positions."""

    recreated = RecreatedPolicy.CONTINUE


class ListMachine(EnumeratorMachine):
    """Topics by their names, which get partitions; records that are lost are an error, and no others are."""

    truncated = DataLossPolicy.FAIL

    def subscriber_of(self, names: frozenset[str]) -> Subscriber:
        """A list."""
        return TopicListSubscriber(tuple(sorted(names)))


TestEnumeratorMachine = EnumeratorMachine.TestCase
TestContinuingMachine = ContinuingMachine.TestCase
TestListMachine = ListMachine.TestCase
TestEnumeratorMachine.settings = TestContinuingMachine.settings = TestListMachine.settings = (
    settings(max_examples=drawn(70), stateful_step_count=40, deadline=None)
)
