"""A group that moves to the other cluster, and back: it goes on where it was."""

from __future__ import annotations

import base64
from contextlib import closing
from pathlib import Path

import pytest

from end_to_end.two_clusters import Side, TwoClusters
from headrace.broker import Broker
from headrace.testing.judge import committed_records
from judges.java_judge import JavaJudge
from waiting import until

pytestmark = [pytest.mark.broker, pytest.mark.slow, pytest.mark.timeout(300)]


@pytest.fixture
def two(bootstrap: str, broker: Broker, tmp_path: Path) -> TwoClusters:
    """The shared broker, and the mortal one."""
    return TwoClusters(bootstrap, broker.bootstrap, tmp_path)


def written(side: Side, topic: str) -> list[str]:
    """Records with gaps between them: what was aborted, and markers."""
    values = side.topics.write(topic, 30) + side.topics.write(topic, 30, 1)
    for ends in ("abort", "commit", "abort"):
        producer = side.topics.transactional("t")
        more = side.topics.values(topic, 7)
        side.topics.produce(producer, topic, more)
        if ends == "commit":
            producer.commit_transaction(30)
            values += more
        else:
            producer.abort_transaction(30)
    return values + side.topics.write(topic, 5)


def test_a_group_moves_over_and_back(two: TwoClusters, judge: JavaJudge) -> None:
    """It re-reads nothing and misses nothing, with two client libraries in turn. MirrorMaker's tells applications the same offsets."""
    a, b = two.a, two.b
    topic = a.topics.create("t", 2)
    remote = f"{a.alias}.{topic}"
    expected = written(a, topic)
    found = two.read(a, [topic], most=20)
    found += two.read_by_java(judge, a, [topic], most=20)

    two.mirror(a, b, sync_group_offsets_enabled="true")
    two.run(b)
    told = judge.mirrored(
        "remote",
        {"config": {"bootstrap.servers": b.bootstrap}, "source": a.alias, "group": two.group},
    )
    committed = two.committed(b, remote)
    assert {f"{remote}-{number}": offset for number, offset in committed.items()} == told["offsets"]
    found += two.read_by_java(judge, b, [remote], most=10)

    b.topics.create("t", 1)
    expected += b.topics.write(topic, 20)
    found += two.read(b, [remote, topic], most=15)
    two.mirror(b, a, sync_group_offsets_enabled="true")
    two.run(a)
    expected += a.topics.write(topic, 3, 1)
    found += two.read_by_java(judge, a, [topic, f"{b.alias}.{topic}"], most=10)
    found += two.read(a, [topic, f"{b.alias}.{topic}"])

    assert sorted(expected) == sorted(found)


def test_a_group_moves_over_where_topics_keep_their_names(
    two: TwoClusters, judge: JavaJudge
) -> None:
    """One way only. What comes to the old cluster afterwards follows it, and its offsets are not moved back."""
    a, b = two.a, two.b
    topic = a.topics.create("t", 2)
    expected = written(a, topic)
    found = two.read(a, [topic], most=45)
    identity = "org.apache.kafka.connect.mirror.IdentityReplicationPolicy"

    two.mirror(a, b, sync_group_offsets_enabled="true", replication_policy_class=identity)
    two.run(b)
    found += two.read_by_java(judge, b, [topic], most=10)
    committed = two.committed(b, topic)
    expected += a.topics.write(topic, 10) + a.topics.write(topic, 3, 1)
    two.run(b)
    moved = two.committed(b, topic)
    assert all(moved[number] >= offset for number, offset in committed.items())
    found += two.read(b, [topic])

    assert sorted(expected) == sorted(found)


def test_without_ranges_nothing_is_missed(two: TwoClusters) -> None:
    """By MirrorMaker's syncs some records are read twice."""
    a, b = two.a, two.b
    topic = a.topics.create("t", 2)
    expected = written(a, topic)
    found = two.read(a, [topic], most=45)

    two.mirror(a, b, sync_group_offsets_enabled="true", mirror_offset_ranges_enabled="false")
    two.run(b)
    found += two.read(b, [f"{a.alias}.{topic}"])

    assert set(expected) == set(found)


def checkpoints(judge: JavaJudge, side: Side, source: Side) -> list[list[object]]:
    """Those of flows from *source*, read by MirrorMaker's class."""
    fields = ("consumerGroupId", "topicPartition", "upstreamOffset", "downstreamOffset")
    topic = f"{source.alias}.checkpoints.internal"
    found = list[list[object]]()
    for each in judge.consumed(topic, bootstrap_servers=side.bootstrap):
        asked = {"class": "Checkpoint", "fields": fields}
        asked |= {part: base64.b64encode(each[part]).decode() for part in ("key", "value")}
        told = judge.mirrored("read", asked)
        found.append([told[name] for name in fields])
    return found


def test_a_checkpoint_is_written_once_for_each_move(two: TwoClusters, judge: JavaJudge) -> None:
    """Not again by a run that finds nothing new; and offsets on the target stay where they are unless that is asked for."""
    a, b = two.a, two.b
    topic = a.topics.create("t")
    a.topics.write(topic, 20)
    two.read(a, [topic], most=7)
    two.mirror(a, b)
    two.run(b)
    two.run(b)
    remote = [f"{a.alias}.{topic}", 0]
    assert [[two.group, remote, 7, 7]] == checkpoints(judge, b, a)

    two.read(a, [topic])
    two.run(b)

    assert [[two.group, remote, 7, 7], [two.group, remote, 20, 20]] == checkpoints(judge, b, a)
    assert {} == two.committed(b, f"{a.alias}.{topic}")


def test_a_group_with_members_is_moved_when_they_are_gone(two: TwoClusters) -> None:
    """And one that is further on the target is left where it is."""
    a, b = two.a, two.b
    topic = a.topics.create("t")
    a.topics.write(topic, 20)
    two.mirror(a, b, sync_group_offsets_enabled="true")
    two.run(b)
    remote = f"{a.alias}.{topic}"
    with closing(two.consumer(b)) as consumer:
        consumer.subscribe([remote])
        until(lambda: consumer.poll(0.1) and consumer.assignment())
        two.read(a, [topic], most=7)
        two.run(b)
        assert {} == two.committed(b, remote)

    two.run(b)
    assert {0: 7} == two.committed(b, remote)
    two.read(b, [remote], most=5)
    two.read(a, [topic], most=2)
    two.run(b)

    assert {0: 12} == two.committed(b, remote)


def test_groups_are_followed_while_they_read(two: TwoClusters) -> None:
    """Again and again, without a restart."""
    a, b = two.a, two.b
    topic = a.topics.create("t")
    remote = f"{a.alias}.{topic}"
    two.mirror(a, b, sync_group_offsets_enabled="true")
    with b.life.running():
        for number in (5, 10, 15):
            a.topics.write(topic, 5)
            two.read(a, [topic])
            until(lambda at=number: _is_at(two, remote, at), seconds=60)


def _is_at(two: TwoClusters, remote: str, records: int) -> bool:
    """Whether the group has everything on the target behind it: so many records, and the markers between them."""
    if remote not in two.b.topics.admin.list_topics(timeout=10).topics:
        return False
    at = two.committed(two.b, remote).get(0, 0)
    found = [each.offset for each in committed_records(two.b.bootstrap, remote)]
    return len(found) == records and at > found[-1]
