"""Where a query's batches begin and end: what the edge cases of FLIP-288 are with Spark's checkpoints. No broker, no session."""

from __future__ import annotations

import json
import pickle
import time

import pytest

from discovery.cluster_double import T0, T1, T2, T3, ClusterDouble, Log, Source
from headrace.connect.errors import ConnectError, RetriableError, TaskFailedError
from headrace.discovery.enumerator import DiscoveryPolicies, PartitionLossError
from headrace.discovery.offsets_initializer import LatestOffsets, SpecifiedOffsets
from headrace.discovery.state import Status
from headrace.kafka.deadline import Deadline
from headrace.kafka.topic_partition import TopicPartition
from headrace.spark.kafka import stream
from headrace.spark.kafka.bounded import bounded_ranges
from headrace.spark.kafka.reading import DataLossError, KafkaInputPartition
from spark.kafka.query_double import EVERY_TRIGGER, Query

LATEST = {"startingOffsets": "latest"}
CONTINUING = {"failOnDataLoss": "false"}
MODES = (
    {"startingOffsets": "earliest"},
    LATEST,
    {"startingTimestamp": "1000000000000000"},
    {"startingOffsets": '{"t":{"1":3}}'},
)
P0 = TopicPartition("p", 0)

Range = tuple[TopicPartition, int, int]


def read(query: Query, *, crash: bool = False) -> list[Range]:
    """What the next trigger reads."""
    return [(each.place, each.start, each.end) for each in query.trigger(crash=crash)]


def every(options: dict[str, str] | None = None) -> dict[str, str]:
    """*options*, and a discovery at every trigger."""
    return EVERY_TRIGGER | (options or {})


def pattern(options: dict[str, str] | None = None) -> dict[str, str]:
    """Topics that begin with ``p``, discovered at every trigger."""
    return every({"subscribePattern": "p.*"} | (options or {}))


# Where partitions begin.


def test_e01_latest_is_fixed_by_the_first_trigger():
    """The first batch reads nothing, and its offset says where the next one begins."""
    query = Query(ClusterDouble.of(Log(0, 100)), LATEST)
    assert [] == read(query)
    query.cluster.topics["t"][0].end = 150
    query.restart()

    assert [(T0, 100, 150)] == read(query)


@pytest.mark.parametrize("mode", MODES, ids=str)
def test_e02_a_partition_that_was_added_is_read_from_its_beginning(mode: dict[str, str]):
    """In the batch that finds it, and on from there in the next."""
    query = Query(ClusterDouble.of(Log(0, 100)), every(mode))
    read(query)
    query.cluster.add(Log(0, 7))

    assert [(T1, 0, 7)] == read(query)
    query.cluster.topics["t"][1].end = 9
    assert [(T1, 7, 9)] == read(query)


def test_e05_a_query_that_has_stored_nothing_begins_anew():
    """Its first trigger failed, so that the next process is the first."""
    query = Query(ClusterDouble.of(Log(0, 100)), LATEST)
    query.cluster.offset_failures.append(RetriableError("away"))
    with pytest.raises(RetriableError, match="away"):
        query.trigger()
    query.cluster.topics["t"][0].end = 150
    query.restart()
    read(query)

    assert 150 == query.state().partitions[T0].position


@pytest.mark.parametrize("restarts", [0, 1], ids=["e06", "e07"])
def test_e06_e07_a_topic_after_an_empty_first_match_is_read_from_its_beginning(restarts: int):
    """Flink 5.0 takes it for an initial one, and loses these records; the flag is in the offset, so a restart knows, too."""
    query = Query(ClusterDouble(), pattern(LATEST))
    assert [] == read(query)
    assert query.state().initial_discovery_finished
    for _ in range(restarts):
        query.restart()
    query.cluster.create("p", Log(0, 5))

    assert [(P0, 0, 5)] == read(query)


