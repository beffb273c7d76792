"""A streaming query as Spark's engine runs it: its checkpoint, its triggers, and batches that are planned again after a crash."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
from pyspark.sql.datasource import InputPartition

from discovery.cluster_double import Clock, ClusterDouble
from headrace.discovery.discoverer import PartitionDiscoverer, Subscription
from headrace.discovery.offsets_retriever import ClusterOffsetsRetriever
from headrace.discovery.state import EnumeratorState
from headrace.kafka.deadline import Deadline
from headrace.spark.kafka import stream
from headrace.spark.kafka.backlog import Backlog
from headrace.spark.kafka.options import KafkaSourceOptions
from headrace.spark.kafka.planning import OffsetRange
from headrace.spark.kafka.reading import KafkaInputPartition
from headrace.spark.kafka.stream import KafkaStreamReader
from headrace.spark.kafka.subscription import checked_options, starting, subscriber_of

EVERY_TRIGGER = {"partition.discovery.interval.ms": "1"}


@dataclass
class Query:
    """The source of one query on *cluster*, in one process after the other.

    *ends* is Spark's log of offsets, one text for each batch, and *committed* is how many of them are done; these two
    outlive a process. What :meth:`trigger` reads is not checked against the cluster's logs: ranges are answered.
    """

    cluster: ClusterDouble
    options: dict[str, str] = field(default_factory=dict[str, str])
    ends: list[str] = field(default_factory=list[str])
    committed: int = 0
    clock: Clock = field(default_factory=Clock)

    def __post_init__(self) -> None:
        self.restart()

    def restart(self, *, available_now: bool = False, **changed: str) -> None:
        """Another process, with *changed* options."""
        self.options |= changed
        given = {} if "subscribePattern" in self.options else {"subscribe": "t"}
        checked = checked_options({"kafka.bootstrap.servers": "none:9"} | given | self.options)
        self._reader = _reader(checked, self._backlog(checked))
        if available_now:
            self._reader.prepareForTriggerAvailableNow()

    def trigger(self, *, crash: bool = False) -> list[OffsetRange]:
        """One trigger: what its batch has read; nothing where there was none.

        With *crash* the batch is read after all, and the process ends before Spark has noted that it is done.
        """
        if len(self.ends) == self.committed and not self._constructs():
            return []
        planned = self.planned()
        if crash:
            self.restart()
            return planned
        self.committed += 1
        self.clock.now += 1
        return planned

    def planned(self) -> list[OffsetRange]:
        """What the batch that is not done reads, as planned now."""
        return ranges_of(self.tasks())

    def tasks(self) -> Sequence[InputPartition]:
        """The tasks of the batch that is not done."""
        return self._reader.partitions(self._start(), json.loads(self.ends[-1]))

    def commit(self) -> None:
        """Spark tells the source that the last batch is done."""
        self._reader.commit(json.loads(self.ends[-1]))

    def state(self) -> EnumeratorState:
        """Where the query is."""
        return EnumeratorState.from_json(self.ends[-1])

    def report(self) -> dict[str, Any] | None:
        """For the progress of the query."""
        return self._reader.reportLatestOffset()

    def _constructs(self) -> bool:
        """Spark's step that finds the next batch: a batch is an offset whose text is another one."""
        start = self._start()
        limit = self._reader.getDefaultReadLimit()
        found = json.dumps(self._reader.latestOffset(start, limit))
        if found == json.dumps(start):
            return False
        self.ends.append(found)
        return True

    def _start(self) -> dict[str, Any]:
        if self.committed:
            return json.loads(self.ends[self.committed - 1])
        return self._reader.initialOffset()

    def _backlog(self, options: KafkaSourceOptions) -> Backlog:
        def offsets(deadline: Deadline) -> ClusterOffsetsRetriever:
            return ClusterOffsetsRetriever(
                cluster=self.cluster,
                deadline=deadline,
                isolation=options.isolation,
                group_id=options.group_id,
            )

        discoverer = PartitionDiscoverer(
            Subscription(subscriber=subscriber_of(options), starting=starting(options)),
            self.cluster,
            offsets,
            interval_seconds=options.interval_seconds(),
            max_failures=options.max_failures,
            clock=self.clock,
        )
        policies = options.policies(subscriber_of(options).growth)
        return Backlog(
            options, discoverer, offsets, policies, clock=self.clock, sleep=self.clock.sleep
        )


def _reader(options: KafkaSourceOptions, backlog: Backlog) -> KafkaStreamReader:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stream, "backlog_of", lambda _: backlog)
        reader = KafkaStreamReader(options)
        reader.reportLatestOffset()
    return reader


def ranges_of(tasks: Sequence[InputPartition]) -> list[OffsetRange]:
    """What they read together, in the order of partitions."""
    joined = list[OffsetRange]()
    pieces = (
        each for task in tasks if isinstance(task, KafkaInputPartition) for each in task.ranges
    )
    for each in sorted(pieces, key=lambda piece: piece[:3]):
        if joined and (joined[-1].place, joined[-1].end) == (each.place, each.start):
            joined[-1] = joined[-1]._replace(end=each.end)
        else:
            joined.append(each)
    return joined
