"""Where a partition is read from, given its position and what the clusters have now."""

from __future__ import annotations

import json
import shlex
from dataclasses import replace
from uuid import UUID

import pytest

from headrace.connect.errors import PartitionError
from headrace.connect.group_offsets import GroupEntry
from headrace.connect.partition import SourceOffset
from headrace.kafka.topic_partition import TopicPartition
from headrace.kafka.wire.epoch_ends import EpochEnd
from headrace.mirror.positions import Flow, Position
from headrace.mirror.settings import RecordsLostConfig
from headrace.mirror.starts import (
    Begin,
    Fail,
    FailedPartitions,
    RemotePartition,
    Resume,
    SourceLog,
    Start,
    StartRules,
    said_by_topic,
)

OLD, NEW = UUID(int=1), UUID(int=2)
PLACE, REMOTE = TopicPartition("orders", 3), TopicPartition("A.orders", 3)
AT = Position(50, "cluster-1", OLD, 4)
LOG = SourceLog(cluster_id="cluster-1", topic_id=OLD, log_start=10, end=90)
COMMAND = (
    'headrace offsets set m \'{"cluster":"A","topic":"orders","partition":3}\' \'{"offset":LAST}\''
)


def rules(**settings: str) -> StartRules:
    """Those of a connector with these settings of ``mirror.on``."""
    given = {f"mirror.on.{key.replace('_', '.')}": value for key, value in settings.items()}
    return StartRules(
        connector="m", flow=Flow("A", "B"), group="connect-m", config=RecordsLostConfig.parse(given)
    )


def resumed(position: Position, log: SourceLog, **settings: str) -> Start:
    """What the rules say of a position."""
    return rules(**settings).resumed(PLACE, position, log)


def at(start: Start) -> Position:
    """The position that *start* goes on at, with something told."""
    assert isinstance(start, Resume)
    assert start.warning, "it is to be told"
    return start.position


def problem(start: Start) -> str:
    """Why nothing is read."""
    assert isinstance(start, Fail)
    return start.problem


@pytest.mark.parametrize("end", [None, EpochEnd(4, 50), EpochEnd(4, 80), EpochEnd(-1, -1)])
def test_a_position_in_the_same_log_is_gone_on_at(end: EpochEnd | None):
    """Whether or not its epoch is known there; nothing is told."""
    assert Resume(AT) == resumed(AT, LOG._replace(epoch_end=end))


def test_a_position_at_the_bounds_is_in_the_log():
    """At its start, and at its end, where the next record is waited for."""
    for bound in (10, 90):
        assert Resume(AT._replace(next=bound)) == resumed(AT._replace(next=bound), LOG)


def test_a_position_that_a_user_has_given_gets_its_stamp():
    """It says nothing of what it was read from, so that nothing is compared."""
    assert Resume(Position(50, "cluster-1", OLD)) == resumed(Position(50), LOG)


def test_brokers_without_ids_are_believed():
    """As of old versions."""
    log = LOG._replace(cluster_id=None, topic_id=None)

    assert Resume(AT) == resumed(AT, log)


def test_another_cluster_under_the_alias_stops():
    """The sentence has both ids, and the command."""
    said = problem(resumed(AT, LOG._replace(cluster_id="cluster-2")))

    assert "orders-3 was copied before offset 50 from the cluster with the id cluster-1" in said
    assert "addresses lead to the cluster cluster-2 now" in said
    assert COMMAND in said
    assert "mirror.on.foreign" in said


def test_the_command_has_what_reaches_the_worker_of_the_flow():
    """The options of the worker."""
    options = "--mirror /etc/mm2.properties --flow 'A->B'"
    of_flow = replace(rules(), command_options=options)
    told = problem(of_flow.resumed(PLACE, AT, LOG._replace(cluster_id="other")))
    assert COMMAND.replace("offsets set", f"offsets set {options}") in told
    assert "while 'headrace mirror' does not run" in told
    assert "while the connector is stopped" in problem(
        resumed(AT, LOG._replace(cluster_id="other"))
    )


def unreadable(why: str, last: int | None = None) -> PartitionError:
    """What a task says of a partition, and up to which offset it cannot read it, where that is known."""
    after = None if last is None else Position(last + 1).offset
    return PartitionError(rules().flow.partition(PLACE), why, source_offset=after)


def shown_offset(said: str) -> SourceOffset:
    """The offset in the command that *said* has, which a shell takes as it is."""
    command = shlex.split(said[said.index("headrace offsets set") :].replace(", while", " "))
    assert ["headrace", "offsets", "set", "m"] == command[:4]
    assert {"cluster": "A", "topic": "orders", "partition": 3} == json.loads(command[4])
    return json.loads(command[5])


