"""How far a flow is, from what its two clusters answer."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from uuid import UUID

import pytest

from doubles.scripted_broker import OffsetFetchResponse, ScriptedCluster, record_batch
from headrace.connect.group_offsets import GroupEntry
from headrace.connect.partition import SourceOffset, SourcePartition
from headrace.kafka.batches.headers import DELETE_HORIZON, LOG_APPEND_TIME, BatchHeader
from headrace.kafka.topic_partition import TopicPartition
from headrace.kafka.wire.cluster import PartitionMetadata, TopicMetadata
from headrace.kafka.wire.fetcher import FetchedRecords
from headrace.mirror.flow_status import (
    FirstBatch,
    FlowReader,
    FlowStatus,
    PartitionStatus,
    RemoteState,
    SourceState,
    StoredState,
    first_batch,
    former_positions,
    partition_statuses,
)
from headrace.mirror.formats import OffsetRange
from headrace.mirror.positions import DISCOVERED, Flow, MirrorOffsetCodec, Position
from headrace.mirror.settings import MirrorSourceConfig
from record_batches import Row, batch

PROPS = {
    "name": "m",
    "source.cluster.alias": "A",
    "target.cluster.alias": "B",
    "source.cluster.bootstrap.servers": "127.0.0.1:9",
    "target.cluster.bootstrap.servers": "127.0.0.1:9",
}
CONFIG = MirrorSourceConfig.parse(PROPS)
FLOW = Flow("A", "B")
CODEC = MirrorOffsetCodec(PROPS)
PLACE = TopicPartition("t", 0)
TOPIC_ID, OTHER_ID = UUID(int=1), UUID(int=2)


def source(begin: int = 0, end: int = 10, **topics: UUID) -> SourceState:
    """One with these offsets in each of its partitions; by default of one topic."""
    ids = topics or {"t": TOPIC_ID}
    return SourceState(
        cluster_id="one",
        topics={
            name: TopicMetadata(name, number, False, None, {0: PartitionMetadata(0, 1, 0, None)})
            for name, number in ids.items()
        },
        beginnings=dict.fromkeys((TopicPartition(each, 0) for each in ids), begin),
        ends=dict.fromkeys((TopicPartition(each, 0) for each in ids), end),
    )


def stored(*entries: GroupEntry, at: int | None = None, **position: object) -> StoredState:
    """What the group has: *entries*, and a position."""
    if at is not None:
        offset = Position(at, **position).offset  # type: ignore[arg-type]
        entries = (*entries, CODEC.entry(FLOW.partition(PLACE), offset))
    return StoredState.of(CONFIG, entries)


def the_status(one: SourceState | None, other: StoredState | None) -> PartitionStatus:
    """That of the one partition."""
    [found] = partition_statuses(CONFIG, one, other)
    return found


def test_what_lies_between_the_position_and_the_end_is_the_lag():
    """Both are offsets that come next."""
    found = the_status(source(end=10), stored(at=7))
    assert PartitionStatus(PLACE, "A.t", end=10, copied=7, lag=3) == found
    assert 0 == the_status(source(end=10), stored(at=10)).lag


def test_what_has_no_position_is_copied_from_its_beginning():
    """Unless it was there at first, and the flow starts elsewhere; then that is not known here."""
    begins = source(begin=4, end=10)
    assert (None, 6) == the_status(begins, stored())[3:5]
    latest = MirrorSourceConfig.parse({**PROPS, "mirror.start": "latest"})
    [found] = partition_statuses(latest, begins, stored())
    assert found.lag is None
    discovered = CODEC.entry(FLOW.discovery, DISCOVERED)
    [found] = partition_statuses(latest, begins, stored(discovered))
    assert 6 == found.lag


def test_a_position_that_says_that_nothing_is_copied_is_where_the_log_begins():
    """Nothing is lost then."""
    found = the_status(source(begin=4, end=10), stored(at=0))
    assert (6, None) == (found.lag, found.note)
    found = the_status(source(begin=4, end=10), stored(at=0, topic_id=TOPIC_ID))
    assert "4 offsets deleted" in str(found.note)


def test_a_cluster_that_does_not_answer_leaves_its_part_open():
    """The other one's is shown."""
    assert PartitionStatus(PLACE, "A.t", copied=7) == the_status(None, stored(at=7))
    assert PartitionStatus(PLACE, "A.t", end=10) == the_status(source(), None)
    assert [] == partition_statuses(CONFIG, None, None)


