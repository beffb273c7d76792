"""Where partitions start and stop, for every mode and every log."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import pytest

from discovery.cluster_double import T0, T1, ClusterDouble, Log, Source
from headrace.connect.errors import ConfigError, TaskFailedError
from headrace.discovery.discoverer import Subscription
from headrace.discovery.findings import Change
from headrace.discovery.offsets_initializer import (
    COMMITTED,
    EARLIEST,
    LATEST,
    CommittedOffsets,
    EarliestOffsets,
    LatestOffsets,
    OffsetResetStrategy,
    OffsetsInitializer,
    SpecifiedOffsets,
    TimestampOffsets,
)
from headrace.discovery.offsets_retriever import (
    ClusterOffsetsRetriever,
    Offsets,
    PartitionOffsetsRetriever,
    PartitionsUnavailableError,
)
from headrace.discovery.subscribers import TopicListSubscriber
from headrace.kafka.deadline import Deadline
from headrace.kafka.topic_partition import TopicPartition
from headrace.kafka.wire.cluster import IsolationLevel

TO_EARLIEST, TO_LATEST, TO_NONE = (
    OffsetResetStrategy.EARLIEST,
    OffsetResetStrategy.LATEST,
    OffsetResetStrategy.NONE,
)
RESETS = (TO_EARLIEST, TO_LATEST)


def first(
    starting: OffsetsInitializer,
    *logs: Log,
    commits: dict[TopicPartition, int] | None = None,
    group_id: str | None = "g",
) -> dict[TopicPartition, int | None]:
    """Where the partitions of the first discovery start."""
    cluster = ClusterDouble.of(*logs)
    cluster.commits = commits or {}
    return Source(cluster, starting=starting, group_id=group_id).found()


@pytest.mark.parametrize(("count", "named"), [(1, "t-0"), (12, "t-0, .*, t-9 and 2 more")])
def test_partitions_without_an_answer_are_named_and_the_others_counted(count: int, named: str):
    """The few that fit into a sentence."""
    cluster = ClusterDouble.of(*(Log(leader=None) for _ in range(count)))
    retriever = ClusterOffsetsRetriever(cluster=cluster, deadline=Deadline.after(1))

    with pytest.raises(PartitionsUnavailableError, match=rf"for {named} \(LEADER_NOT_AVAILABLE\)"):
        retriever.end_offsets([TopicPartition("t", number) for number in range(count)])


def test_e13_a_specified_offset_within_the_log_is_used():
    """As it is."""
    assert {T0: 10} == first(SpecifiedOffsets({T0: 10}), Log(0, 15))


@pytest.mark.parametrize(("strategy", "start"), [(TO_EARLIEST, 0), (TO_LATEST, 5)])
def test_e14_a_specified_offset_behind_the_end_is_reset(strategy: OffsetResetStrategy, start: int):
    """The reset is logged, once, at the discovery; Flink's reader does it at its first fetch, and says nothing."""
    source = Source(ClusterDouble.of(Log(0, 5)), starting=SpecifiedOffsets({T0: 10}, strategy))

    (finding,) = source.discover().findings

    assert (Change.RESET, {T0: start}) == (finding.change, source.handed_out())
    assert f"0 starts at {start} and not at 10" in finding.sentence


def test_e14_a_specified_offset_behind_the_end_is_an_error_without_a_strategy():
    """It names partition and offset."""
    with pytest.raises(
        TaskFailedError, match=r"not in its log, .*: t-0 at 10 \(its log is from 0 to 5\)\."
    ):
        first(SpecifiedOffsets({T0: 10}, TO_NONE), Log(0, 5))


@pytest.mark.parametrize("strategy", OffsetResetStrategy)
def test_e15_the_end_is_a_valid_start(strategy: OffsetResetStrategy):
    """It waits for the next record."""
    assert {T0: 10} == first(SpecifiedOffsets({T0: 10}, strategy), Log(0, 10))


