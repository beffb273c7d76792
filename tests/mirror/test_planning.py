"""The plans of a mirror, on two clusters in memory."""

from __future__ import annotations

from typing import Any, cast

import pytest

from discovery.cluster_double import Log
from headrace.connect.connector import PlanRequest
from headrace.connect.errors import RetriableError, TaskFailedError
from headrace.connect.group_offsets import GroupEntry
from headrace.kafka.topic_partition import TopicPartition
from headrace.kafka.wire.epoch_ends import EpochEnd
from headrace.kafka.wire.error_codes import error_code
from headrace.kafka.wire.group_requests import GroupMember
from headrace.mirror.positions import DISCOVERED, Position
from headrace.mirror.topic_watch import TopicWatch
from headrace.testing.task_runs import StoredOffsets
from mirror.two_clusters import FLOW, TwoClusters

T0, T1, T2 = (TopicPartition("t", number) for number in range(3))
U0 = TopicPartition("u", 0)


def failure(flow: TwoClusters) -> str:
    """Why there is no plan, or why some partitions are not in it."""
    try:
        flow.shares()
    except TaskFailedError as error:
        return str(error)
    assert flow.failure is not None
    return flow.failure


def watching(flow: TwoClusters, *, interval: float | None = None) -> TopicWatch:
    """What ends the slots of *flow* for a plan that is due."""
    return TopicWatch(
        cast("Any", flow.source),
        flow.copied,
        lambda: flow.planner.seen,
        interval_seconds=interval,
        clock=flow.clock,
    )


@pytest.fixture
def flow() -> TwoClusters:
    """With a topic of two partitions that have records."""
    made = TwoClusters()
    made.source.create("t", Log(0, 50), Log(10, 20))
    return made


def test_starts_and_the_end_of_the_first_discovery_are_stored_before_anything_is_copied(
    flow: TwoClusters,
):
    """In one plan, and so in one transaction; the remote topic is there by then."""
    plan = flow.plan()

    assert not plan.has_work()
    assert {
        FLOW.discovery: DISCOVERED,
        FLOW.partition(T0): Position(0, "source", flow.topic_id("t")).offset,
        FLOW.partition(T1): Position(10, "source", flow.topic_id("t")).offset,
    } == plan.offsets
    assert {"mm2-offset-ranges.A.internal": 1, "A.t": 2} == {
        each.name: each.partitions for each in flow.admin.created
    }


def test_all_partitions_are_followed_while_there_is_anything_to_copy(flow: TwoClusters):
    """Also those in which there is nothing now; there is no other plan until then."""
    flow.copy()
    flow.source.topics["t"][1].end = 21

    assert [{T0: 50}, {T1: 20}] == flow.shares()


def test_nothing_is_planned_while_all_is_copied(flow: TwoClusters):
    """No job runs then."""
    flow.copy()

    assert [] == flow.shares()
    assert not flow.plan().has_work()


def test_a_partition_keeps_its_slot_when_others_come(flow: TwoClusters):
    """As long as there are as many slots."""
    assert [{T0: 0}, {T1: 10}] == flow.shares()
    flow.source.add(Log(0, 5))
    flow.source.create("a", Log(0, 5))
    flow.clock.now += 1000

    found = flow.shares()

    assert [{T0, TopicPartition("a", 0)}, {T1, T2}] == [{*each} for each in found] or [
        {T0, T2},
        {T1, TopicPartition("a", 0)},
    ] == [{*each} for each in found]
    assert {T0, T1, T2, TopicPartition("a", 0)} == {*flow.shares(1)[0]}


def test_what_is_found_later_begins_at_its_beginning_whatever_the_start(flow: TwoClusters):
    """Also in another process."""
    flow.set(mirror_start="latest")
    assert [] == flow.shares()
    flow.source.add(Log(0, 5))
    flow.source.create("u", Log(0, 7))
    flow.restart()

    assert {T0: 50, T1: 20, T2: 0, U0: 0} == {
        place: at for share in flow.shares() for place, at in share.items()
    }
    assert {"A.t": 3, "A.u": 1} == {name: len(flow.target.topics[name]) for name in ("A.t", "A.u")}