@pytest.mark.parametrize(
    ("one", "position", "told"),
    [
        (source(), {"cluster_id": "other"}, "of the cluster with the id other"),
        (source(t=OTHER_ID), {"topic_id": TOPIC_ID}, "deleted and created again"),
        (source(begin=9), {}, "2 offsets deleted before being copied"),
        (source(other=OTHER_ID), {}, "no such topic to copy"),
        (source(), {"cluster_id": "one", "topic_id": TOPIC_ID, "leader_epoch": 0}, None),
    ],
)
def test_what_would_stop_a_flow_is_noted(
    one: SourceState, position: dict[str, object], told: str | None
):
    """Before anyone starts it."""
    note = next(
        each.note
        for each in partition_statuses(CONFIG, one, stored(at=7, **position))
        if each.place == PLACE
    )
    assert told is note if told is None else told in str(note)


@pytest.mark.parametrize("position", [{"topic_id": OTHER_ID}, {"cluster_id": "other"}])
def test_of_another_log_than_that_of_the_position_nothing_is_copied(position: dict[str, object]):
    """All that is there now lags behind, also where the new log is shorter than the old position."""
    found = the_status(source(begin=4, end=150), stored(at=500, **position))
    assert (150, 500, 146) == (found.end, found.copied, found.lag)


@pytest.mark.parametrize(
    ("other", "remote", "told"),
    [
        (stored(at=7), RemoteState({"t"}), "the remote topic is gone from the target"),
        (stored(), RemoteState({"t"}, {"t"}), "the remote topic is gone from the target"),
        (stored(), RemoteState({"t"}, {"u"}), None),
        (stored(), RemoteState({"t"}, None), "whether there was one cannot be read"),
        (stored(), RemoteState({"u"}, {"t", "u"}), None),
    ],
)
def test_a_remote_topic_that_is_gone_is_noted(
    other: StoredState, remote: RemoteState, told: str | None
):
    """Its position goes with it, and then offset ranges say that the topic is no new one."""
    [found] = partition_statuses(CONFIG, source(), other, remote)
    assert told is found.note if told is None else told in str(found.note)


def test_a_position_of_someone_else_is_none():
    """It is said whose it is."""
    foreign = GroupEntry("A.t", 0, 5, "")
    found = the_status(source(), stored(foreign))
    assert (None, None) == (found.copied, found.lag)
    assert found.note == "its position is of another program"


def test_records_wait_since_the_time_of_the_first_one():
    """No time where nothing waits; not below zero where clocks differ."""
    waiting = PartitionStatus(PLACE, "A.t", lag=1, waiting_ms=4_000)
    assert 2.5 == waiting.seconds(6_500)
    assert 0.0 == waiting.seconds(3_000)
    assert 0.0 == waiting._replace(lag=0).seconds(6_500)
    assert waiting._replace(waiting_ms=None).seconds(6_500) is None


def header(last: int, base_ms: int, *, max_ms: int = 99, attributes: int = 0) -> BatchHeader:
    """One of a batch that ends there."""
    return BatchHeader(0, 61, last, 2, 0, attributes, last, base_ms, max_ms, -1, 1)


def fetched(at: int, *headers: BatchHeader) -> FetchedRecords:
    """What was fetched from *at* on."""
    return FetchedRecords(
        place=PLACE,
        fetch_offset=at,
        data=memoryview(b""),
        headers=list(headers),
        next_offset=at + 1,
        aborted=(),
        high_watermark=9,
        last_stable_offset=9,
    )