def test_e08_a_start_is_not_resolved_again_when_the_first_batch_has_crashed():
    """Fifty records arrive while the query is down."""
    query = Query(ClusterDouble.of(Log(0, 100)), LATEST)
    assert [] == read(query, crash=True)
    query.cluster.topics["t"][0].end = 150

    assert [] == read(query)
    assert [(T0, 100, 150)] == read(query)


def test_e09_a_new_partition_stays_new_when_its_batch_has_crashed():
    """It is in the offset that Spark has logged, and read once for good."""
    query = Query(ClusterDouble.of(Log(0, 100)), every(LATEST))
    read(query)
    query.cluster.add(Log(0, 7))
    assert [(T1, 0, 7)] == read(query, crash=True)
    query.cluster.topics["t"][1].end = 20

    assert [(T1, 0, 7)] == read(query)
    assert [(T1, 7, 20)] == read(query)


@pytest.mark.parametrize("mode", MODES, ids=str)
def test_e10_a_partition_that_was_added_while_the_query_was_down_is_new(mode: dict[str, str]):
    """The first trigger of a process discovers, however long the interval is."""
    query = Query(ClusterDouble.of(Log(0, 100)), dict(mode))
    read(query)
    query.cluster.add(Log(0, 7))
    query.restart()

    assert [(T1, 0, 7)] == read(query)


def test_e11_a_topic_that_was_added_to_the_list_is_new():
    """Its records were there before the query knew of it."""
    query = Query(ClusterDouble.of(Log(0, 100)), dict(LATEST))
    query.cluster.create("u", Log(0, 30))
    read(query)
    query.restart(subscribe="t,u")

    assert [(TopicPartition("u", 0), 0, 30)] == read(query)


def test_e12_a_topic_that_left_the_list_is_not_read_and_resumes_when_it_returns():
    """Flink reads it on, Spark forgets it; its position is kept here."""
    query = Query(ClusterDouble.of(Log(0, 100)))
    query.cluster.create("u", Log(0, 30))
    query.restart(subscribe="t,u")
    read(query)
    query.restart(subscribe="t")
    for topic in "tu":
        query.cluster.topics[topic][0].end += 10
    assert [(T0, 100, 110)] == read(query)
    query.restart()
    assert [] == read(query)
    query.restart(subscribe="t,u")

    assert [(TopicPartition("u", 0), 30, 40)] == read(query)


def test_e21_an_offset_specified_for_a_later_partition_does_not_count():
    """Partition 1 is found later, and its beginning is at 0."""
    query = Query(
        ClusterDouble.of(Log(0, 100)), every({"startingOffsets": '{"t":{"0":90,"1":10}}'})
    )
    assert [(T0, 90, 100)] == read(query)
    query.cluster.add(Log(0, 15))

    assert [(T1, 0, 15)] == read(query)


# Topics that go, return, and are created again.


def test_e32_a_listed_topic_that_is_deleted_fails_by_default_and_by_option_not():
    """The others are read on."""
    query = Query(ClusterDouble.of(Log(0, 9)), every({"subscribe": "t,u"}))
    query.cluster.create("u", Log(0, 30))
    read(query)
    query.cluster.delete("u")
    query.cluster.topics["t"][0].end = 12
    with pytest.raises(PartitionLossError, match=r"u.*not on the brokers any more"):
        query.trigger()
    query.restart(failOnDataLoss="false")

    assert [(T0, 9, 12)] == read(query)
    assert Status.REMOVED is query.state().partitions[TopicPartition("u", 0)].status


def test_e33_a_topic_of_a_pattern_that_is_deleted_does_not_fail_the_others():
    """Its position is kept."""
    query = Query(ClusterDouble(), pattern())
    query.cluster.create("p", Log(0, 5))
    query.cluster.create("p2", Log(0, 3))
    read(query)
    query.cluster.delete("p")
    query.cluster.topics["p2"][0].end = 4

    assert [(TopicPartition("p2", 0), 3, 4)] == read(query)
    assert 5 == query.state().partitions[P0].position