def test_a_first_discovery_that_found_nothing_is_over(flow: TwoClusters):
    """So that a topic that is made afterwards is new."""
    del flow.source.topics["t"]
    flow.set(mirror_start="latest")
    flow.shares()
    assert [FLOW.discovery] == [*flow.stored]
    flow.source.create("t", Log(0, 5))
    flow.restart()

    assert [{T0: 0}] == [share for share in flow.shares() if share]


def test_the_first_discovery_is_not_over_while_a_partition_of_it_has_no_start(flow: TwoClusters):
    """Another process has to resolve it by the rule for what was there first."""
    flow.set(mirror_start="latest")
    flow.source.topics["t"][1].leader = None
    flow.plan()
    assert FLOW.discovery not in flow.stored

    flow.source.topics["t"][1].leader = 1
    flow.restart()
    flow.shares()
    assert FLOW.discovery in flow.stored
    assert 20 == flow.position(T1).next


def test_a_start_that_was_not_stored_is_resolved_again_as_what_it_was(flow: TwoClusters):
    """The transaction failed, or the process died before it."""
    flow.set(mirror_start="latest")
    flow.plan()
    flow.stored.clear()
    plan = flow.plan()

    assert 49 == (plan.offsets[FLOW.partition(T0)] or {})["offset"]
    assert FLOW.discovery in plan.offsets


def test_markers_behind_the_last_record_are_no_backlog(flow: TwoClusters):
    """A transaction that is open is not copied, and not waited for."""
    flow.copy()
    flow.source.topics["t"][0].end, flow.source.topics["t"][0].stable = 60, 50

    assert [] == flow.shares()


def test_positions_are_committed_again_at_a_quarter_of_their_retention(flow: TwoClusters):
    """At each start, too: it may be long since the last process."""
    flow.admin.retention_minutes = "8"
    flow.copy()
    flow.shares()
    before = dict(flow.stored)
    flow.clock.now += 119
    assert {} == flow.plan().offsets

    flow.clock.now += 2
    assert before == flow.plan().offsets
    assert {} == flow.plan().offsets
    flow.restart()
    assert before == flow.plan().offsets


def test_a_plan_that_is_due_while_all_is_copied_is_asked_for_once(flow: TwoClusters):
    """Also where topics are not looked for, so that nothing else is done."""
    flow.admin.retention_minutes = "8"
    flow.set(refresh_topics_enabled="false")
    flow.copy()
    flow.shares()
    watch = watching(flow)
    for _ in range(2):
        assert not watch.is_due()
        flow.clock.now += 121
        assert watch.is_due()
        assert flow.plan().offsets


def test_positions_whose_remote_partition_is_gone_are_not_committed_again(flow: TwoClusters):
    """They would spoil the transaction of all."""
    flow.source.create("u", Log(0, 1))
    flow.copy()
    flow.source.delete("u")
    flow.target.delete("A.u")
    flow.restart()

    assert {FLOW.discovery, FLOW.partition(T0), FLOW.partition(T1)} == {*flow.plan().offsets}


def test_what_the_rules_move_is_stored_first(flow: TwoClusters):
    """And told, once."""
    flow.copy()
    flow.source.topics["t"][0].start = 55
    flow.source.topics["t"][0].end = 70
    flow.set(mirror_on_lost="continue")

    assert 55 == {place: at for share in flow.shares() for place, at in share.items()}[T0]


def test_partitions_are_compared_whenever_copying_begins(flow: TwoClusters):
    """By the end of the epoch in which the last batch was appended: the log may have been cut meanwhile."""
    flow.copy()
    flow.source.topics["t"][0].end = 60
    flow.source.epochs[T0] = EpochEnd(0, 40)

    said = failure(flow)
    assert "has only those before 40 of what was copied" in said
    assert "mirror.on.lost" in said