@pytest.mark.parametrize(("strategy", "start"), [(TO_EARLIEST, 20), (TO_LATEST, 50)])
def test_e16_a_specified_offset_that_retention_has_deleted_is_reset(
    strategy: OffsetResetStrategy, start: int
):
    """As the strategy says."""
    assert {T0: start} == first(SpecifiedOffsets({T0: 3}, strategy), Log(20, 50))


def test_e16_a_specified_offset_that_retention_has_deleted_is_an_error_without_a_strategy():
    """It names partition and offset."""
    with pytest.raises(
        TaskFailedError, match=r"not in its log, .*: t-0 at 3 \(its log is from 20 to 50\)\."
    ):
        first(SpecifiedOffsets({T0: 3}, TO_NONE), Log(20, 50))


def test_e17_an_unspecified_partition_starts_at_the_committed_offset():
    """Of the group."""
    starts = first(SpecifiedOffsets({T0: 10}), Log(0, 15), Log(20, 50), commits={T1: 42})

    assert {T0: 10, T1: 42} == starts


@pytest.mark.parametrize(("strategy", "start"), [(TO_EARLIEST, 20), (TO_LATEST, 50)])
def test_e18_an_unspecified_partition_without_a_commit_is_reset(
    strategy: OffsetResetStrategy, start: int
):
    """As the strategy says."""
    starts = first(SpecifiedOffsets({T0: 10}, strategy), Log(0, 15), Log(20, 50))

    assert {T0: 10, T1: start} == starts


def test_e18_a_reset_says_that_nothing_was_specified_or_committed():
    """There may be no group at all."""
    starting = SpecifiedOffsets({T0: 10}, TO_EARLIEST)
    source = Source(ClusterDouble.of(Log(0, 15), Log(20, 50)), starting=starting, group_id=None)

    (finding,) = source.discover().findings

    assert "neither a specified nor a committed offset: 1 starts at 20" in finding.sentence


def test_e18_an_unspecified_partition_without_a_commit_is_an_error_without_a_strategy():
    """It names the partition."""
    with pytest.raises(
        TaskFailedError, match=r"No offset is committed for t-1, .* set auto\.offset\.reset"
    ):
        first(SpecifiedOffsets({T0: 10}, TO_NONE), Log(0, 15), Log(20, 50))


def test_e19_without_a_strategy_a_commit_is_enough_for_an_unspecified_partition():
    """Flink fails although every unspecified partition has a commit (B6)."""
    starts = first(SpecifiedOffsets({T0: 10}, TO_NONE), Log(0, 15), Log(20, 50), commits={T1: 42})

    assert {T0: 10, T1: 42} == starts


def test_e20_an_unspecified_partition_without_a_group_is_reset_and_no_commit_asked_for():
    """Flink asks for the commits of no group, and fails."""
    cluster = ClusterDouble.of(Log(0, 15), Log(20, 50))
    source = Source(cluster, starting=SpecifiedOffsets({T0: 10}), group_id=None)

    assert ({T0: 10, T1: 20}, False) == (source.found(), "committed" in cluster.asked)


def test_e21_a_specified_offset_is_for_the_first_discovery_only():
    """The partition is found by the second one; the first one warns."""
    cluster = ClusterDouble.of(Log(0, 15))
    source = Source(cluster, starting=SpecifiedOffsets({T1: 10}, TO_LATEST))
    (_, finding) = source.discover().findings
    source.handed_out()
    cluster.add(Log(0, 15))

    assert (Change.UNUSED, "t", (1,)) == finding[:3]
    assert {T1: 0} == source.found()


def test_e22_a_timestamp_starts_at_the_first_record_of_that_time_or_later():
    """Not at the one before."""
    log = Log(0, 5, times={0: 1000, 1: 1500, 2: 2000, 3: 2001, 4: 3000})

    assert {T0: 3} == first(TimestampOffsets(2001), log)