@pytest.mark.parametrize(("case", "length"), [("e34", 30), ("e35", 150)])
def test_e34_e35_a_topic_that_was_created_again_fails_by_default(case: str, length: int):
    """Spark's own source takes the shorter one for data loss, and with the longer one loses records silently."""
    query = Query(ClusterDouble.of(Log(0, 100)), every())
    read(query)
    query.cluster.create("t", Log(0, length))

    with pytest.raises(PartitionLossError, match="topic t was deleted and created again"):
        query.trigger()
    assert case


@pytest.mark.parametrize(("case", "length"), [("e34", 30), ("e35", 150)])
def test_e34_e35_a_topic_that_was_created_again_is_read_from_its_beginning_by_option(
    case: str, length: int
):
    """With failOnDataLoss=false; planned again it is the same."""
    query = Query(ClusterDouble.of(Log(0, 100)), every(CONTINUING))
    read(query)
    query.cluster.create("t", Log(0, length))

    assert [(T0, 0, length)] == read(query, crash=True)
    assert [(T0, 0, length)] == read(query)
    assert [] == read(query)
    assert case


def test_e34_a_shorter_topic_is_known_by_its_id_also_between_discoveries():
    """That the end is lower than the position has a discovery made before anything is called lost."""
    query = Query(ClusterDouble.of(Log(0, 100)))
    read(query)
    query.cluster.create("t", Log(0, 30))
    with pytest.raises(PartitionLossError, match="topic t was deleted and created again"):
        query.trigger()
    query.restart(failOnDataLoss="false")

    assert [(T0, 0, 30)] == read(query)


def test_e35_the_position_is_kept_where_that_is_the_policy():
    """Whoever fills the new topic as the old one was wants to go on."""
    query = Query(
        ClusterDouble.of(Log(0, 100)), every({"partition.discovery.on.recreated": "continue"})
    )
    read(query)
    query.cluster.create("t", Log(0, 150))

    assert [(T0, 100, 150)] == read(query)


def test_e36_partitions_that_the_new_topic_has_not_are_forgotten():
    """And are new if it grows."""
    query = Query(ClusterDouble.of(Log(0, 9), Log(0, 9)), every(CONTINUING))
    read(query)
    query.cluster.create("t", Log(0, 3))
    assert [(T0, 0, 3)] == read(query)
    query.cluster.add(Log(0, 2))

    assert [(T1, 0, 2)] == read(query)


def test_e37_a_partition_that_one_answer_leaves_out_is_read_on():
    """Spark's own source reads it again from its beginning, or fails."""
    query = Query(ClusterDouble.of(Log(0, 9), Log(0, 9)), every())
    read(query)
    query.cluster.hidden = {T1}
    query.cluster.topics["t"][1].end = 12

    assert [(T1, 9, 12)] == read(query)
    assert [] == read(query)


def test_a_topic_whose_brokers_are_upgraded_is_read_on():
    """It had no id before, and has one now."""
    query = Query(ClusterDouble.of(Log(0, 100), Log(0, 9)), every())
    topic_id = query.cluster.ids.pop("t")
    read(query)
    query.cluster.ids["t"] = topic_id
    query.cluster.topics["t"][0].end = 120

    assert [(T0, 100, 120)] == read(query)


def test_a_topic_that_returns_under_its_id_is_read_on_where_it_was():
    """As when the rights to see it were taken and given again."""
    query = Query(ClusterDouble(), pattern())
    query.cluster.create("p", Log(0, 5))
    query.cluster.create("p2", Log(0, 5))
    read(query)
    log, topic_id = query.cluster.topics["p"], query.cluster.ids["p"]
    query.cluster.delete("p")
    read(query)
    log[0].end = 8
    query.cluster.topics["p"], query.cluster.ids["p"] = log, topic_id

    assert [(P0, 5, 8)] == read(query, crash=True)
    assert [(P0, 5, 8)] == read(query)


# Failures that pass.


