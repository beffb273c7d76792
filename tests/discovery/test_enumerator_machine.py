"""Any order of discoveries, failures, assignments, restores, additions, removals and re-creations: nothing lost, nothing twice."""

from __future__ import annotations

import copy
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from uuid import UUID

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from discovery.cluster_double import ClusterDouble, Log
from headrace.discovery.enumerator import (
    Comparison,
    DataLossPolicy,
    DiscoveryPolicies,
    PartitionEnumerator,
    PartitionSplit,
    RecreatedPolicy,
)
from headrace.discovery.findings import Change
from headrace.discovery.listing import listing
from headrace.discovery.state import EnumeratorState, Kind
from headrace.discovery.subscribers import TopicPatternSubscriber
from headrace.kafka.deadline import Deadline
from headrace.kafka.topic_partition import TopicPartition
from project.sampling import drawn

TOPICS = st.sampled_from("abc")
NUMBERS = st.integers(0, 3)
PATTERNS = st.sampled_from(["[abc]", "[ab]", "c", "nothing"])
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
    readers: dict[TopicPartition, Incarnation] = field(
        default_factory=dict[TopicPartition, Incarnation]
    )


class EnumeratorMachine(RuleBasedStateMachine):
    """The cluster changes, and discoveries are listings and look-ups that end at any time."""

    recreated = RecreatedPolicy.RESTART

    @initialize()
    def begin(self) -> None:
        """No topic, and nothing known."""
        self.cluster = ClusterDouble()
        self.policies = DiscoveryPolicies(
            removed=DataLossPolicy.CONTINUE,
            recreated=self.recreated,
            truncated=DataLossPolicy.CONTINUE,
        )
        self.enumerator = PartitionEnumerator(policies=self.policies)
        self.subscriber = TopicPatternSubscriber(re.compile("[abc]"))
        self.expected = Expected()
        self.looking_up: list[Comparison] = []
        self.said: list[PartitionSplit] = []
        self.checkpoint = (EnumeratorState(), Expected())

    # The cluster.

    @rule(topic=TOPICS, partitions=st.integers(1, 3))
    def create(self, topic: str, partitions: int) -> None:
        """Or delete and create again."""
        self.cluster.create(topic, *(Log() for _ in range(partitions)))

    @rule(topic=TOPICS)
    def delete(self, topic: str) -> None:
        """If it is there."""
        if topic in self.cluster.topics:
            self.cluster.delete(topic)

    @rule(topic=TOPICS)
    def add_partition(self, topic: str) -> None:
        """If the topic is there, and has few."""
        if 0 < len(self.cluster.topics.get(topic, ())) < 4:
            self.cluster.add(Log(), topic=topic)

    @rule(topic=TOPICS, number=NUMBERS, records=st.integers(1, 9), deleted=st.integers(0, 3))
    def write(self, topic: str, number: int, records: int, deleted: int) -> None:
        """And have retention delete some of the oldest records."""
        log = self.cluster.topics.get(topic, {}).get(number)
        if log is not None:
            log.end += records
            log.start = min(log.start + deleted, log.end)

    @rule(topic=TOPICS, number=NUMBERS)
    def elect(self, topic: str, number: int) -> None:
        """A leader, or none."""
        log = self.cluster.topics.get(topic, {}).get(number)
        if log is not None:
            log.leader = None if log.leader else 1

    @rule(topic=TOPICS, number=st.none() | NUMBERS)
    def hide(self, topic: str, number: int | None) -> None:
        """From the next answer."""
        self.cluster.hidden = {topic if number is None else TopicPartition(topic, number)}

    # The source.

    @rule(pattern=PATTERNS)
    def subscribe(self, pattern: str) -> None:
        """To other topics."""
        self.subscriber = TopicPatternSubscriber(re.compile(pattern))

    @rule()
    def list_topics(self) -> None:
        """What is found is of the right kind; its offsets are looked up later."""
        deadline = Deadline.after(10)
        ids = self.enumerator.snapshot().topic_ids
        known = self.enumerator.known_topics()
        listed = listing(self.cluster, None, deadline, known=known, ids=ids)
        found = self.enumerator.discovered(self.subscriber, listed)
        if self.recreated is RecreatedPolicy.CONTINUE:
            self._keep_positions(found, ids)
        kind = Kind.NEW if self.expected.has_discovered else Kind.INITIAL
        self.expected.has_discovered = True
        for place in self.subscriber.subscribed(listed.topics):
            self.expected.kinds.setdefault(self._incarnation(place), kind)
        for places, of_kind in ((found.initial, Kind.INITIAL), (found.new, Kind.NEW)):
            for place in places:
                assert of_kind is self.expected.kinds[self._incarnation(place)]
                assert self._incarnation(place) not in self.expected.positions
        for place in found.revoked:
            del self.expected.readers[place]
        self.looking_up.append(found)

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
        for logs in self.cluster.topics.values():
            for log in logs.values():
                log.leader = 1
        self.cluster.create("x")
        self.cluster.hidden = set()
        while self.looking_up:
            self.fail()
        self.list_topics()
        self._look_up(self.looking_up.pop())
        self.assign(100)
        there = {
            TopicPartition(topic, number): (self.cluster.ids[topic], number)
            for topic, logs in self.cluster.topics.items()
            for number in logs
            if self.subscriber.pattern.fullmatch(topic)
        }

        assert there == self.expected.readers

    def _look_up(self, found: Comparison) -> None:
        starts = dict[TopicPartition, int]()
        for place in (*found.initial, *found.new):
            log = self.cluster.topics.get(place.topic, {}).get(place.partition)
            if log is not None and log.leader is not None:
                starts[place] = log.end if place in found.initial else log.start
        self.enumerator.resolved(starts)
        self.enumerator.failed((*found.initial, *found.new))
        for split in self.enumerator.unassigned():
            if split.topic_id and split.place in starts and split.position is None:
                incarnation = (split.topic_id, split.place.partition)
                self.expected.positions.setdefault(incarnation, starts[split.place])

    def _keep_positions(self, found: Comparison, ids: Mapping[str, UUID]) -> None:
        """Of topics that were created again."""
        for each in found.findings:
            for number in each.partitions if each.change is Change.RECREATED else ():
                position = self.expected.positions.get((ids[each.topic], number))
                if position is not None and number in self.cluster.topics[each.topic]:
                    incarnation = self._incarnation(TopicPartition(each.topic, number))
                    self.expected.positions[incarnation] = position

    def _incarnation(self, place: TopicPartition) -> Incarnation:
        return self.cluster.ids[place.topic], place.partition


class ContinuingMachine(EnumeratorMachine):
    """Topics that were created again are read on at the old positions."""

    recreated = RecreatedPolicy.CONTINUE


TestEnumeratorMachine = EnumeratorMachine.TestCase
TestContinuingMachine = ContinuingMachine.TestCase
TestEnumeratorMachine.settings = TestContinuingMachine.settings = settings(
    max_examples=drawn(100), stateful_step_count=40, deadline=None
)