def test_an_end_that_is_lower_for_a_moment_is_asked_for_again(flow: TwoClusters):
    """A new leader does not know yet what its followers have."""
    flow.copy()
    flow.source.topics["t"][0].end = 30
    asked = flow.clock.sleep

    def later(seconds: float) -> None:
        asked(seconds)
        flow.source.topics["t"][0].end = 50

    flow.clock.sleep = later  # pyright: ignore[reportAttributeAccessIssue]
    flow.restart()
    assert [] == flow.shares()


def test_an_end_that_stays_lower_stops(flow: TwoClusters):
    """The source has lost records that are at the target."""
    flow.copy()
    flow.source.topics["t"][0].end = 30

    assert "has only those before 30 of what was copied" in failure(flow)


def test_a_partition_that_stops_does_not_stop_the_others(flow: TwoClusters):
    """It joins them when its position is changed, or as soon as it fits again."""
    flow.copy()
    first, second = flow.source.topics["t"].values()
    first.start, first.end = 60, 61
    second.end = 25

    assert [{T1: 20}] == [share for share in flow.shares() if share]
    assert flow.failure is not None
    assert "t-0 is to be copied from offset 50 on" in flow.failure
    flow.put(T1, flow.position(T1)._replace(next=25))
    assert [] == flow.shares()
    assert "t-0 is to be copied" in flow.failure

    flow.put(T0, Position(60))
    assert 60 == {place: at for share in flow.shares() for place, at in share.items()}[T0]
    assert flow.failure is None


def test_a_partition_of_which_a_user_says_that_nothing_is_copied_begins_where_its_log_does(
    flow: TwoClusters,
):
    """From then on it has that very position, and what is deleted before it is copied stops it."""
    flow.copy()
    log = flow.source.topics["t"][0]
    log.start = 7
    flow.put(T0, Position.of({"offset": -1}))
    assert 7 == {place: at for share in flow.shares() for place, at in share.items()}[T0]
    assert flow.failure is None

    log.start = 8
    flow.restart()
    assert "t-0 is to be copied from offset 7 on, and the source's log begins at 8" in failure(flow)


def test_what_is_copied_again_after_it_had_stopped_is_logged_once(
    flow: TwoClusters, caplog: pytest.LogCaptureFixture
):
    """A position that fits again, a batch that can be read after all, and a remote topic that is there."""
    caplog.set_level("INFO", "headrace.mirror.planning")
    flow.source.create("u", Log(0, 5))
    flow.copy()
    first, second = flow.source.topics["t"].values()
    first.start, first.end, second.end = 60, 61, 25
    flow.target.delete("A.u")
    flow.clock.now += 1000
    flow.shares()
    flow.cannot_read(T1, "The record batch at offset 20 is corrupt.")
    failure(flow)
    flow.clock.now += 301
    flow.shares()
    assert "Copied again" not in caplog.text

    flow.put(T1, flow.position(T1)._replace(next=25))
    failure(flow)
    first.start = 40
    flow.target.create("A.u", Log())
    flow.clock.now += 301
    for _ in range(3):
        flow.shares()
    assert ["t-1", "u, t-0"] == [
        each.message.partition("it: ")[2].rstrip(".")
        for each in caplog.records
        if "Copied again" in each.message
    ]


def test_a_topic_made_again_at_the_source_is_not_copied_again_while_its_partitions_stop(
    flow: TwoClusters, caplog: pytest.LogCaptureFixture
):
    """It is there, and is another one."""
    caplog.set_level("INFO", "headrace.mirror.planning")
    flow.set(mirror_on_removed="fail")
    flow.source.create("u", Log(0, 5))
    flow.copy()
    flow.source.delete("t")
    flow.clock.now += 1000
    assert "Of the topic t" in failure(flow)
    flow.source.create("t", Log(0, 50), Log(0, 20))
    flow.clock.now += 1000
    assert "was deleted and created again" in failure(flow)
    assert "Copied again" not in caplog.text

    for place in (T0, T1):
        flow.put(place, Position(0))
    flow.shares()
    assert "Copied again, after an error had stopped it: t-0, t-1." in caplog.text