def test_e40_known_partitions_are_read_while_discovery_fails():
    """Counted, and found at a later trigger."""
    query = Query(ClusterDouble.of(Log(0, 5)), every())
    read(query)
    query.cluster.add(Log(0, 7))
    query.cluster.topics["t"][0].end = 6
    query.cluster.metadata_failures.append(RetriableError("away"))
    assert [(T0, 5, 6)] == read(query)
    report = query.report()
    assert report is not None
    assert 1 == report["discovery"]["consecutive_failures"]

    assert [(T1, 0, 7)] == read(query)


def test_e40_discoveries_that_fail_on_and_on_are_an_error():
    """As many as the setting says."""
    query = Query(ClusterDouble.of(Log()), every({"partition.discovery.max.failures": "2"}))
    read(query)
    query.cluster.metadata_failures += [RetriableError("away"), RetriableError("still away")]
    assert [] == query.trigger()
    query.clock.now += 1

    with pytest.raises(TaskFailedError, match="2 times in a row; last: still away"):
        query.trigger()


def test_e42_a_partition_without_a_leader_waits_and_the_others_do_not():
    """Whether it has none when it is found, or when its end is asked for."""
    query = Query(ClusterDouble.of(Log(0, 5), Log(0, 4, leader=None)), every(LATEST))
    read(query)
    first, second = query.cluster.topics["t"].values()
    first.end, second.leader, second.end = 6, 1, 9
    assert [(T0, 5, 6)] == read(query)
    second.end, second.is_unavailable, first.end = 11, True, 8
    assert [(T0, 6, 8)] == read(query)
    second.is_unavailable = False

    assert [(T1, 9, 11)] == read(query)


def test_partitions_that_stop_to_answer_one_after_the_other_do_not_fail_a_trigger(
    monkeypatch: pytest.MonkeyPatch,
):
    """The leader of the second is lost while the others are asked without the first."""
    query = Query(ClusterDouble.of(Log(0, 5), Log(0, 5), Log(0, 5)))
    read(query)
    logs = query.cluster.topics["t"]
    logs[0].is_unavailable = True
    logs[2].end = 7
    listed = query.cluster.list_offsets

    def losing(*asked: object, **more: object) -> object:
        answer = listed(*asked, **more)  # pyright: ignore[reportArgumentType]
        logs[1].is_unavailable = True
        return answer

    monkeypatch.setattr(query.cluster, "list_offsets", losing)

    assert [(T2, 5, 7)] == read(query)


def test_e49_without_an_interval_later_partitions_are_never_read():
    """In one process; a restart discovers once."""
    query = Query(ClusterDouble.of(Log(0, 5)), {"partition.discovery.interval.ms": "0"})
    read(query)
    query.cluster.add(Log(0, 7))
    query.clock.now += 10**6

    assert [] == read(query)


# Logs that have lost something, and ends that are not where they seem to be.


def test_a_log_that_has_become_shorter_fails_by_default_with_the_range():
    """Its brokers have elected a leader without the last records."""
    query = Query(ClusterDouble.of(Log(0, 100)))
    read(query)
    query.cluster.topics["t"][0].end = 60

    with pytest.raises(DataLossError, match=r"t-0 ends at offset 60.*up to 100.*failOnDataLoss"):
        query.trigger()


def test_a_log_that_has_become_shorter_is_read_on_at_its_end_by_option():
    """The records that are written there are other ones."""
    query = Query(ClusterDouble.of(Log(0, 100)), dict(CONTINUING))
    read(query)
    query.cluster.topics["t"][0].end = 60
    assert [] == read(query)
    query.cluster.topics["t"][0].end = 75

    assert [(T0, 60, 75)] == read(query)


def test_e65_latest_and_the_ends_of_batches_are_before_open_transactions():
    """Flink begins at the high watermark, and loses the transaction's records when it is committed."""
    query = Query(ClusterDouble.of(Log(0, 100, stable=80)), dict(LATEST))
    assert [] == read(query)
    query.cluster.topics["t"][0].stable = None

    assert [(T0, 80, 100)] == read(query)