def test_e23_a_timestamp_to_come_starts_at_the_end_before_the_search():
    """What is written during the search is read."""
    log = Log(0, 100)

    class Growing(ClusterDouble):
        def list_offsets(self, *args: object, **kwargs: object):  # noqa: ANN202
            answer = super().list_offsets(*args, **kwargs)  # type: ignore[arg-type]
            log.end += 10
            return answer

    cluster = Growing()
    cluster.create("t", log)

    assert {T0: 100} == Source(cluster, starting=TimestampOffsets(10**15)).found()


def test_e24_a_timestamp_in_an_empty_partition_starts_at_its_end():
    """Which is its beginning."""
    assert {T0: 0} == first(TimestampOffsets(5), Log())


def test_e25_a_timestamp_to_come_is_not_for_new_partitions():
    """All four records are read."""
    cluster = ClusterDouble.of(Log())
    source = Source(cluster, starting=TimestampOffsets(10**15))
    source.found()
    cluster.add(Log(0, 4))

    assert {T1: 0} == source.found()


def test_e26_a_committed_offset_is_used():
    """Of the group."""
    assert {T0: 42} == first(CommittedOffsets(), Log(0, 100), commits={T0: 42})


@pytest.mark.parametrize(("strategy", "start"), [(TO_EARLIEST, 20), (TO_LATEST, 50)])
def test_e27_without_a_committed_offset_the_strategy_decides(
    strategy: OffsetResetStrategy, start: int
):
    """The end is that of the discovery."""
    assert {T0: start} == first(CommittedOffsets(strategy), Log(20, 50))


def test_e27_without_a_committed_offset_and_a_strategy_it_is_an_error():
    """It names the partition."""
    with pytest.raises(TaskFailedError, match="No offset is committed for t-0, and the reset"):
        first(CommittedOffsets(), Log(20, 50))


def test_e28_a_committed_offset_is_not_for_new_partitions():
    """The group has one from another time."""
    cluster = ClusterDouble.of(Log())
    source = Source(cluster, starting=CommittedOffsets(TO_EARLIEST))
    source.found()
    cluster.add(Log(0, 20))
    cluster.commits = {T1: 8}

    assert {T1: 0} == source.found()


@pytest.mark.parametrize(("strategy", "start"), [(TO_EARLIEST, 100), (TO_LATEST, 200)])
def test_e29_a_committed_offset_that_retention_has_deleted_is_reset(
    strategy: OffsetResetStrategy, start: int
):
    """As the strategy says."""
    assert {T0: start} == first(CommittedOffsets(strategy), Log(100, 200), commits={T0: 42})


def test_e29_a_committed_offset_that_retention_has_deleted_is_an_error_without_a_strategy():
    """It names partition and offset."""
    with pytest.raises(
        TaskFailedError, match=r"not in its log, .*: t-0 at 42 \(its log is from 100 to 200\)\."
    ):
        first(CommittedOffsets(), Log(100, 200), commits={T0: 42})


@pytest.mark.parametrize(
    ("starting", "stopping"),
    [
        (CommittedOffsets(), None),
        (EarliestOffsets(), CommittedOffsets()),
        (SpecifiedOffsets({T0: COMMITTED}), None),
    ],
)
def test_e30_committed_offsets_without_a_group_are_refused_before_the_start(
    starting: OffsetsInitializer, stopping: OffsetsInitializer | None
):
    """With a group all is well."""
    subscription = Subscription(
        subscriber=TopicListSubscriber(("t",)), starting=starting, stopping=stopping
    )

    with pytest.raises(ConfigError, match=r"group\.id is required"):
        subscription.check(group_id=None)
    subscription.check(group_id="g")


def stops(
    stopping: OffsetsInitializer, log: Log, commits: dict[TopicPartition, int] | None = None
) -> tuple[int | None, int | None]:
    """Start and stop of a partition that the second discovery finds."""
    cluster = ClusterDouble.of(Log())
    source = Source(cluster, stopping=SpecifiedOffsets({T0: 1}), group_id="g")
    source.found()
    cluster.add(log)
    cluster.commits = commits or {}
    source.stopping = stopping
    source.restart()
    source.discover()
    (split,) = source.enumerator.unassigned()
    return split.start, split.stop


