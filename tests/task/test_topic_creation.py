"""What is asked of Kafka before the first record of a topic is sent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import pyarrow as pa
import pytest

from doubles.memory_sender import MemorySender
from headrace.connect.errors import ReplanError, RetriableError, TaskFailedError
from headrace.connect.partition import SourcePartition
from headrace.kafka.admin import CreationForbiddenError
from headrace.kafka.deadline import Deadline
from headrace.kafka.sender import EncodedRecords, RowsOrigin
from headrace.task.topic_creation import TopicCreation, TopicGroup

Made = tuple[str, int, int, dict[str, str]]

LOGS = TopicGroup(
    name="logs",
    include=("log-.*",),
    partitions=6,
    replicas=-1,
    settings={"cleanup.policy": "compact"},
)
DEFAULT = TopicGroup(name="default", include=(".*",), partitions=1, replicas=2)


@dataclass
class Admin:
    """Notes what it is asked to make, and refuses it with *refusal*."""

    refusal: Exception | None = None
    there: frozenset[str] = frozenset()
    made: list[Made] = field(default_factory=list[Made])

    def exists(self, topic: str, deadline: Deadline) -> bool:
        """As the test says."""
        assert not deadline.expired
        return topic in self.there

    def ensure_topic(
        self,
        name: str,
        deadline: Deadline,
        *,
        partitions: int,
        replication: int,
        settings: Mapping[str, str] | None = None,
    ) -> bool:
        """As a real one does."""
        assert not deadline.expired
        self.made.append((name, partitions, replication, dict(settings or {})))
        if self.refusal:
            raise self.refusal
        return True


def sent(admin: Admin, *topics: str) -> list[str]:
    """Where one record each has gone that was sent to *topics*."""
    sender = MemorySender(transactional=False)
    making = TopicCreation(sender, admin, [LOGS, DEFAULT], check=lambda *_: None)
    for topic in topics:
        making.send(EncodedRecords(topic=topic, values=pa.array([b"1"])))
    sender.flush()
    return [topic for topic, _, _ in sender.committed]


def test_each_topic_is_made_once_as_its_group_says() -> None:
    """Before its first record; what is known to be there is not asked for again."""
    admin = Admin()

    assert ["log-a", "b", "log-a", "b"] == sent(admin, "log-a", "b", "log-a", "b")
    assert [("log-a", 6, -1, {"cleanup.policy": "compact"}), ("b", 1, 2, {})] == admin.made


def test_a_topic_that_may_not_be_made_fails_the_task() -> None:
    """In Kafka Connect's words, with the topic as it would have been."""
    with pytest.raises(TaskFailedError) as caught:
        sent(Admin(CreationForbiddenError("no")), "log-a")

    assert (
        "Task failed to create new topic (name=log-a, numPartitions=6, replicationFactor=default, "
        "replicasAssignments=null, configs={cleanup.policy=compact}). Ensure that the task is authorized to "
        "create topics or that the topic exists and restart the task"
    ) == str(caught.value)


def test_a_topic_that_kafka_refuses_is_told_with_its_group() -> None:
    """So that the setting is found that is wrong."""
    with pytest.raises(TaskFailedError, match=r"^no! .* topic\.creation\.default\.\*: \(name=b,"):
        sent(Admin(TaskFailedError("no!")), "b")


def test_a_topic_is_asked_for_again_when_kafka_did_not_answer() -> None:
    """What is not known to be there is not taken for it; nothing is sent meanwhile."""
    sender, admin = MemorySender(transactional=False), Admin(RetriableError("away"))
    making = TopicCreation(sender, admin, [DEFAULT], check=lambda *_: None)
    records = EncodedRecords(topic="b", values=pa.array([b"1"]))

    with pytest.raises(RetriableError):
        making.send(records)
    admin.refusal = None
    making.send(records)
    sender.flush()

    assert ["b", "b"] == [topic for topic, *_ in admin.made]
    assert [("b", None, b"1")] == sender.committed


def test_a_task_may_refuse_that_a_missing_topic_is_made() -> None:
    """Nothing is sent then; it is asked of no topic that is there, and told whose record it is."""
    sender, admin = MemorySender(transactional=False), Admin(there=frozenset({"a"}))
    asked = list[tuple[str, SourcePartition | None]]()

    def check(topic: str, partition: SourcePartition | None) -> None:
        asked.append((topic, partition))
        raise ReplanError("It was deleted.")

    making = TopicCreation(sender, admin, [DEFAULT], check=check)
    source = SourcePartition(of="b")
    origin = RowsOrigin(source, pa.array([7]))
    making.send(EncodedRecords(topic="a", values=pa.array([b"1"]), origin=origin))
    with pytest.raises(ReplanError, match="It was deleted"):
        making.send(EncodedRecords(topic="b", values=pa.array([b"2"]), origin=origin))
    sender.flush()

    assert [("b", source)] == asked
    assert [] == [topic for topic, *_ in admin.made]
    assert [("a", None, b"1")] == sender.committed