def test_a_start_behind_an_open_transaction_is_waited_for_and_is_no_loss():
    """A specified or committed offset may be there: it is in the log."""
    query = Query(ClusterDouble.of(Log(0, 100, stable=80)), {"startingOffsets": '{"t":{"0":90}}'})
    assert [] == read(query)
    assert [] == read(query)
    query.cluster.topics["t"][0].stable = None

    assert [(T0, 90, 100)] == read(query)


def test_an_end_that_one_answer_has_too_low_is_asked_for_again(monkeypatch: pytest.MonkeyPatch):
    """As of a leader that was elected a moment ago (KAFKA-7703)."""
    query = Query(ClusterDouble.of(Log(0, 100)))
    read(query)
    log = query.cluster.topics["t"][0]
    answers = iter([60, 60])
    listed = query.cluster.list_offsets

    def late(*asked: object, **more: object) -> object:
        log.end = next(answers, 110)
        return listed(*asked, **more)  # pyright: ignore[reportArgumentType]

    monkeypatch.setattr(query.cluster, "list_offsets", late)
    began = query.clock.now
    assert [] == read(query)
    assert query.clock.now - began == pytest.approx(0.1)

    assert [(T0, 100, 110)] == read(query)


def test_e66_the_first_batch_planned_again_begins_where_it_began():
    """Spark asks for the initial offset again, and ten records have been written meanwhile."""
    query = Query(ClusterDouble.of(Log(0, 100)), LATEST | {"startingOffsets": '{"t":{"0":40}}'})
    first = query.trigger(crash=True)
    query.cluster.topics["t"][0].end = 110

    assert [(T0, 40, 100)] == [each[:3] for each in first]
    assert first == query.planned()
    assert first == query.trigger()


def test_e67_a_new_partition_planned_again_begins_where_its_log_began():
    """Retention has moved the beginning since, which reading will tell; no record is passed without a word."""
    query = Query(ClusterDouble.of(Log(0, 9)), every())
    read(query)
    query.cluster.add(Log(0, 7))
    assert [(T1, 0, 7)] == read(query, crash=True)
    query.cluster.topics["t"][1].start = 4

    assert [(T1, 0, 7)] == read(query)


# How much a batch reads.


def test_a_limit_is_shared_by_backlog_and_new_partitions_have_their_share():
    """Every one makes progress in every batch."""
    query = Query(ClusterDouble.of(Log(0, 900)), every({"maxOffsetsPerTrigger": "100"}))
    assert [(T0, 0, 100)] == read(query)
    query.cluster.add(Log(0, 800), Log(0, 2))

    (_, _, first), (_, begin, second), third = read(query)
    assert (T2, 0, 1) == third
    assert 0 == begin
    assert 100 == first - 100 + second + 1
    assert abs(first - 100 - second) <= 1


def test_a_limit_for_each_partition():
    """Together with the one for all."""
    query = Query(ClusterDouble.of(Log(0, 90), Log(0, 3)), {"maxOffsetsPerPartition": "10"})
    assert [(T0, 0, 10), (T1, 0, 3)] == read(query)
    query.restart(maxOffsetsPerTrigger="4")

    assert [(T0, 10, 14)] == read(query)


def test_a_batch_waits_for_its_least_size_or_until_the_delay_is_over():
    """The delay begins anew with each batch; the first one of a process does not wait, as with Spark's own source."""
    query = Query(
        ClusterDouble.of(Log(0, 1)),
        {"minOffsetsPerTrigger": "10", "maxTriggerDelay": "60s"},
    )
    assert [(T0, 0, 1)] == read(query)
    query.cluster.topics["t"][0].end = 5
    assert [] == read(query)
    query.clock.now += 58
    assert [] == read(query)
    query.clock.now += 2
    assert [(T0, 1, 5)] == read(query)
    query.cluster.topics["t"][0].end = 7
    assert [] == read(query)
    query.cluster.topics["t"][0].end = 15
    assert [(T0, 5, 15)] == read(query)


