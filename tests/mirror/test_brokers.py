"""A mirror's plans and tasks on a real broker, which is both clusters; positions are in a mapping, and not in a group."""

from __future__ import annotations

import pytest

from headrace.connect.errors import TaskFailedError
from headrace.connect.partition import SourceOffset, SourcePartition
from headrace.kafka.topic_partition import TopicPartition
from headrace.mirror.formats import OffsetRange
from headrace.mirror.positions import Flow, Position
from headrace.mirror.source_connector import MirrorSourceConnector
from headrace.testing.task_runs import Delivered, LocalRun
from spark.kafka.tables import Topics

pytestmark = pytest.mark.broker

FLOW = Flow("A", "B")


class Mirror:
    """A flow of the topics of one test."""

    def __init__(self, topics: Topics, **settings: str) -> None:
        self.stored: dict[SourcePartition, SourceOffset] = {}
        self.props = {
            "name": f"m-{topics.prefix}",
            "source.cluster.alias": "A",
            "target.cluster.alias": "B",
            "source.cluster.bootstrap.servers": topics.bootstrap,
            "target.cluster.bootstrap.servers": topics.bootstrap,
            "topics": f"{topics.prefix}-.*",
            # The cluster is other tests', too, which may have written some.
            "heartbeats.replication.enabled": "false",
            "replication.factor": "1",
            "mirror.offset.ranges.topic.replication.factor": "1",
        }
        self.set(**settings)

    def set(self, **settings: str) -> None:
        """Change settings, whose dots are underscores here."""
        self.props |= {key.replace("_", "."): value for key, value in settings.items()}

    def run(self, slots: int = 2) -> list[Delivered]:
        """Copy what there is; as after a restart."""
        return LocalRun(MirrorSourceConnector(), self.props, self.stored, slots=slots).until_idle()

    def values(self) -> list[str]:
        """What a run copies, in no order."""
        return sorted(each.value.decode() for each in self.run())

    def failure(self) -> str:
        """Why a run fails."""
        with pytest.raises(TaskFailedError) as raised:
            self.run()
        return str(raised.value)

    def position(self, topic: str, partition: int = 0) -> Position:
        """What is stored for it."""
        return Position.of(self.stored[FLOW.partition(TopicPartition(topic, partition))])


@pytest.fixture
def topics(bootstrap: str) -> Topics:
    """Those of a test."""
    return Topics(bootstrap)


def test_what_is_there_is_copied_once_and_what_comes_later_then(topics: Topics):
    """With all partitions, in order; nothing twice after a restart."""
    topic = topics.create("orders", 3)
    expected = [topics.write(topic, 50, partition) for partition in range(3)]
    mirror = Mirror(topics)

    found = mirror.run()

    assert {f"A.{topic}"} == {each.topic for each in found}
    for number, values in enumerate(expected):
        place = FLOW.partition(TopicPartition(topic, number))
        assert values == [each.value.decode() for each in found if each.partition == place]
        assert 50 == mirror.position(topic, number).next
    assert [] == mirror.run()
    assert topics.write(topic, 2, 1) == mirror.values()
    assert 3 == len(topics.admin.list_topics(f"A.{topic}").topics[f"A.{topic}"].partitions)


def test_aborted_records_are_not_copied_and_markers_are_passed(topics: Topics):
    """So that nothing is left to be read behind them."""
    topic = topics.create("orders")
    for ends, number in (("abort", 3), ("commit", 4), ("abort", 1)):
        producer = topics.transactional("t")
        values = topics.values(topic, number)
        topics.produce(producer, topic, values)
        if ends == "commit":
            producer.commit_transaction(30)
            committed = values
        else:
            producer.abort_transaction(30)
    mirror = Mirror(topics)

    assert sorted(committed) == mirror.values()
    assert 3 + 1 + 4 + 1 + 1 + 1 == mirror.position(topic).next
    connector = MirrorSourceConnector()
    assert [0] == [*connector.lag(mirror.props, mirror.stored).values()]


def test_what_is_to_be_copied_from_the_log_s_beginning_lags_from_there(topics: Topics):
    """As -1 says, which is not offset 0 of a log whose first records are gone; others lag from their positions."""
    topic = topics.create("orders", 3)
    for partition in (0, 1, 2):
        topics.write(topic, 10, partition)
        topics.delete_records(topic, 4, partition)
    offsets = {
        FLOW.partition(TopicPartition(topic, partition)): {"offset": offset}
        for partition, offset in enumerate((-1, 0, 6))
    }

    lag = MirrorSourceConnector().lag(Mirror(topics).props, offsets)

    assert [6, 9, 3] == [lag[each] for each in offsets]


def test_what_is_found_later_is_copied_from_its_beginning(topics: Topics):
    """Whatever is said about the start of what was there first."""
    topic = topics.create("orders")
    topics.write(topic, 5)
    mirror = Mirror(topics, mirror_start="latest")
    assert [] == mirror.values()

    topics.grow(topic, 2)
    other = topics.create("bills")
    expected = [*topics.write(topic, 3, 1), *topics.write(other, 2), *topics.write(topic, 1)]

    assert sorted(expected) == mirror.values()
    assert 2 == len(topics.admin.list_topics(f"A.{topic}").topics[f"A.{topic}"].partitions)