def test_a_partition_that_has_stopped_is_looked_at_again_while_others_are_followed(
    flow: TwoClusters,
):
    """After five minutes the slots are ended for it, however seldom topics are listed; and not again before five more."""
    flow.set(partition_discovery_interval_ms="3600000")
    flow.copy()
    first, second = flow.source.topics["t"].values()
    first.start, first.end, second.end = 60, 61, 25
    watch = watching(flow, interval=3600)
    for _ in range(2):
        assert [{T1: 20}] == [share for share in flow.shares() if share]
        flow.clock.now += 299
        assert not watch.is_due()
        flow.clock.now += 2
        assert watch.is_due()
    first.start = 40

    assert {T0: 50, T1: 20} == {place: at for share in flow.shares() for place, at in share.items()}
    assert flow.failure is None
    flow.clock.now += 301
    assert not watch.is_due()


def test_a_partition_that_a_task_cannot_read_does_not_stop_the_others(flow: TwoClusters):
    """It is tried again from time to time, with the same failure until it has moved."""
    flow.shares()
    flow.cannot_read(T0, "The record batch at offset 0 is corrupt.")

    assert [{T1: 10}] == [share for share in flow.shares() if share]
    said = flow.failure
    assert said is not None
    assert "is corrupt. t-0 is not copied on from there" in said
    assert """headrace offsets set m '{"cluster":"A","topic":"t","partition":0}'""" in said
    flow.put(T1, flow.position(T1)._replace(next=20))
    assert [] == flow.shares()

    flow.clock.now += 301
    assert 0 == {place: at for share in flow.shares() for place, at in share.items()}[T0]
    assert said == flow.failure
    flow.cannot_read(T0, "The record batch at offset 0 is corrupt.")
    assert ([], said) == (flow.shares(), flow.failure)
    flow.clock.now += 301
    flow.shares()
    flow.put(T0, flow.position(T0)._replace(next=50))
    assert ([], None) == (flow.shares(), flow.failure)


@pytest.mark.parametrize(
    "settings", [{"refresh_topics_enabled": "false"}, {"refresh_topics_interval_seconds": "5"}]
)
def test_what_stops_while_nothing_else_moves_is_tried_every_five_minutes(
    flow: TwoClusters, settings: dict[str, str]
):
    """Not seldom or often as topics are listed: each try is a micro-batch."""
    flow.set(**settings)
    flow.shares()
    flow.put(T1, flow.position(T1)._replace(next=20))
    flow.cannot_read(T0, "The record batch at offset 0 is corrupt.")
    tries = 0
    for _ in range(120):
        tried = T0 in {place for share in flow.shares() for place in share}
        tries += tried
        if tried:
            flow.cannot_read(T0, "The record batch at offset 0 is corrupt.")
        flow.clock.now += 10

    assert 3 == tries


def test_a_topic_that_is_left_out_while_nothing_else_moves_is_tried_every_five_minutes(
    flow: TwoClusters,
):
    """One of the source that is there again, and one that the target takes after all."""
    flow.set(refresh_topics_enabled="false", mirror_on_removed="fail")
    flow.source.create("u", Log(0, 5))
    flow.source.create("v", Log(0, 5))
    flow.admin.refused["A.u"] = "Kafka refused the creation of topic 'A.u'."
    flow.copy()
    flow.source.delete("v")
    flow.shares()
    assert flow.failure is not None
    assert "'A.u'" in flow.failure
    assert "Of the topic v" in flow.failure

    flow.admin.refused.clear()
    flow.source.create("v", Log(0, 5))
    assert [] == flow.shares()
    flow.clock.now += 301
    assert U0 in {place for share in flow.shares() for place in share}
    assert flow.failure is not None
    assert "The topic v was deleted and created again" in flow.failure
    assert "Of the topic v" not in flow.failure