def test_a_start_is_fixed_also_while_a_batch_waits_for_its_least_size():
    """Of a partition that is found while it waits, too: what is written later is more of it."""
    query = Query(ClusterDouble.of(Log(0, 5)), every({"minOffsetsPerTrigger": "10"}))
    read(query)
    query.cluster.add(Log(0, 4))
    assert [] == read(query)
    query.cluster.topics["t"][1].start = 2
    query.cluster.topics["t"][1].end = 15

    assert [(T1, 0, 15)] == read(query)


def test_nothing_new_is_the_very_same_offset():
    """Spark compares texts: another one would be a batch."""
    query = Query(ClusterDouble.of(Log(0, 5), Log()), every())
    read(query)
    for _ in range(3):
        assert [] == read(query)
    query.restart()
    assert [] == read(query)

    assert 1 == len(query.ends)


# Trigger.AvailableNow.


def test_available_now_ends_where_the_logs_ended_at_its_first_trigger():
    """However many batches it takes, and whatever is added meanwhile."""
    query = Query(ClusterDouble.of(Log(0, 25)), every({"maxOffsetsPerTrigger": "10"}))
    query.restart(available_now=True)
    assert [(T0, 0, 10)] == read(query)
    query.cluster.topics["t"][0].end = 100
    query.cluster.add(Log(0, 5))
    assert [(T0, 10, 20)] == read(query)
    assert [(T0, 20, 25)] == read(query)
    assert [] == read(query)


def test_available_now_after_a_crash_with_more_partitions():
    """The batch that had crashed is planned as it was, then the target is taken (SPARK-53560: Spark's own source fails)."""
    query = Query(ClusterDouble.of(Log(0, 25)), {"maxOffsetsPerTrigger": "10"})
    query.restart(available_now=True)
    assert [(T0, 0, 10)] == read(query, crash=True)
    query.cluster.add(Log(0, 5))
    query.restart(available_now=True)

    assert [(T0, 0, 10)] == read(query)
    assert 10 == sum(end - start for _, start, end in read(query))
    assert 10 == sum(end - start for _, start, end in read(query))
    assert [] == read(query)


def test_available_now_does_not_wait_for_a_least_size():
    """It would have to end without it."""
    query = Query(ClusterDouble.of(Log(0, 5)), {"minOffsetsPerTrigger": "10"})
    query.restart(available_now=True)

    assert [(T0, 0, 5)] == read(query)


def test_available_now_without_anything_to_read_asks_once():
    """A target of nothing is a target."""
    query = Query(ClusterDouble(), pattern())
    query.restart(available_now=True)
    assert [] == read(query)
    query.cluster.create("p", Log(0, 5))

    assert [] == read(query)


def test_available_now_does_not_leave_out_a_partition_without_a_leader():
    """It would look as if there were no records; with a leader it is read."""
    query = Query(ClusterDouble.of(Log(0, 5), Log(0, 7, leader=None)))
    query.restart(available_now=True)
    with pytest.raises(RetriableError, match=r"t-1 has no leader.*availableNow.*Check"):
        query.trigger()
    query.cluster.topics["t"][1].leader = 1
    query.restart(available_now=True)

    assert [(T0, 0, 5), (T1, 0, 7)] == read(query)


def test_available_now_does_not_leave_out_a_partition_whose_leader_does_not_answer():
    """One that has been read before."""
    query = Query(ClusterDouble.of(Log(0, 5), Log(0, 7)))
    read(query)
    for log in query.cluster.topics["t"].values():
        log.end, log.is_unavailable = 9, True
    query.cluster.topics["t"][0].is_unavailable = False
    query.restart(available_now=True)

    with pytest.raises(RetriableError, match=r"do not say where t-1 ends now.*Check the brokers"):
        query.trigger()