def test_e56_the_stop_of_a_new_partition_is_that_of_its_discovery():
    """Then it is done for good."""
    assert (0, 5) == stops(LatestOffsets(), Log(0, 5))


def test_e57_a_new_partition_that_is_empty_at_its_discovery_is_never_read():
    """Start and stop are the same."""
    assert (0, 0) == stops(LatestOffsets(), Log())


def test_e58_a_partition_that_the_specified_stops_do_not_have_is_not_read_at_all():
    """Without a commit the strategy decides, whose default is the beginning: give a complete map, or LATEST."""
    assert (0, 0) == stops(SpecifiedOffsets({T0: 5}), Log(0, 9))
    assert (0, 9) == stops(SpecifiedOffsets({T0: 5}, TO_LATEST), Log(0, 9))
    assert (0, 7) == stops(SpecifiedOffsets({T0: 5}), Log(0, 9), {T1: 7})


@pytest.mark.parametrize("stopping", [EarliestOffsets(), SpecifiedOffsets({T0: EARLIEST})])
def test_e59_to_stop_at_the_beginning_is_refused_before_the_start(stopping: OffsetsInitializer):
    """Flink notices when a partition is to be read."""
    subscription = Subscription(
        subscriber=TopicListSubscriber(("t",)), starting=EarliestOffsets(), stopping=stopping
    )

    with pytest.raises(ConfigError, match="cannot stop at"):
        subscription.check(group_id="g")


@dataclass(frozen=True)
class Own:
    """A user's own: *answers*."""

    answers: Offsets
    auto_offset_reset: OffsetResetStrategy = TO_EARLIEST

    def partition_offsets(
        self, partitions: Collection[TopicPartition], retriever: PartitionOffsetsRetriever
    ) -> Offsets:
        """Whatever is asked."""
        return self.answers


def test_e64_an_own_initializer_without_an_answer_is_an_error_that_names_the_partition():
    """Flink drops the partition, and reads it from its beginning when it finds it again."""
    with pytest.raises(TaskFailedError, match="Own does not say where to start t-1:"):
        first(Own({T0: 1}), Log(0, 5), Log(0, 5))


def test_an_own_initializer_may_answer_marks_and_more_than_it_was_asked():
    """What it was not asked is ignored."""
    answers = {T0: LATEST, T1: EARLIEST, TopicPartition("x", 0): 1}

    assert {T0: 5, T1: 2} == first(Own(answers), Log(0, 5), Log(2, 9))


def test_an_own_initializer_that_answers_no_offset_is_an_error():
    """Kafka gives negative numbers meanings of their own."""
    with pytest.raises(TaskFailedError, match="Own says -7 for t-0"):
        first(Own({T0: -7}), Log(0, 5))


@pytest.mark.parametrize(
    ("isolation", "start"),
    [(IsolationLevel.READ_COMMITTED, 80), (IsolationLevel.READ_UNCOMMITTED, 100)],
)
def test_e65_latest_is_the_end_for_this_reader(isolation: IsolationLevel, start: int):
    """Flink starts at the high watermark also with read_committed, and never reads the open transaction (B7)."""
    cluster = ClusterDouble.of(Log(0, 100, stable=80))
    source = Source(cluster, starting=LatestOffsets(), isolation=isolation)

    assert {T0: start} == source.found()


def test_an_offset_in_an_open_transaction_is_in_the_log():
    """A commit between the last stable offset and the high watermark is no reason for a reset."""
    assert {T0: 90} == first(CommittedOffsets(), Log(0, 100, stable=80), commits={T0: 90})


def test_a_negative_timestamp_is_refused():
    """For Kafka it would mean something else."""
    with pytest.raises(ConfigError, match="-1 is no time"):
        TimestampOffsets(-1)


def test_a_bounded_source_has_to_say_where_it_stops():
    """Otherwise it would not end."""
    subscription = Subscription(
        subscriber=TopicListSubscriber(("t",)), starting=EarliestOffsets(), bounded=True
    )

    with pytest.raises(ConfigError, match="has to say where it stops"):
        subscription.check(group_id=None)