def test_a_partition_that_a_task_could_not_read_is_copied_from_where_a_user_says(
    flow: TwoClusters,
):
    """At once."""
    flow.shares()
    flow.cannot_read(T0, "The record batch at offset 0 is corrupt.")
    flow.shares()
    flow.put(T0, Position(30))

    assert 30 == {place: at for share in flow.shares() for place, at in share.items()}[T0]
    assert flow.failure is None


def test_the_command_of_a_damaged_batch_goes_on_after_it(flow: TwoClusters):
    """With its last offset, where the task knows that."""
    flow.shares()
    flow.cannot_read(T0, "The record batch at offset 10 is corrupt.", last=19)
    flow.shares()

    assert flow.failure is not None
    assert """'{"offset":19}' goes on after it, at offset 20,""" in flow.failure


def test_a_connector_of_which_no_task_can_read_anything_fails(flow: TwoClusters):
    """With the reasons."""
    flow.shares()
    flow.cannot_read(T0, "One is corrupt.")
    flow.cannot_read(T1, "Another one is.")

    with pytest.raises(TaskFailedError, match=r"One is corrupt\. t-0 .*\nAnother one is\. t-1"):
        flow.shares()


def test_a_partition_that_has_stopped_is_looked_at_again_with_the_next_discovery(flow: TwoClusters):
    """Not at each plan: the source would be asked for it ten times a second."""
    flow.copy()
    flow.source.topics["t"][0].end = 30
    assert "t-0" in failure(flow)
    flow.source.topics["t"][0].end = 70

    assert [] == flow.shares()
    assert flow.failure is not None
    flow.clock.now += 1000
    assert 50 == {place: at for share in flow.shares() for place, at in share.items()}[T0]
    assert flow.failure is None


def test_a_connector_of_which_all_has_stopped_fails(flow: TwoClusters):
    """With all of the reasons."""
    flow.copy()
    for log in flow.source.topics["t"].values():
        log.start = log.end = 100

    with pytest.raises(TaskFailedError, match=r"(?s)t-0 is to be copied.*t-1 is to be copied"):
        flow.shares()


def test_a_topic_that_is_removed_does_not_stop_the_others(flow: TwoClusters):
    """By the setting it is a failure, until it is there again."""
    flow.set(mirror_on_removed="fail")
    flow.source.create("u", Log(0, 5))
    flow.copy()
    flow.source.delete("t")
    flow.source.topics["u"][0].end = 6
    flow.clock.now += 1000

    assert [{U0: 5}] == [share for share in flow.shares() if share]
    assert flow.failure is not None
    assert "Of the topic t, 2 partitions not on the brokers any more" in flow.failure
    flow.restart()
    assert "mirror.on.removed" in failure(flow)
    flow.source.create("t", Log(0, 50), Log(0, 20))
    flow.clock.now += 1000
    assert "The topic t was deleted and created again" in failure(flow)
    assert "mirror.on.removed" not in failure(flow)


def test_a_new_partition_without_its_first_records_stops_alone(flow: TwoClusters):
    """Until its position is set, also in another process: the position has its beginning."""
    flow.copy()
    flow.source.add(Log(7, 9))
    flow.source.topics["t"][0].end = 51
    flow.clock.now += 1000
    for _ in range(2):
        shares = {place: at for share in flow.shares() for place, at in share.items()}
        assert {T0: 50, T1: 20} == shares
        said = "t-2 is to be copied from offset 0 on, and the source's log begins at 7 now"
        assert said in (flow.failure or "")
        assert "mirror.on.lost" in (flow.failure or "")
        flow.restart()

    flow.put(T2, Position(8))
    assert T2 in {place for share in flow.shares() for place in share}
    assert flow.failure is None


def test_a_partition_that_lost_its_first_records_while_nothing_ran_stops(flow: TwoClusters):
    """Where other partitions of its topic have been copied, it was wanted; of another topic no one knows that."""
    flow.copy()
    flow.source.add(Log(7, 9))
    flow.source.create("u", Log(5, 9))
    flow.restart()

    assert U0 in {place for share in flow.shares() for place in share}
    assert "t-2 is to be copied from offset 0 on" in (flow.failure or "")
    flow.set(mirror_on_lost="continue")
    assert 7 == {place: at for share in flow.shares() for place, at in share.items()}[T2]