def test_available_now_discovers_again_when_that_has_failed():
    """The partition that was added while the query was down is there, too."""
    query = Query(ClusterDouble.of(Log(0, 5)))
    read(query)
    query.cluster.add(Log(0, 7))
    query.cluster.metadata_failures.append(RetriableError("away"))
    query.restart(available_now=True)

    assert [(T1, 0, 7)] == read(query)
    query.cluster.metadata_failures += [RetriableError("away")] * 10
    query.restart(available_now=True, **{"kafka.default.api.timeout.ms": "30000"})
    began = query.clock.now
    with pytest.raises(RetriableError, match=r"Discovery failed: away.*availableNow"):
        query.trigger()
    assert 30 <= query.clock.now - began < 32


# A bounded read.


def bounded(cluster: ClusterDouble, **more: object) -> list[Range]:
    """What ``spark.read`` plans."""
    source = Source(cluster, stopping=LatestOffsets(), bounded=True, **more)  # pyright: ignore[reportArgumentType]
    planned = bounded_ranges(source.discoverer, DiscoveryPolicies(), Deadline.after(0))
    return [(each.place, each.start, each.end) for each in planned]


def test_e51_e54_a_bounded_read_is_what_is_there_and_empty_partitions_are_no_task():
    """Spark plans it when the query is executed."""
    assert [(T0, 0, 9), (T3, 4, 6)] == bounded(
        ClusterDouble.of(Log(0, 9), Log(), Log(5, 5), Log(4, 6))
    )


def test_e53_a_bounded_read_of_a_topic_without_records_ends_at_once():
    """Flink's never ends."""
    assert [] == bounded(ClusterDouble.of(Log()))


def test_a_bounded_read_does_not_leave_out_a_partition_without_a_leader():
    """It would look as if there were no records."""
    with pytest.raises(RetriableError, match=r"t-1 has no leader.*incomplete"):
        bounded(ClusterDouble.of(Log(0, 9), Log(0, 9, leader=None)))


# What Spark's tasks get, and what it costs.


def test_e54_an_empty_partition_is_no_task():
    """Nor one that has been read to its end."""
    query = Query(ClusterDouble.of(Log(0, 9), Log(), Log(5, 5)))

    assert [(T0, 0, 9)] == read(query)


def test_e60_a_task_that_is_tried_again_reads_the_same():
    """What it reads crosses to the executor with it."""
    query = Query(ClusterDouble.of(Log(0, 9)))
    (first,) = query.trigger(crash=True)
    (task,) = query.tasks()

    again = pickle.loads(pickle.dumps(task))
    assert isinstance(again, KafkaInputPartition)
    assert (first,) == again.ranges
    assert query.cluster.ids["t"] == first.topic_id


def test_planning_asks_no_broker():
    """It may happen in another process, when the brokers know other partitions."""
    query = Query(ClusterDouble.of(Log(0, 9), Log(3, 9)))
    first = query.trigger(crash=True)
    query.cluster.asked.clear()
    query.cluster.create("t", Log(0, 1))

    assert first == query.planned()
    assert [] == query.cluster.asked


def test_ten_thousand_partitions_are_one_offset_of_150_kilobytes():
    """A trigger, with its discovery and its plan, takes less than a second of a core, and asks twice."""
    logs = [Log(0, 10**9 + number) for number in range(10_000)]
    query = Query(ClusterDouble.of(*logs), every({"maxOffsetsPerTrigger": "100000000"}))
    query.trigger()
    query.cluster.asked.clear()
    began = time.process_time()
    planned = query.trigger()
    spent = time.process_time() - began

    assert 10_000 == len(planned)
    assert ["metadata", "offsets"] == query.cluster.asked
    assert len(query.ends[-1]) < 200_000
    assert spent < 2.0


def test_ten_thousand_partitions_of_which_few_have_records_are_few_tasks():
    """What has nothing to read costs no task."""
    query = Query(ClusterDouble.of(*[Log(0, int(number % 100 == 0)) for number in range(10_000)]))
    read_ranges = query.trigger(crash=True)

    assert 100 == len(read_ranges)
    assert len(query.tasks()) <= 100


