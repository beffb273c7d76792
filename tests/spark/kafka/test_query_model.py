"""Whatever happens to a cluster and to a query: every offset of every partition is in one batch, in order."""

from __future__ import annotations

from collections import defaultdict
from itertools import pairwise
from typing import NamedTuple
from uuid import UUID

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from discovery.cluster_double import ClusterDouble, Log
from headrace.connect.errors import RetriableError
from headrace.kafka.topic_partition import TopicPartition
from headrace.spark.kafka.planning import OffsetRange
from project.sampling import drawn
from spark.kafka.query_double import Query

NAMES = ("p1", "p2", "p3")
MANY = st.integers(1, 30)
LIMITS = st.sampled_from(
    [
        {},
        {"maxOffsetsPerTrigger": "7"},
        {"maxOffsetsPerPartition": "3"},
        {"minOffsetsPerTrigger": "9", "maxTriggerDelay": "3s"},
        {"maxOffsetsPerTrigger": "1", "minPartitions": "3"},
        {"maxRecordsPerPartition": "2"},
    ]
)


class Part(NamedTuple):
    """A partition of one topic, which another topic of that name is not."""

    topic_id: UUID | None
    place: TopicPartition


class QueryMachine(RuleBasedStateMachine):
    """A query of the topics that match, on a cluster where they come and go. Batches are kept as an idempotent sink does."""

    def __init__(self) -> None:
        super().__init__()
        self.cluster = ClusterDouble()
        self.gone = dict[str, tuple[dict[int, Log], UUID]]()
        self.sink = dict[int, list[OffsetRange]]()
        self.taken = defaultdict[Part, list[OffsetRange]](list)
        self.positions = dict[Part, int]()

    @initialize(
        start=st.sampled_from(["earliest", "latest"]),
        limit=LIMITS,
        interval=st.sampled_from(["1", "5000"]),
        existing=st.sets(st.sampled_from(NAMES), max_size=2),
    )
    def begin(self, start: str, limit: dict[str, str], interval: str, existing: set[str]) -> None:
        """Some topics are there already, with records."""
        for name in sorted(existing):
            self.cluster.create(name, Log(0, 5), Log(0, 0))
        self.start = start
        self.query = Query(
            self.cluster,
            {
                "subscribePattern": "p.*",
                "startingOffsets": start,
                "partition.discovery.interval.ms": interval,
                "failOnDataLoss": "false",
                **limit,
            },
        )

    # What happens to the cluster.

    @rule(name=st.sampled_from(NAMES), records=st.integers(0, 9))
    def create(self, name: str, records: int) -> None:
        """A topic, or another one of that name."""
        self.gone.pop(name, None)
        self.cluster.create(name, Log(0, records))

    @rule(name=st.sampled_from(NAMES), records=st.integers(0, 9))
    def grow(self, name: str, records: int) -> None:
        """By a partition, which has records before anyone knows of it."""
        if len(self.cluster.topics.get(name, ())) in range(1, 5):
            self.cluster.add(Log(0, records), topic=name)

    @rule(name=st.sampled_from(NAMES), partition=st.integers(0, 4), records=MANY)
    def write(self, name: str, partition: int, records: int) -> None:
        """Where there is such a partition."""
        log = self.cluster.topics.get(name, {}).get(partition)
        if log is not None:
            log.end += records

    @rule(name=st.sampled_from(NAMES), is_for_good=st.booleans())
    def remove(self, name: str, *, is_for_good: bool) -> None:
        """A topic is deleted, or its rights are taken."""
        if name in self.cluster.topics:
            if not is_for_good:
                self.gone[name] = self.cluster.topics[name], self.cluster.ids[name]
            self.cluster.delete(name)

    @precondition(lambda self: self.gone)
    @rule()
    def give_back(self) -> None:
        """What was not deleted for good."""
        name, (logs, topic_id) = self.gone.popitem()
        self.cluster.topics[name], self.cluster.ids[name] = logs, topic_id

    @rule(
        name=st.sampled_from(NAMES), partition=st.integers(0, 4), leader=st.sampled_from([1, None])
    )
    def elect(self, name: str, partition: int, leader: int | None) -> None:
        """A leader, or none."""
        log = self.cluster.topics.get(name, {}).get(partition)
        if log is not None:
            log.leader = leader

    @rule(name=st.sampled_from(NAMES))
    def leave_out(self, name: str) -> None:
        """One answer lacks a topic, and a partition."""
        self.cluster.hidden = {name, TopicPartition("p1", 0)}

    @rule(is_listing=st.booleans())
    def fail(self, *, is_listing: bool) -> None:
        """The next request is not answered."""
        failures = self.cluster.metadata_failures if is_listing else self.cluster.offset_failures
        failures.append(RetriableError("away"))

    # What happens to the query.

    @rule(crash=st.booleans())
    def trigger(self, *, crash: bool) -> None:
        """Spark runs a batch if there is one; with a crash its sink has got it, and Spark has not noted it."""
        number = self.query.committed
        logged = len(self.query.ends)
        try:
            read = self.query.trigger(crash=crash)
        except RetriableError:
            self.query.restart()
            return
        if len(self.query.ends) == logged == number:
            return
        if number in self.sink:
            assert self.sink[number] == read, "the batch is another one than before"
            return
        self.sink[number] = read
        for each in read:
            self.take(each)

    @rule(limit=LIMITS)
    def restart(self, limit: dict[str, str]) -> None:
        """With other limits, as a user may."""
        for key in {key for key in self.query.options if "Per" in key or key == "maxTriggerDelay"}:
            del self.query.options[key]
        self.query.options |= limit
        self.query.restart()

    @rule()
    def restart_for_what_there_is(self) -> None:
        """With Trigger.AvailableNow."""
        self.query.restart(available_now=True)

    @rule(seconds=st.integers(1, 10))
    def wait(self, seconds: int) -> None:
        """Until something is due."""
        self.query.clock.now += seconds

    # What must be so.

    def take(self, read: OffsetRange) -> None:
        """A range is read: after what was read before of this partition, or from its beginning."""
        part = Part(read.topic_id, read.place)
        if part.topic_id not in self.ids():
            # Deleted while the batch was on its way, or made again while no answer showed it: who fetches that id finds nothing
            # any more, which the option has allowed.
            return
        if self.start == "earliest":
            assert self.positions.get(part, 0) == read.start
        else:
            assert self.positions.get(part, read.start) == read.start
        self.positions[part] = read.end
        self.taken[part].append(read)

    def ids(self) -> set[UUID]:
        """Of the topics that have not been deleted for good."""
        return {*self.cluster.ids.values(), *(topic_id for _, topic_id in self.gone.values())}

    @invariant()
    def nothing_is_read_twice(self) -> None:
        """In all batches together."""
        for pieces in self.taken.values():
            for before, after in pairwise(pieces):
                assert before.end <= after.start

    def teardown(self) -> None:
        """When all is well again, everything that is there is read."""
        if not hasattr(self, "query"):
            return
        while self.gone:
            self.give_back()
        for logs in self.cluster.topics.values():
            for log in logs.values():
                log.leader = 1
        self.cluster.metadata_failures.clear()
        self.cluster.offset_failures.clear()
        self.cluster.hidden = set()
        self.restart({})
        for _ in range(200):
            before = self.query.committed
            self.query.clock.now += 60
            self.trigger(crash=False)
            if self.query.committed == before:
                break
        found = self.query.state().partitions if self.query.ends else {}
        for topic, logs in self.cluster.topics.items():
            for partition, log in logs.items():
                place = TopicPartition(topic, partition)
                assert found[place].position == log.end
                if self.start == "earliest" and log.end:
                    assert self.positions[Part(self.cluster.ids[topic], place)] == log.end


TestQueryModel = QueryMachine.TestCase
TestQueryModel.settings = settings(deadline=None, max_examples=drawn(100), stateful_step_count=40)