def test_the_command_has_the_number_that_is_known():
    """It goes on where the log begins, where the logs part, and after a damaged batch."""
    damaged = rules().unreadable(PLACE, unreadable("It is corrupt.", 4898)).problem

    assert "goes on after it, at offset 4899, while the connector is stopped" in damaged
    assert {"offset": 4898} == shown_offset(damaged)
    deleted, moved_back = LOG._replace(log_start=60), LOG._replace(end=45)
    assert {"offset": 59} == shown_offset(problem(resumed(AT, deleted)))
    assert {"offset": 44} == shown_offset(problem(resumed(AT, moved_back)))


@pytest.mark.parametrize("log_start", [0, 10])
def test_where_only_a_user_knows_the_number_the_command_says_what_it_stands_for(log_start: int):
    """And which one copies all that there is, wherever the log begins: as for MirrorMaker, -1 says that nothing is copied."""
    log = LOG._replace(topic_id=NEW, log_start=log_start)
    said = problem(resumed(AT, log))

    assert "LAST stands for the last offset that is not to be copied" in said
    assert "; -1 copies from the beginning)" in said
    begun = resumed(Position.of({"offset": -1}), log)
    assert Resume(Position(log_start, "cluster-1", NEW)) == begun
    assert "LAST stands for" in rules().unreadable(PLACE, unreadable("Nobody knows.")).problem


def test_another_cluster_may_be_gone_on_with():
    """Epochs of the one say nothing of the other; what was read is stamped anew."""
    log = LOG._replace(cluster_id="cluster-2", topic_id=NEW, epoch_end=EpochEnd(4, 20))

    assert Position(50, "cluster-2", NEW) == at(resumed(AT, log, foreign="continue"))


def test_a_topic_made_again_stops_goes_on_or_begins_again():
    """Its id tells it from the old one."""
    log = LOG._replace(topic_id=NEW)

    said = problem(resumed(AT, log))
    assert "The topic orders was deleted and created again" in said
    assert COMMAND in said
    assert "mirror.on.recreated" in said
    assert Position(50, "cluster-1", NEW) == at(resumed(AT, log, recreated="continue"))
    assert Position(10, "cluster-1", NEW) == at(resumed(AT, log, recreated="restart"))


def test_going_on_in_a_shorter_topic_made_again_is_another_question():
    """The position is behind its end."""
    log = LOG._replace(topic_id=NEW, log_start=0, end=7)

    assert "mirror.on.lost" in problem(resumed(AT, log, recreated="continue"))
    found = at(resumed(AT, log, recreated="continue", lost="continue"))
    assert Position(7, "cluster-1", NEW) == found


def test_a_start_at_offset_0_of_this_log_is_not_wherever_the_log_begins():
    """Discovery has found it, or the logs part there: what is deleted since is lost."""
    start = AT._replace(next=0, leader_epoch=None)

    assert "10 offsets deleted before being copied" in problem(resumed(start, LOG))
    assert AT._replace(next=10, leader_epoch=None) == at(resumed(start, LOG, lost="continue"))


def test_records_deleted_before_they_were_copied_stop_or_are_left_out():
    """The sentence counts them."""
    log = LOG._replace(log_start=60)

    said = problem(resumed(AT, log))
    assert "10 offsets deleted before being copied" in said
    assert "mirror.on.lost" in said
    assert AT._replace(next=60) == at(resumed(AT, log, lost="continue"))


@pytest.mark.parametrize(
    ("log", "parting"),
    [
        (LOG._replace(epoch_end=EpochEnd(4, 40)), 40),
        (LOG._replace(epoch_end=EpochEnd(3, 5)), 10),
        (LOG._replace(end=45), 45),
        (LOG._replace(end=45, epoch_end=EpochEnd(4, 42)), 42),
    ],
)
def test_a_log_that_was_moved_back_stops_or_is_gone_on_with_where_it_parts(
    log: SourceLog, parting: int
):
    """By the epoch's end, and by the log's; but not before its start."""
    said = problem(resumed(AT, log))
    assert f"has only those before {parting} of what was copied" in said
    assert "mirror.on.lost" in said
    assert AT._replace(next=parting) == at(resumed(AT, log, lost="continue"))


def test_without_a_position_and_with_an_empty_remote_partition_it_begins():
    """By the rule for new ones."""
    assert Begin() == rules().without(PLACE, RemotePartition(REMOTE, 0))


