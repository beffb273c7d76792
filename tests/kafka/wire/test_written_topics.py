"""What a producer asks of the topics that it writes to, of brokers that a test scripts."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from uuid import UUID

import pytest

from doubles.scripted_broker import DescribeConfigsResponse, Received, ScriptedCluster
from headrace.connect.errors import RetriableError, TaskFailedError
from headrace.kafka.topic_partition import TopicPartition
from headrace.kafka.wire.written_topics import WrittenTopics

T0, T1 = (TopicPartition("t", number) for number in range(2))
UNKNOWN_TOPIC, LEADER_NOT_AVAILABLE, INVALID_TOPIC, NOT_ALLOWED = 3, 5, 17, 29


@pytest.fixture
def scripted() -> Iterator[ScriptedCluster]:
    """A broker with a topic of two partitions."""
    with ScriptedCluster(T0, T1) as made:
        yield made


@dataclass
class Asking:
    """Asks *scripted*, with a clock that the test may put on."""

    scripted: ScriptedCluster
    seconds: float = 20.0
    ahead: float = 0.0
    told: list[str] = field(default_factory=list[str])

    def __post_init__(self) -> None:
        self.cluster = self.scripted.cluster()
        self.topics = WrittenTopics(
            self.cluster,
            seconds=self.seconds,
            creation_seconds=0.3,
            waiting=self.told.append,
            clock=self.clock,
        )

    def clock(self) -> float:
        """Seconds of a clock that never goes back."""
        return time.monotonic() + self.ahead

    def asked(self, name: str = "Metadata") -> int:
        """How often the broker was asked."""
        return len(self.scripted.brokers[1].named(name))


@pytest.fixture
def asking(scripted: ScriptedCluster) -> Iterator[Asking]:
    """Whoever asks."""
    made = Asking(scripted)
    yield made
    made.cluster.close()


def test_a_topic_is_asked_for_once_in_five_minutes(asking: Asking) -> None:
    """Or when somebody doubts the answer."""
    assert [2, 2, 2] == [asking.topics.partitions("t") for _ in range(3)]
    assert 1 == asking.asked()
    asking.scripted.leaders[TopicPartition("t", 2)] = 1
    assert 3 == asking.topics.asked_partitions("t")
    assert 3 == asking.topics.partitions("t")
    asking.scripted.leaders[TopicPartition("t", 3)] = 1
    asking.ahead += 301

    assert 4 == asking.topics.partitions("t")
    assert 3 == asking.asked()


def test_a_topic_that_is_not_there_may_be_created(asking: Asking) -> None:
    """By the broker, when it is asked for in that way."""

    def metadata(node: int, received: Received) -> object:
        if received.message.allow_auto_topic_creation:
            asking.scripted.ids["new"] = UUID(int=9)
            asking.scripted.leaders[TopicPartition("new", 0)] = 1
        return asking.scripted.metadata(node, received)

    asking.scripted.scripts["Metadata"] = metadata

    assert 1 == asking.topics.partitions("new")


def test_a_topic_whose_partition_is_known_is_never_created(asking: Asking) -> None:
    """Somebody has deleted it, and is to notice that it is gone."""
    with pytest.raises(TaskFailedError, match="Create the topic"):
        asking.topics.asked_partitions("gone")

    asked = asking.scripted.brokers[1].named("Metadata")
    assert asked
    assert not any(each.allow_auto_topic_creation for each in asked)


@pytest.mark.parametrize(
    ("code", "error", "advice"),
    [
        (UNKNOWN_TOPIC, TaskFailedError, "Create the topic"),
        (INVALID_TOPIC, TaskFailedError, "at most 249"),
        (NOT_ALLOWED, TaskFailedError, "Grant this client Write and Describe"),
    ],
)
def test_a_topic_that_cannot_be_written_to_is_told(
    asking: Asking, code: int, error: type[Exception], advice: str
) -> None:
    """As the client library's sender tells it, and not before a topic could have been created."""
    asking.scripted.errors["no"] = code

    with pytest.raises(error, match=f"Kafka refused writing to topic 'no': .*{advice}"):
        asking.topics.partitions("no")


def test_leaders_are_waited_for(asking: Asking) -> None:
    """Until the time is over."""
    asking.scripted.errors["t"] = LEADER_NOT_AVAILABLE
    asking.topics._seconds = 1.5

    with pytest.raises(RetriableError, match="'t'"):
        asking.topics.partitions("t")
    assert ["the partitions of topic 't' (LEADER_NOT_AVAILABLE)"] == asking.told


def test_an_outage_is_told_while_it_is_waited_for(asking: Asking) -> None:
    """About once a second at first."""
    asking.scripted.brokers[1].stop()
    asking.topics._seconds = 2.5

    with pytest.raises(RetriableError, match="the metadata of its topics"):
        asking.topics.partitions("t")
    assert asking.told
    assert "the partitions of topic 't'" in asking.told[0]


def test_what_was_known_counts_while_no_broker_answers(asking: Asking) -> None:
    """Whoever sends waits for the brokers as long as it may; a second of it is not spent on what seldom changes."""
    asking.scripted.scripts["DescribeConfigs"] = configs(0)
    known = asking.topics.partitions("t"), asking.topics.max_bytes("t")
    asking.scripted.brokers[1].stop()
    asking.ahead += 301
    began = time.monotonic()

    assert (2, 12345) == known == (asking.topics.partitions("t"), asking.topics.max_bytes("t"))
    assert time.monotonic() - began < asking.seconds / 2
    told = len(asking.told)
    assert known == (asking.topics.partitions("t"), asking.topics.max_bytes("t"))
    assert told == len(asking.told), "asked again at once"


def configs(code: int, value: str | None = "12345") -> DescribeConfigsResponse:
    """What a broker says of one topic."""
    kind = DescribeConfigsResponse.DescribeConfigsResult
    one = kind.DescribeConfigsResourceResult(
        name="max.message.bytes",
        value=value,
        read_only=False,
        config_source=5,
        is_sensitive=False,
        synonyms=[],
        config_type=3,
        documentation=None,
    )
    return DescribeConfigsResponse(
        throttle_time_ms=0,
        results=[
            kind(
                error_code=code,
                error_message=None,
                resource_type=2,
                resource_name="t",
                configs=[] if code else [one],
            )
        ],
    )


def test_the_limit_of_a_topic_is_asked_for_once_in_five_minutes(asking: Asking) -> None:
    """It may be changed at any time."""
    asking.scripted.scripts["DescribeConfigs"] = configs(0)
    assert [12345, 12345] == [asking.topics.max_bytes("t") for _ in range(2)]
    assert 1 == asking.asked("DescribeConfigs")
    asking.scripted.scripts["DescribeConfigs"] = configs(0, "5")
    asking.ahead += 301

    assert 5 == asking.topics.max_bytes("t")


def test_whoever_may_not_know_a_limit_knows_none(asking: Asking) -> None:
    """And does not ask again at once."""
    asking.scripted.scripts["DescribeConfigs"] = configs(NOT_ALLOWED)

    assert [None, None] == [asking.topics.max_bytes("t") for _ in range(2)]
    assert 1 == asking.asked("DescribeConfigs")