def test_that_nothing_was_there_at_first_survives_a_restart(topics: Topics):
    """A topic that is made afterwards is new, whatever the start."""
    mirror = Mirror(topics, mirror_start="latest")
    assert [] == mirror.values()
    assert [FLOW.discovery] == [*mirror.stored]

    topic = topics.create("orders")
    expected = topics.write(topic, 5)

    assert sorted(expected) == mirror.values()


def test_a_topic_made_again_stops_or_begins_again(topics: Topics):
    """By its id; the records of the new one are not behind the position in the old one."""
    topic = topics.create("orders")
    topics.write(topic, 5)
    mirror = Mirror(topics)
    mirror.run()
    topics.delete(topic)
    topics.create("orders")
    expected = topics.write(topic, 9)

    said = mirror.failure()
    assert f"The topic {topic} was deleted and created again at the source" in said
    assert "mirror.on.recreated" in said
    mirror.set(mirror_on_recreated="restart")
    assert sorted(expected) == mirror.values()
    assert [] == mirror.values()


def test_records_deleted_before_they_were_copied_stop_or_are_left_out(topics: Topics):
    """As by retention while the mirror was down."""
    topic = topics.create("orders")
    topics.write(topic, 5)
    mirror = Mirror(topics)
    mirror.run()
    left = topics.write(topic, 5)[3:]
    topics.delete_records(topic, 8)

    said = mirror.failure()
    assert "3 offsets deleted before being copied" in said
    assert "mirror.on.lost" in said
    mirror.set(mirror_on_lost="continue")
    assert sorted(left) == mirror.values()


def test_a_partition_without_a_position_whose_remote_one_has_records_stops(topics: Topics):
    """Its position has expired, for example; to begin would double all."""
    topic = topics.create("orders")
    expected = topics.write(topic, 5)
    mirror = Mirror(topics)
    mirror.run()
    topics.write(f"A.{topic}", 5)
    del mirror.stored[FLOW.partition(TopicPartition(topic, 0))]

    assert "mirror.on.expired" in mirror.failure()
    mirror.set(mirror_on_expired="continue")
    assert sorted(expected) == mirror.values()


def test_a_removed_topic_is_left_and_its_position_stays(topics: Topics):
    """It may be there again; by a setting it is a failure."""
    topic, other = topics.create("orders"), topics.create("bills")
    topics.write(topic, 5)
    topics.write(other, 5)
    mirror = Mirror(topics)
    mirror.run()
    topics.delete(topic)
    expected = topics.write(other, 2)

    assert sorted(expected) == mirror.values()
    assert 5 == mirror.position(topic).next
    mirror.set(mirror_on_removed="fail")
    assert "mirror.on.removed" in mirror.failure()


def test_a_remote_topic_deleted_while_nothing_ran_is_none_that_is_new(topics: Topics):
    """The broker has removed its position with it; by a setting it is copied from its beginning."""
    topic = topics.create("orders")
    expected = topics.write(topic, 5)
    mirror = Mirror(topics)
    mirror.run()
    # As a task writes it into the commit.
    producer, copied = topics.producer(), OffsetRange(topic, 0, 0, 0, 5).encoded()
    producer.produce("mm2-offset-ranges.A.internal", key=copied.key, value=copied.value)
    assert 0 == producer.flush(30)
    topics.delete(f"A.{topic}")
    del mirror.stored[FLOW.partition(TopicPartition(topic, 0))]

    assert f"The remote topic A.{topic} is gone from the target" in mirror.failure()
    assert f"A.{topic}" not in topics.admin.list_topics(timeout=10).topics
    new = topics.create("new")
    topics.write(new, 2)
    assert f"A.{topic} is gone" in mirror.failure()
    assert 2 == mirror.position(new).next
    mirror.set(mirror_on_remote_removed="continue")
    assert sorted(expected) == mirror.values()


def test_another_cluster_under_the_alias_stops(topics: Topics):
    """The positions say which one they are of."""
    topic = topics.create("orders")
    topics.write(topic, 5)
    mirror = Mirror(topics)
    mirror.run()
    place = FLOW.partition(TopicPartition(topic, 0))
    mirror.stored[place] = {**mirror.stored[place], "clusterId": "another"}

    assert "the cluster with the id another" in mirror.failure()


def test_two_topics_of_one_remote_name_are_refused(topics: Topics):
    """A policy of one's own may do that."""
    topics.create("a.orders")
    topics.create("b.orders")
    mirror = Mirror(topics, replication_policy_class="mirror.last_word:LastWordPolicy")

    assert "has to give different topics different names" in mirror.failure()


def test_a_flow_that_is_not_enabled_does_nothing(topics: Topics):
    """MirrorMaker's dedicated mode makes such ones."""
    topics.write(topics.create("orders"), 1)

    assert [] == Mirror(topics, enabled="false").values()