def test_without_a_position_heartbeats_begin_beside_those_of_other_mirrors():
    """Each mirror of a flow copies them, into one topic, and says what that does."""
    start = rules().without(PLACE, RemotePartition(REMOTE, 7, is_shared=True))
    assert isinstance(start, Begin)
    assert "may be there more than once" in str(start.warning)
    assert "heartbeats.replication.enabled=false" in str(start.warning)
    assert Begin() == rules().without(PLACE, RemotePartition(REMOTE, 0, is_shared=True))


def test_without_a_position_and_with_records_at_the_target_it_stops():
    """Its entry may have expired; to begin would double everything."""
    found = RemotePartition(REMOTE, 1234)

    said = problem(rules().without(PLACE, found))
    assert "orders-3 has no position in the group connect-m" in said
    assert "A.orders-3 there has records up to offset 1234" in said
    assert COMMAND in said
    assert "mirror.on.expired" in said
    start = rules(expired="continue").without(PLACE, found)
    assert isinstance(start, Begin)
    assert start.warning


def test_an_entry_of_someone_else_stops_or_is_taken_over():
    """It would be a guess that it speaks of this source."""
    entry = GroupEntry("A.orders", 3, 77, '{"v":1,"flow":"C->B","topic":"orders"}')
    found = RemotePartition(REMOTE, 1234, entry)

    said = problem(rules(expired="continue").without(PLACE, found))
    assert "offset 77, is not this flow's: it was committed by the flow C->B" in said
    assert COMMAND in said
    assert "mirror.on.foreign" in said
    assert Position(77) == at(rules(foreign="continue").without(PLACE, found))


@pytest.mark.parametrize(
    ("stopping", "others"), [(9, "4 more partitions"), (6, "1 more partition")]
)
def test_many_partitions_are_told_by_the_first_few(stopping: int, others: str):
    """Each has a line."""
    failed = FailedPartitions(topics={"u": "u is gone."})
    places = [TopicPartition("t", each) for each in range(stopping)]
    failed.note({each: Fail(f"{each} stops.") for each in places}, {})

    shown = [f"{each} stops." for each in places[:5]]
    expected = [*shown, f"Nor is anything copied of {others}.", "u is gone."]
    assert expected == str(failed.failure()).splitlines()


def test_a_topic_made_again_is_told_of_once() -> None:
    """With its partitions; another topic has a sentence of its own, and a single partition its own command."""
    failed, log = FailedPartitions(), LOG._replace(topic_id=NEW)
    places = [TopicPartition("orders", each) for each in range(100)]
    alone = TopicPartition("users", 0)
    starts = {each: rules().resumed(each, AT, log) for each in (*places, alone)}
    failed.note(starts, dict.fromkeys(starts, AT))

    said = str(failed.failure())
    assert 1 == said.count("The topic orders was deleted and created again")
    assert "Its partitions 0, 1, 2, 3, 4, 5, 6, 7, 8, 9 and 90 more are not copied until" in said
    command = COMMAND.replace("3", "PARTITION", 1)
    assert f"{command} says for each PARTITION where to go on (LAST stands for" in said
    assert "; -1 copies from the beginning)" in said
    assert "users-0 is not copied until someone decides" in said
    assert len(said) < 1_200


@pytest.mark.parametrize(
    ("policy", "goes_on"),
    [
        ("restart", "are copied from their beginnings"),
        ("continue", "are read on at their positions"),
    ],
)
def test_that_a_topic_made_again_is_gone_on_with_is_told_once(policy: str, goes_on: str) -> None:
    """As each of its partitions is, where there is only one."""
    log = LOG._replace(topic_id=NEW)
    starts = [rules(recreated=policy).resumed(PLACE, AT._replace(next=at), log) for at in (50, 60)]
    told = {
        PLACE._replace(partition=number): (each.warning or "", each.of_topic)
        for number, each in enumerate(starts)
        if isinstance(each, Resume)
    }

    [(said, count)] = said_by_topic(told)
    assert (2, True) == (count, f"Its partitions 0, 1 {goes_on}." in said)
    alone = told[PLACE._replace(partition=0)]
    assert [(alone[0], 1)] == said_by_topic({PLACE: alone})


def test_a_partition_has_stopped_until_it_is_resolved_or_its_position_is_changed():
    """Or nobody wants it copied any more."""
    resolved, moved, unwanted, same = (TopicPartition("t", each) for each in range(4))
    failed = FailedPartitions()
    positions = {moved: Position(1), same: Position(1)}
    failed.note(dict.fromkeys((resolved, moved, unwanted, same), Fail("It stops.")), positions)

    failed.note({resolved: Resume(Position(3))}, {resolved: Position(3)})
    failed.keep({resolved, moved, same}, {**positions, moved: Position(2)})

    assert [same] == [each for each in (resolved, moved, unwanted, same) if each in failed]