def test_a_remote_topic_that_is_gone_stops_its_source_alone(flow: TwoClusters):
    """It is not created again without being asked."""
    flow.source.create("u", Log(0, 5))
    flow.copy()
    flow.target.delete("A.t")
    flow.source.topics["u"][0].end = 6
    flow.clock.now += 1000

    assert [{U0: 5}] == [share for share in flow.shares() if share]
    assert flow.failure is not None
    assert "The remote topic A.t is gone" in flow.failure
    assert "A.t" not in flow.target.topics


def test_a_remote_topic_is_gone_only_when_a_second_answer_says_so(flow: TwoClusters):
    """Of another broker, if there is one; and one that does not know the flow's own topic says nothing of others."""
    flow.copy()
    flow.source.topics["t"][0].end = 60
    flow.clock.now += 1000
    flow.target.unknown = [{"A.t"}]
    assert 50 == {place: at for share in flow.shares() for place, at in share.items()}[T0]
    assert flow.failure is None

    flow.clock.now += 1000
    flow.target.unknown = [{"A.t"}, {"A.t", "mm2-offset-ranges.A.internal"}]
    with pytest.raises(RetriableError, match=r"asked again whether A\.t is"):
        flow.shares()
    assert 50 == {place: at for share in flow.shares() for place, at in share.items()}[T0]
    assert flow.failure is None


def test_what_was_copied_before_is_not_known_while_brokers_do_not_know_the_ranges_topic(
    flow: TwoClusters,
):
    """A remote topic that is missing may have been deleted: it is not created meanwhile."""
    flow.stored = {FLOW.discovery: DISCOVERED}
    ranges = "mm2-offset-ranges.A.internal"
    flow.target.create(ranges, Log())
    # Twice asked for the remote topic; then twice for the ranges, which were there with the second answer.
    flow.target.unknown = [{"A.t"}, {"A.t"}, {ranges}, {ranges}]

    with pytest.raises(RetriableError, match="says what was copied before, is not known"):
        flow.plan()
    assert "A.t" not in flow.target.topics
    assert [{T0: 0}, {T1: 10}] == flow.shares()


def test_other_partitions_are_stored_before_one_stops(flow: TwoClusters):
    """The failure comes with each plan."""
    flow.target.create("A.t", Log(0, 5), Log())

    plan = flow.plan()
    assert FLOW.partition(T0) not in plan.offsets
    assert {FLOW.partition(T1), FLOW.discovery} == {*plan.offsets}
    assert "mirror.on.expired" in failure(flow)


def test_what_the_rules_say_is_logged_once_and_again_when_it_happens_again(
    flow: TwoClusters, caplog: pytest.LogCaptureFixture
):
    """Not with each plan until the position is stored."""
    flow.set(mirror_on_expired="continue")
    flow.copy()
    flow.restart()
    for expired in (1, 2):
        flow.stored.pop(FLOW.partition(T0))
        for _ in range(3):
            before = dict(flow.stored)
            flow.plan()
            flow.stored = before
        assert expired == caplog.text.count("t-0 has no position in the group")
        flow.shares()


def test_an_entry_of_another_program_stops_or_is_adopted(flow: TwoClusters):
    """By a setting."""
    flow.unnamed = [GroupEntry("A.t", 0, 33)]
    flow.plan()
    assert "mirror.on.foreign" in failure(flow)

    flow.set(mirror_on_foreign="continue")
    assert 33 == {place: at for share in flow.shares() for place, at in share.items()}[T0]


def test_a_group_with_members_is_refused(flow: TwoClusters):
    """The broker would let both commit."""
    flow.target.members = (GroupMember("reader", "/10.0.0.1"),)

    said = failure(flow)
    assert "'connect-m' on the target has 1 member (reader at /10.0.0.1)" in said


