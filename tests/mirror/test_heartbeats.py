"""Heartbeats: when they are sent, and that MirrorMaker's classes read them."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from uuid import uuid4

import pytest
from confluent_kafka.admin import AdminClient

from end_to_end.live import Life
from headrace.broker import Broker
from headrace.connect.errors import OffsetsError, TaskFailedError
from headrace.connect.partition import SourcePartition
from headrace.kafka.client_config import client_config
from headrace.kafka.deadline import Deadline
from headrace.kafka.topic_admin import TopicAdmin
from headrace.mirror.formats import Heartbeat
from headrace.mirror.heartbeat_connector import MirrorHeartbeatConnector, MirrorHeartbeatTask
from headrace.testing.task_runs import LocalConnectorContext, LocalContext, StoredOffsets
from judges.java_judge import JavaJudge
from waiting import until

FLOW = {"name": "h", "source.cluster.alias": "a", "target.cluster.alias": "b"}
PARTITION = SourcePartition({"sourceClusterAlias": "a", "targetClusterAlias": "b"})


@dataclass
class Hours:
    """A clock that only moves when somebody sleeps, or is suspended."""

    at: float = 100.0

    def __call__(self) -> float:
        """Its time, in seconds."""
        return self.at

    def sleep(self, seconds: float) -> None:
        """Let *seconds* pass."""
        self.at += seconds


def _task(hours: Hours, **settings: str) -> MirrorHeartbeatTask:
    props = FLOW | {key.replace("_", "."): value for key, value in settings.items()}
    task = MirrorHeartbeatTask(hours, hours, hours.sleep)
    task.initialize(LocalContext(offsets=StoredOffsets({})))
    task.start(props)
    return task


def _beats(task: MirrorHeartbeatTask, polls: int) -> list[Heartbeat]:
    records = [each for _ in range(polls) for each in task.poll()]
    return [Heartbeat.decoded(each.key, each.value) for each in records]  # type: ignore[arg-type]


def test_a_heartbeat_is_sent_at_once_and_then_at_each_interval():
    """With the time of its sending, in milliseconds."""
    found = _beats(_task(Hours()), 3)

    assert [100_000, 101_000, 102_000] == [each.timestamp_ms for each in found]
    assert {("a", "b")} == {each[:2] for each in found}


def test_it_is_a_record_like_mirrormakers():
    """Topic, partition, and a source partition of the two aliases."""
    [record] = _task(Hours()).poll()

    assert ("heartbeats", 0, 100_000) == (record.topic, record.partition, record.timestamp)
    assert (PARTITION, {"offset": 0}) == (record.source_partition, record.source_offset)


def test_heartbeats_that_were_missed_are_not_sent_later():
    """A process that was suspended goes on at its usual pace."""
    hours = Hours()
    task = _task(hours, emit_heartbeats_interval_seconds="2")
    _beats(task, 1)
    hours.sleep(60)

    found = _beats(task, 4)

    assert [160_000, 162_000] == [each.timestamp_ms for each in found]


def test_a_poll_does_not_wait_for_long_and_the_slot_is_given_back():
    """If heartbeats are far apart."""
    hours = Hours()
    task = _task(hours, emit_heartbeats_interval_seconds="60")
    assert 1 == len(_beats(task, 5))
    assert hours.at == pytest.approx(104)
    assert task.resumes_cheaply()
    assert not _task(hours).resumes_cheaply()


def _connector(hours: Hours, **settings: str) -> MirrorHeartbeatConnector:
    connector = MirrorHeartbeatConnector(hours)
    connector.initialize(LocalConnectorContext(StoredOffsets({})))
    connector.start(FLOW | {key.replace("_", "."): value for key, value in settings.items()})
    return connector


def test_there_is_work_when_the_next_one_is_due():
    """So that no slot is asked for in between."""
    hours, offsets = Hours(), StoredOffsets({})
    connector = _connector(hours, emit_heartbeats_interval_seconds="60")

    assert [True, False] == [connector.has_work(offsets) for _ in range(2)]
    hours.sleep(59)
    assert not connector.has_work(offsets)
    hours.sleep(1)
    assert connector.has_work(offsets)
    assert 1 == len(connector.task_configs(4))


@pytest.mark.parametrize(
    "settings",
    [{"emit_heartbeats_enabled": "false"}, {"emit_heartbeats_interval_seconds": "-1"}],
)
def test_there_are_no_tasks_without_heartbeats(settings: dict[str, str]):
    """And `enabled` makes no difference, as in MirrorMaker."""
    connector = _connector(Hours(), **settings)
    assert [] == [*connector.task_configs(4)]
    assert not connector.has_work(StoredOffsets({}))
    assert 1 == len(_connector(Hours(), enabled="false").task_configs(1))


@pytest.mark.parametrize(
    ("partition", "offset", "said"),
    [
        ({"sourceClusterAlias": "a"}, {"offset": 0}, "missing the 'targetClusterAlias' key"),
        (dict(PARTITION), {"offset": 7}, "the only accepted value is 0"),
        (dict(PARTITION), {}, "missing the 'offset' key"),
    ],
)
def test_offsets_of_other_shapes_are_refused(
    partition: dict[str, str], offset: dict[str, int], said: str
):
    """Removing them is not."""
    connector, place = MirrorHeartbeatConnector(), SourcePartition(partition)
    with pytest.raises(OffsetsError, match=said):
        connector.validate_offsets(FLOW, {place: offset})
    assert connector.alter_offsets(FLOW, {place: None, PARTITION: {"offset": 0}})


def _heartbeats(judge: JavaJudge, life: Life, alias: str) -> list[list[object]]:
    """Those of *alias*, read by MirrorMaker's class."""
    found = list[list[object]]()
    fields = ("sourceClusterAlias", "targetClusterAlias", "timestamp")
    config = {"bootstrap_servers": life.bootstrap, "isolation_level": "read_committed"}
    for each in judge.consumed("heartbeats", **config):
        asked = {"class": "Heartbeat", "fields": fields}
        asked |= {part: base64.b64encode(each[part]).decode() for part in ("key", "value")}
        told = judge.mirrored("read", asked)
        if told["sourceClusterAlias"] == alias:
            found.append([told[name] for name in fields])
    return found


