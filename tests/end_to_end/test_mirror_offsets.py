"""Offset ranges and offset syncs of a mirror between two real brokers: each says where a record really is."""

from __future__ import annotations

import base64
import random
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from end_to_end.committed_messages import messages
from end_to_end.live import Life
from end_to_end.mirrored import EveryKind, Mirrored
from end_to_end.test_mirror import TRANSFORMED
from headrace.broker import Broker
from headrace.mirror.formats import OffsetRange
from judges.java_judge import JavaJudge
from spark.kafka.tables import Topics

pytestmark = [pytest.mark.broker, pytest.mark.timeout(300)]

SYNCS_AT_SOURCE = "mm2-offset-syncs.B.internal"
SYNCS_AT_TARGET = "mm2-offset-syncs.A.internal"
RANGES = "mm2-offset-ranges.A.internal"


class Place(NamedTuple):
    """Of a record."""

    topic: str
    partition: int
    offset: int


@pytest.fixture
def flow(bootstrap: str, broker: Broker) -> Mirrored:
    """From the shared broker to the mortal one."""
    return Mirrored(Topics(bootstrap), broker.bootstrap)


@pytest.fixture
def life(broker: Broker, tmp_path: Path) -> Life:
    """A worker of the target."""
    return Life(broker.bootstrap, tmp_path)


def contents(bootstrap: str, names: list[str]) -> dict[Place, tuple[object, ...]]:
    """What another client library reads, by place."""
    return {
        Place(str(each.topic()), each.partition() or 0, each.offset() or 0): (
            each.key(),
            each.value(),
            each.headers(),
        )
        for each in messages(bootstrap, names)
    }


def ranges(flow: Mirrored) -> Iterator[OffsetRange]:
    """Those of this test's topics."""
    for each in messages(flow.target, [RANGES]):
        found = OffsetRange.decoded(each.key() or b"", each.value() or b"")  # type: ignore[arg-type]
        if found.topic.startswith(flow.topics.prefix):
            yield found


def syncs(judge: JavaJudge, flow: Mirrored, bootstrap: str, topic: str) -> list[tuple[Place, int]]:
    """Those of this test's topics, read by MirrorMaker's class."""
    found = list[tuple[Place, int]]()
    config = {"bootstrap_servers": bootstrap, "isolation_level": "read_committed"}
    fields = ("topicPartition", "upstreamOffset", "downstreamOffset")
    for each in judge.consumed(topic, **config):
        asked = {"class": "OffsetSync", "fields": fields}
        asked |= {part: base64.b64encode(each[part]).decode() for part in ("key", "value")}
        told = judge.mirrored("read", asked)
        (name, partition), upstream, downstream = (told[key] for key in fields)
        if name.startswith(flow.topics.prefix):
            found.append((Place(name, partition, upstream), downstream))
    return found


@pytest.mark.slow
@pytest.mark.parametrize(
    "settings",
    [
        {},
        TRANSFORMED,
        {"transaction.producer.enabled": "false", "offset-syncs.topic.location": "target"},
        {"offset-syncs.topic.location": "target"},
    ],
    ids=["unopened", "decoded", "idempotent", "target"],
)
def test_every_record_is_where_its_range_and_its_sync_say(
    flow: Mirrored, life: Life, judge: JavaJudge, settings: dict[str, str]
) -> None:
    """Whichever way it went, and in however many commits."""
    kinds = EveryKind(flow.topics, random.Random(1))
    kinds.create()
    life.connectors.append(
        flow.connector({"offset-syncs.topic.replication.factor": "1", **settings})
    )
    assert {} == life.run_once()
    for name in kinds.names:
        kinds.write(name, 5)
    assert {} == life.run_once()

    source = contents(flow.topics.bootstrap, kinds.names)
    target = contents(flow.target, [f"A.{name}" for name in kinds.names])
    known = dict[Place, Place]()
    for each in ranges(flow):
        for at in range(each.records):
            place = Place(each.topic, each.partition, each.upstream + at)
            known[place] = Place(f"A.{each.topic}", each.partition, each.downstream + at)
    assert source.keys() == known.keys()
    assert target.keys() == set(known.values())
    assert all(source[place] == target[remote] for place, remote in known.items())

    at_target = settings.get("offset-syncs.topic.location") == "target"
    where = (
        (flow.target, SYNCS_AT_TARGET) if at_target else (flow.topics.bootstrap, SYNCS_AT_SOURCE)
    )
    synced = syncs(judge, flow, *where)
    assert {(each.topic, each.partition) for each in source} == {
        (place.topic, place.partition) for place, _ in synced
    }
    assert all(known[place].offset == downstream for place, downstream in synced)
    newest = {(place.topic, place.partition): place.offset for place, _ in synced}
    assert newest == {key: max(each.offset for each in source if each[:2] == key) for key in newest}


def test_neither_is_written_where_they_are_switched_off(flow: Mirrored, life: Life) -> None:
    """Records are, as always."""
    topic = flow.topics.create("t")
    flow.topics.write(topic, 5)
    off = {"emit.offset-syncs.enabled": "false", "mirror.offset.ranges.enabled": "false"}
    life.connectors.append(flow.connector(off))

    assert {} == life.run_once()

    assert flow.is_through([topic])
    assert [] == [*ranges(flow)]


def test_a_source_on_which_no_topic_can_be_created_is_copied(
    flow: Mirrored, life: Life, caplog: pytest.LogCaptureFixture
) -> None:
    """With a warning: only MirrorMaker's readers miss them."""
    topic = flow.topics.create("t")
    flow.topics.write(topic, 5)
    impossible = {"offset-syncs.topic.replication.factor": "7", "target.cluster.alias": "C"}
    life.connectors.append(flow.connector(impossible))

    assert {} == life.run_once()

    assert flow.is_through([topic])
    assert "mm2-offset-syncs.C.internal" not in flow.topics.admin.list_topics(timeout=10).topics
    [told] = [each for each in caplog.messages if "mm2-offset-syncs.C.internal" in each]
    assert "offset-syncs.topic.replication.factor, 7" in told