def test_explaining_tells_of_a_remote_topic_that_is_gone(flow: TwoClusters):
    """It fails the connector, or its partitions are read: as the setting says; none is created."""
    flow.copy()
    flow.target.delete("A.t")
    asked = PlanRequest(slots=2, offsets=StoredOffsets(flow.stored))
    (told,) = flow.planner.explained(asked)
    assert ("t", True) == (told.name, told.fails)
    assert "The remote topic A.t is gone" in str(told.reason)

    flow.set(mirror_on_remote_removed="continue")
    first, second = flow.planner.explained(asked)
    assert ("t-0", "t-1", False) == (first.name, second.name, first.fails)
    assert "A.t" not in flow.target.topics


def test_a_remote_topic_that_is_gone_stops_or_is_made_again(flow: TwoClusters):
    """Copying goes on at the position then, also after the brokers have removed the entries."""
    flow.copy()
    flow.source.topics["t"][0].end = 60
    flow.target.delete("A.t")
    flow.clock.now += 1000
    assert "mirror.on.remote.removed" in failure(flow)

    flow.set(mirror_on_remote_removed="continue")
    assert 50 == {place: at for share in flow.shares() for place, at in share.items()}[T0]
    flow.target.delete("A.t")
    flow.stored = {FLOW.discovery: DISCOVERED}
    flow.clock.now += 1000
    assert 50 == {place: at for share in flow.shares() for place, at in share.items()}[T0]


def test_a_connector_all_of_whose_remote_topics_are_refused_fails(flow: TwoClusters):
    """With the reason; no position is stored."""
    flow.admin.refused["A.t"] = "Kafka refused the creation of topic 'A.t'."

    assert "Kafka refused the creation of topic 'A.t'." in failure(flow)
    assert {FLOW.discovery: DISCOVERED} == flow.stored


@pytest.mark.parametrize(
    "key",
    ["offset-syncs.topic.replication.factor", "mirror.offset.ranges.topic.replication.factor"],
)
def test_a_refusal_of_the_flows_own_topic_names_the_setting(flow: TwoClusters, key: str):
    """By which its replication factor was chosen."""
    flow.props[key] = "1"
    flow.restart()
    topic = "mm2-offset-ranges.A.internal"
    flow.admin.refused[topic] = f"Kafka refused the creation of topic '{topic}'."

    assert f"'{topic}'. Its replication factor is that of {key}." in failure(flow)


def test_a_remote_topic_that_may_not_be_created_does_not_stop_the_others(flow: TwoClusters):
    """It is tried again with the next discovery."""
    flow.source.create("u", Log(0, 5))
    flow.admin.refused["A.t"] = "Kafka refused the creation of topic 'A.t'."

    assert [{U0: 0}] == [share for share in flow.shares() if share]
    assert flow.failure is not None
    assert "Kafka refused the creation of topic 'A.t'." in flow.failure
    flow.admin.refused.clear()
    flow.clock.now += 1000

    assert {T0: 0, T1: 10, U0: 0} == {
        place: at for share in flow.shares() for place, at in share.items()
    }
    assert flow.failure is None


def test_a_remote_topic_that_may_not_grow_does_not_stop_the_others(flow: TwoClusters):
    """Nor its own partitions that are there."""
    flow.source.create("u", Log(0, 5))
    flow.copy()
    flow.source.add(Log(0, 3))
    flow.source.topics["u"][0].end = 6
    flow.admin.refused["A.t"] = "Kafka refused more partitions of topic 'A.t'."
    flow.clock.now += 1000

    assert {T0: 50, T1: 20, U0: 5} == {
        place: at for share in flow.shares() for place, at in share.items()
    }
    assert flow.failure is not None
    assert "Kafka refused more partitions of topic 'A.t'." in flow.failure
    assert "Partitions from 2 on are not copied to it" in flow.failure
    flow.admin.refused.clear()
    flow.clock.now += 1000

    assert {T0: 50, T1: 20, T2: 0, U0: 5} == {
        place: at for share in flow.shares() for place, at in share.items()
    }