@pytest.mark.broker
def test_mirrormakers_class_reads_what_a_worker_sends(
    bootstrap: str, tmp_path: Path, judge: JavaJudge
):
    """Whatever the worker's converters; the topic is made as MirrorMaker makes it."""
    life = Life(bootstrap, tmp_path)
    alias = f"us-{uuid4().hex[:8]}"
    life.add(
        "org.apache.kafka.connect.mirror.MirrorHeartbeatConnector",
        source_cluster_alias=alias,
        target_cluster_alias="eu",
        heartbeats_topic_replication_factor="1",
    )
    admin = AdminClient({"bootstrap.servers": bootstrap})
    with life.running():
        until(lambda: "heartbeats" in admin.list_topics(timeout=10).topics)
        until(lambda: len(_heartbeats(judge, life, alias)) > 2)

    found = _heartbeats(judge, life, alias)
    assert {(alias, "eu")} == {(source, target) for source, target, _ in found}
    times = [int(str(each[2])) for each in found]
    assert all(900 < after - before < 3000 for before, after in pairwise(times))
    assert 1 == len(admin.list_topics(timeout=10).topics["heartbeats"].partitions)
    topics = TopicAdmin(client_config({"bootstrap.servers": bootstrap}))
    settings = topics.topic_configs(["heartbeats"], Deadline.after(30)).found["heartbeats"]
    assert "compact" == settings["cleanup.policy"].value


@pytest.mark.broker
def test_the_target_has_to_be_the_workers_cluster(bootstrap: str, broker: Broker):
    """Records go where the worker writes, and the topic would be made elsewhere."""
    connector = MirrorHeartbeatConnector()
    elsewhere = {"bootstrap.servers": broker.bootstrap}
    connector.initialize(LocalConnectorContext(StoredOffsets({}), elsewhere))
    with pytest.raises(TaskFailedError, match="and this worker writes to"):
        connector.start(FLOW | {"target.cluster.bootstrap.servers": bootstrap})
