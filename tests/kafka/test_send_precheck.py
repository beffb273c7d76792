"""What the sender refuses before it hands anything over: partitions that a topic lacks."""

from __future__ import annotations

from dataclasses import dataclass, field

import pyarrow as pa
import pytest

from headrace.connect.errors import RetriableError, TaskFailedError
from headrace.kafka.send_precheck import SendPrecheck
from headrace.kafka.sender import EncodedRecords, NoPartitionError


@dataclass
class Cluster:
    """Topics with so many partitions each, asked at a time that the test sets."""

    partitions: dict[str, int]
    error: Exception = field(default_factory=lambda: TaskFailedError("There is no such topic."))
    asked: list[str] = field(default_factory=list[str])
    now: float = 0.0

    def count(self, topic: str) -> int:
        """As Kafka tells it."""
        self.asked.append(topic)
        if topic not in self.partitions:
            raise self.error
        return self.partitions[topic]

    def precheck(self) -> SendPrecheck:
        """A precheck to it."""
        return SendPrecheck(self.count, max_bytes=1000, clock=lambda: self.now)


def to(partition: int | None, topic: str = "t") -> EncodedRecords:
    """Two records for *partition*."""
    values = pa.array([b"1", b"2"], pa.binary())
    return EncodedRecords(topic=topic, values=values, partition=partition)


@pytest.mark.parametrize(
    ("count", "there"), [(3, "the partitions 0 to 2"), (1, "partition 0 only")]
)
def test_a_partition_that_a_topic_lacks_is_refused(count: int, there: str) -> None:
    """The sentence tells it, those that there are, and what to do."""
    precheck = Cluster({"t": count}).precheck()
    precheck.check(to(count - 1))

    with pytest.raises(NoPartitionError) as caught:
        precheck.check(to(count))

    assert (
        f"The record's topic 't' has no partition {count}: it has {there}. "
        "Use one of these, or add partitions to the topic."
    ) == str(caught.value)
    assert 0 == caught.value.row


def test_a_topic_is_asked_for_once() -> None:
    """And only where records tell partitions."""
    cluster = Cluster({"t": 3, "u": 1})
    precheck = cluster.precheck()
    for partition in (None, 0, 2, 1):
        precheck.check(to(partition))
    precheck.check(to(0, "u"))
    precheck.check(to(None, "v"))

    assert ["t", "u"] == cluster.asked


def test_a_topic_that_grows_is_asked_for_again() -> None:
    """Some seconds after the last answer, however many records there are."""
    cluster = Cluster({"t": 3})
    precheck = cluster.precheck()
    precheck.check(to(0))
    cluster.partitions["t"] = 6
    for _ in range(3):
        with pytest.raises(NoPartitionError):
            precheck.check(to(5))
    cluster.now = 5.0

    precheck.check(to(5))

    assert ["t", "t"] == cluster.asked


def test_a_topic_that_is_not_available_is_reported_by_the_writing() -> None:
    """Which has the advice; the precheck lets its records in."""
    Cluster({}).precheck().check(to(7))


def test_an_outage_is_no_answer() -> None:
    """What passes is told to the caller."""
    with pytest.raises(RetriableError):
        Cluster({}, error=RetriableError("The broker is away.")).precheck().check(to(7))