def test_the_same_cluster_under_the_same_names_is_refused(flow: TwoClusters):
    """It would never end."""
    flow.target.cluster_id = "source"
    flow.set(replication_policy_class="IdentityReplicationPolicy")

    assert "without end" in failure(flow)


def test_a_source_that_is_away_is_waited_for(flow: TwoClusters):
    """The first discovery has to be complete."""
    flow.source.metadata_failures = [RetriableError("nobody is there")]

    with pytest.raises(RetriableError):
        flow.plan()
    assert [{T0: 0}, {T1: 10}] == flow.shares()


def test_a_partition_whose_leader_is_away_is_left_out_and_said_to_be(flow: TwoClusters):
    """Another plan is due when it is back."""
    flow.shares()
    flow.source.topics["t"][1].is_unavailable = True

    assert [{T0: 0}] == [share for share in flow.shares() if share]
    assert flow.planner.seen.are_left_out


def test_a_run_that_ends_with_its_work_waits_for_a_leader(flow: TwoClusters):
    """There may be something to copy in its partition, and nothing else says so."""
    flow.copy()
    assert flow.plan().ask_again_after is None
    flow.source.topics["t"][1].leader = None

    assert 1.0 == flow.plan().ask_again_after
    assert flow.failure is None


def test_a_partition_that_may_not_be_read_any_more_fails_alone(flow: TwoClusters):
    """Its brokers refuse to say where it ends; others are copied on, and it is looked at again every five minutes."""
    flow.copy()
    flow.source.topics["t"][1].error = error_code(29)

    assert not flow.shares()
    assert flow.failure is not None
    assert (
        "t-1 is not copied: the source's brokers answer TOPIC_AUTHORIZATION_FAILED" in flow.failure
    )
    assert "Grant this client Read and Describe on the topic. It is tried again" in flow.failure
    flow.source.topics["t"][0].end += 5
    assert [{T0: 50}] == [share for share in flow.shares() if share]

    flow.source.topics["t"][1].error = None
    flow.clock.now += 300
    assert [{T0: 50}, {T1: 20}] == flow.shares()
    assert flow.failure is None


def test_a_remote_partition_whose_leader_is_away_is_told_of_once(
    flow: TwoClusters, caplog: pytest.LogCaptureFixture
):
    """A partition without a position waits for it."""
    flow.target.create("A.t", Log(), Log())
    flow.target.topics["A.t"][1].leader = None
    for _ in range(2):
        assert [{T0: 0}] == [share for share in flow.shares() if share]
    assert 1 == caplog.text.count("1 remote partition without a position end, such as A.t-1")

    flow.target.topics["A.t"][1].leader = 1
    assert [{T0: 0}, {T1: 10}] == flow.shares()


def test_a_policy_that_gives_two_topics_one_name_is_refused(flow: TwoClusters):
    """Their records would be mixed."""
    flow.source.create("a.t", Log(0, 1))
    flow.set(replication_policy_class="mirror.last_word:LastWordPolicy")

    assert "has to give different topics different names" in failure(flow)


def test_explaining_tells_what_is_left_of_each_partition_and_changes_nothing(flow: TwoClusters):
    """Before the first plan, and while something stops."""
    asked = PlanRequest(slots=2, offsets=StoredOffsets(flow.stored))

    found = {each.name: each for each in flow.planner.explained(asked)}

    assert {"t-0": (50, (0,), "A.t"), "t-1": (10, (1,), "A.t")} == {
        name: (each.size, each.slots, each.topic) for name, each in found.items()
    }
    assert {} == flow.target.topics
    flow.copy()
    flow.source.topics["t"][0].start = flow.source.topics["t"][0].end = 60
    flow.restart()
    asked = PlanRequest(slots=2, offsets=StoredOffsets(flow.stored))
    (first, second) = flow.planner.explained(asked)
    assert first.fails
    assert "deleted before being copied" in (first.reason or "")
    assert (0, False) == (second.size, second.fails)