def test_the_time_is_that_of_the_first_batch_at_or_behind_the_position():
    """The broker's own where it has set one, and the last record's where the base is no time."""
    appended = header(6, 20, attributes=LOG_APPEND_TIME)
    compacted = header(6, 20, attributes=DELETE_HORIZON)
    assert 20 == first_batch(fetched(5, header(4, 10), header(6, 20), header(7, 30))).time_ms
    assert 99 == first_batch(fetched(5, appended)).time_ms
    assert 99 == first_batch(fetched(5, compacted)).time_ms
    assert FirstBatch() == first_batch(fetched(5, header(6, -1)))
    assert FirstBatch() == first_batch(fetched(5))


def test_clusters_that_are_away_are_problems_of_the_flow(monkeypatch: pytest.MonkeyPatch):
    """Each by its alias, within a moment."""
    monkeypatch.setattr("headrace.mirror.flow_status._ANSWER_SECONDS", 0.2)
    reader = FlowReader(CONFIG, {})
    flow, partitions, problems = reader.status()
    reader.close()
    assert ("A->B", []) == (flow, partitions)
    assert ["A", "B"] == [each.partition(":")[0] for each in problems]
    assert all("refused" in each for each in problems)


def test_a_cluster_that_is_silent_does_not_keep_the_other_one_waiting(
    monkeypatch: pytest.MonkeyPatch,
):
    """Both are asked at once: a wrong security protocol may look like this."""
    monkeypatch.setattr("headrace.mirror.flow_status._ANSWER_SECONDS", 2.0)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        servers = f"127.0.0.1:{silent.getsockname()[1]}"
        clusters = {f"{each}.cluster.bootstrap.servers": servers for each in ("source", "target")}
        reader = FlowReader(MirrorSourceConfig.parse({**PROPS, **clusters}), {})
        began = time.monotonic()
        problems = reader.status().problems
        reader.close()

    assert time.monotonic() - began < 3.5
    assert ["A", "B"] == [each.partition(":")[0] for each in problems]
    assert all(f"{servers} (bootstrap.servers) did not answer" in each for each in problems)


def test_before_a_takeover_the_positions_are_those_of_the_workers_topic():
    """And it is said where they come from; what is of another flow is left out."""
    offsets = {
        FLOW.partition(PLACE): {"offset": 6},
        Flow("C", "B").partition(PLACE): {"offset": 1},
        FLOW.discovery: DISCOVERED,
    }
    positions = former_positions(FLOW, offsets)
    found = the_status(source(), replace(stored(), positions=positions, taken_from="mm2-offsets"))

    assert (7, 3) == (found.copied, found.lag)
    assert "the position is that in mm2-offsets, which the first start takes over" == found.note


OFFSET_FETCH = 9
RANGES = "mm2-offset-ranges.A.internal"


@pytest.fixture
def clusters() -> Iterator[tuple[ScriptedCluster, ScriptedCluster]]:
    """A source with a topic of ten records, and a target with the topic of a flow's offset ranges, and no remote topic."""
    ranges = TopicPartition(RANGES, 0)
    with (
        ScriptedCluster(PLACE) as source,
        ScriptedCluster(ranges, versions={OFFSET_FETCH: (0, 7)}) as target,
    ):
        source.bounds[PLACE] = (0, 10)
        source.logs[PLACE] = [(0, 10, batch([Row(each, 5, None, b"v") for each in range(10)]))]
        key, value = OffsetRange("t", 0, 0, 0, 10).encoded()
        target.bounds[ranges] = (0, 1)
        target.logs[ranges] = [(0, 1, batch([Row(0, 5, key, value)]))]
        target.scripts["OffsetFetch"] = committed(FLOW.discovery, DISCOVERED)
        yield source, target