def test_positions_of_removed_partitions_are_not_committed(monkeypatch: pytest.MonkeyPatch):
    """The brokers would refuse them, and with them all others."""
    query = Query(
        ClusterDouble.of(Log(0, 9)), every({"subscribe": "t,u", "kafka.group.id": "g"} | CONTINUING)
    )
    committed = dict[TopicPartition, int]()

    class Group:
        def commit_offsets(self, group: str, offsets: dict[TopicPartition, int], _: object) -> None:
            assert "g" == group
            committed.update(offsets)

    monkeypatch.setattr(stream, "connected", lambda _: Group())
    query.cluster.create("u", Log(0, 30))
    read(query)
    query.cluster.delete("u")
    read(query)
    query.restart()
    committed.clear()
    read(query)

    assert {T0: 9} == committed


def test_a_failed_commit_is_logged_and_harms_nothing(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    """It is for tools that show lags."""
    query = Query(ClusterDouble.of(Log(0, 9)), {"kafka.group.id": "g"})
    read(query)

    class Group:
        def commit_offsets(self, *_: object) -> None:
            raise ConnectError("The coordinator is away.")

    monkeypatch.setattr(stream, "connected", lambda _: Group())
    query.commit()

    assert "could not be committed to the group 'g': The coordinator is away." in caplog.text


def test_a_failed_commit_is_made_up_for_also_when_nothing_new_comes(
    monkeypatch: pytest.MonkeyPatch,
):
    """After a pause: a coordinator that is away does not hold up every trigger."""
    query = Query(ClusterDouble.of(Log(0, 9)), {"kafka.group.id": "g"})
    answers = iter([ConnectError("The coordinator is away.")])
    asked = list[object]()

    class Group:
        def commit_offsets(self, *of: object) -> None:
            asked.append(of[1])
            for error in answers:
                raise error

    now = [1_000.0]
    monkeypatch.setattr(stream, "connected", lambda _: Group())
    monkeypatch.setattr(stream.time, "monotonic", lambda: now[0])
    read(query)
    read(query)
    read(query)
    assert [{T0: 9}] == asked
    now[0] += 31
    read(query)
    read(query)

    assert [{T0: 9}, {T0: 9}] == asked


def test_a_checkpoint_of_sparks_own_source_is_told_from_a_damaged_one():
    """With what is to be done: its offsets are a start for another query."""
    query = Query(ClusterDouble.of(Log(0, 5)))
    query.ends, query.committed = ['{"t":{"0":3,"1":7}}'], 1

    with pytest.raises(TaskFailedError, match=r'startingOffsets to .*: \{"t":\{"0":3,"1":7\}\}$'):
        query.trigger()
    query.ends = [json.dumps({"t": dict.fromkeys(map(str, range(1000)), 3)})]
    with pytest.raises(TaskFailedError, match=r"file offsets/N, .* in its commits$"):
        query.trigger()
    query.ends = ['{"t":{"0":"3"}}']
    with pytest.raises(TaskFailedError, match="stored state of the partition discovery"):
        query.trigger()


def test_the_report_says_how_far_behind_a_query_is():
    """Against the ends that its last trigger has seen."""
    query = Query(ClusterDouble.of(Log(0, 90), Log(0, 10)), {"maxOffsetsPerTrigger": "20"})
    assert query.report() is None
    read(query)

    report = query.report()
    assert report is not None
    assert {"t": {"0": 90, "1": 10}} == report["topics"]
    assert 80 == report["offsetsBehindLatest"]["total"]
    assert 2 == report["discovery"]["known"]


def test_a_bounded_read_that_begins_after_its_end_is_told(caplog: pytest.LogCaptureFixture):
    """Nothing is read of that partition."""
    starting = SpecifiedOffsets({T0: 8})
    cluster = ClusterDouble.of(Log(0, 9, stable=5), Log(0, 3))

    assert [(T1, 0, 3)] == bounded(cluster, starting=starting, group_id=None)
    assert any(
        "nothing is read of: t-0 from 8 to before 5" in each.message for each in caplog.records
    )