def committed(partition: SourcePartition, offset: SourceOffset) -> OffsetFetchResponse:
    """What a group has with this one entry."""
    entry = CODEC.entry(partition, offset)
    kind = OffsetFetchResponse.OffsetFetchResponseTopic
    part = kind.OffsetFetchResponsePartition(
        partition_index=entry.partition,
        committed_offset=entry.offset,
        committed_leader_epoch=-1,
        metadata=entry.metadata,
        error_code=0,
    )
    return OffsetFetchResponse(topics=[kind(name=entry.topic, partitions=[part])], error_code=0)


def read(source: ScriptedCluster, target: ScriptedCluster, *, times: int = 1) -> FlowStatus:
    """What a reader of these clusters finds the last time."""
    servers = {
        f"{side}.cluster.bootstrap.servers": "{}:{}".format(*each.brokers[1].address)
        for side, each in (("source", source), ("target", target))
    }
    with closing(FlowReader(MirrorSourceConfig.parse({**PROPS, **servers}), {})) as reader:
        return [reader.status() for _ in range(times)][-1]


@pytest.mark.parametrize("times", [1, 2])
def test_a_remote_topic_that_was_deleted_is_told_from_one_that_is_to_be_created(
    clusters: tuple[ScriptedCluster, ScriptedCluster], times: int
):
    """By the offset ranges, which are read on where one looks again."""
    status = read(*clusters, times=times)

    assert not status.problems
    [found] = status.partitions
    assert (None, 10, 5) == (found.copied, found.lag, found.waiting_ms)
    assert "the remote topic is gone from the target" == found.note

    source, target = clusters
    target.bounds[TopicPartition(RANGES, 0)] = (0, 0)
    [found] = read(source, target).partitions
    assert (10, None) == (found.lag, found.note)


@pytest.mark.parametrize(
    ("position", "epoch"),
    [(Position(12), (-1, -1)), (Position(10, leader_epoch=3), (3, 6))],
    ids=["behind the end", "of an older leader"],
)
def test_a_source_that_has_lost_what_was_copied_is_noted(
    clusters: tuple[ScriptedCluster, ScriptedCluster], position: Position, epoch: tuple[int, int]
):
    """After an unclean leader election; what its log has since then is not copied."""
    source, target = clusters
    target.ids["A.t"] = OTHER_ID
    target.scripts["OffsetFetch"] = committed(FLOW.partition(PLACE), position.offset)
    source.epochs[PLACE] = epoch
    status = read(source, target)

    assert not status.problems
    [found] = status.partitions
    kept = 10 if position.leader_epoch is None else 6
    assert (position.next, 10 - kept) == (found.copied, found.lag)
    assert f"the source has lost what was copied from its offset {kept} on" == found.note


def test_brokers_that_do_not_know_the_flows_own_topic_say_nothing_of_remote_ones(
    clusters: tuple[ScriptedCluster, ScriptedCluster],
):
    """Its first discovery is over, so that the topic is there: they have just started, or know no topics yet."""
    source, target = clusters
    target.ids.clear()

    status = read(source, target)

    assert [None] == [each.note for each in status.partitions]
    [problem] = status.problems
    assert f"B: A broker of the target does not know all topics, as {RANGES} is there" in problem


def test_a_batch_that_is_corrupt_is_noted(clusters: tuple[ScriptedCluster, ScriptedCluster]):
    """Where it is the next one."""
    source, target = clusters
    target.ids["A.t"] = OTHER_ID
    target.scripts["OffsetFetch"] = committed(FLOW.partition(PLACE), Position(7).offset)
    source.logs[PLACE] = [(0, 7, record_batch(0, 7)), (7, 10, record_batch(7, 3))]
    [found] = read(source, target).partitions

    assert (7, 3) == (found.copied, found.lag)
    assert "the record batch at offset 7 is corrupt: its checksum" in str(found.note)
