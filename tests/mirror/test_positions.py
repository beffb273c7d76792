"""Positions of a mirror as source offsets and as entries of a group."""

from __future__ import annotations

import json
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.connect.errors import OffsetsError
from headrace.connect.group_offsets import GroupEntry
from headrace.connect.partition import SourceOffset, SourcePartition
from headrace.kafka.topic_partition import TopicPartition
from headrace.mirror.positions import (
    DISCOVERED,
    Flow,
    MirrorOffsetCodec,
    Position,
    check_in_source,
    check_offsets,
    writer_of,
)
from headrace.mirror.source_connector import MirrorSourceConnector

PROPS = {"source.cluster.alias": "A", "target.cluster.alias": "B", "topics": "orders"}
FLOW = Flow("A", "B")
ID = UUID("bf72dbd4-6a94-4399-989e-d9fc9ea191cf")
ORDERS = FLOW.partition(TopicPartition("orders", 3))
IDENTITY = {
    **PROPS,
    "replication.policy.class": "org.apache.kafka.connect.mirror.IdentityReplicationPolicy",
}


def codec(**other: str) -> MirrorOffsetCodec:
    """The codec of the flow from A to B, with *other* settings."""
    given = {key.replace("_", "."): value for key, value in other.items()}
    return MirrorOffsetCodec(MirrorOffsetCodec.settings({**PROPS, **given}))


def test_an_entry_is_next_to_read_under_the_remote_partition_and_says_what_was_read():
    """The text is stored, so it does not change."""
    position = Position(18, "kq1xXNbLQ5mYtn8nqGJkzw", ID, 7)

    entry = codec().entry(ORDERS, position.offset)

    assert "A.orders" == entry.topic
    assert (3, 18, -1) == (entry.partition, entry.offset, entry.leader_epoch)
    assert (
        '{"v":1,"flow":"A->B","topic":"orders","cluster":"kq1xXNbLQ5mYtn8nqGJkzw",'
        '"id":"v3Lb1GqUQ5mYntn8nqGRzw","epoch":7}' == entry.metadata
    )


def test_what_is_not_known_is_not_in_the_stamp():
    """Of a position that a user has given, or of a broker without topic ids."""
    entry = codec().entry(ORDERS, {"offset": -1})

    assert 0 == entry.offset
    assert '{"v":1,"flow":"A->B","topic":"orders"}' == entry.metadata


def test_the_first_discovery_is_noted_under_the_flows_internal_topic():
    """It is committed in one transaction with the starts."""
    entry = codec().entry(FLOW.discovery, DISCOVERED)

    assert GroupEntry("mm2-offset-ranges.A.internal", 0, 0, entry.metadata) == entry
    assert '{"v":1,"flow":"A->B","discovered":true}' == entry.metadata
    assert (FLOW.discovery, DISCOVERED) == codec().source(entry)


@given(
    topic=st.text("abcxyz.-_", min_size=1, max_size=20),
    number=st.integers(0, 2**31 - 1),
    position=st.builds(
        Position,
        st.integers(0, 2**63 - 1),
        st.none() | st.text(min_size=1, max_size=30),
        st.none() | st.uuids(),
        st.none() | st.integers(0, 2**31 - 1),
    ),
    kind=st.sampled_from([PROPS, IDENTITY]),
)
def test_what_is_stored_is_read_again(
    topic: str, number: int, position: Position, kind: dict[str, str]
):
    """Also where a NUL was left behind the text."""
    partition = FLOW.partition(TopicPartition(topic, number))
    made = MirrorOffsetCodec(kind)

    entry = made.entry(partition, position.offset)

    assert made.place(partition) == entry.place
    assert (partition, position.offset) == made.source(entry)
    assert position == Position.of(position.offset)
    assert made.source(entry) == made.source(entry._replace(metadata=f"{entry.metadata}\0"))


@pytest.mark.parametrize(
    ("metadata", "writer"),
    [
        ("", "another program"),
        ("a consumer's own text", "another program"),
        ("[1]", "another program"),
        ('{"v":1}', "another program"),
        ('{"v":1,"flow":"C->B","topic":"orders"}', "the flow C->B"),
        (
            '{"v":2,"flow":"A->B","topic":"orders"}',
            "a headrace whose stamps have the version 2",
        ),
    ],
)
def test_entries_of_others_are_not_taken_for_ours(metadata: str, writer: str):
    """And a sentence can say whose they are."""
    assert codec().source(GroupEntry("A.orders", 3, 18, metadata)) is None
    assert writer == writer_of(metadata)


def test_an_entry_under_a_name_that_the_topic_does_not_have_now_is_not_ours():
    """The separator was another one when it was committed."""
    entry = codec(replication_policy_separator="-").entry(ORDERS, {"offset": 3})

    assert "A-orders" == entry.topic
    assert codec().source(entry) is None


def test_damaged_stamps_are_not_ours():
    """Someone has edited them."""
    stamp = {"v": 1, "flow": "A->B", "topic": "orders"}
    for change in ({"topic": 5}, {"partition": "x"}, {"id": "short"}, {"epoch": -2}):
        metadata = json.dumps({**stamp, **change})
        assert codec().source(GroupEntry("A.orders", 3, 18, metadata)) is None


def test_the_settings_of_the_codec_are_few_and_no_secrets():
    """They are logged, and travel to slots."""
    props = {**IDENTITY, "source.cluster.sasl.jaas.config": "secret", "replication.policy.x": "y"}

    assert {
        "source.cluster.alias": "A",
        "target.cluster.alias": "B",
        "replication.policy.class": IDENTITY["replication.policy.class"],
        "replication.policy.x": "y",
    } == MirrorOffsetCodec.settings(props)


@pytest.mark.parametrize(
    ("partition", "offset", "sentence"),
    [
        (
            {"topic": "t", "partition": 0},
            {"offset": 1},
            "Source partition {topic=t, partition=0} is missing the 'cluster' key, which is required",
        ),
        (
            {"cluster": "A", "topic": 7, "partition": 0},
            {"offset": 1},
            "has an invalid value 7 for the 'topic' key, which must be a string",
        ),
        (
            {"cluster": "A", "topic": "t", "partition": True},
            {"offset": 1},
            "has an invalid value true for the 'partition' key, which must be an integer",
        ),
        (
            {"cluster": "A", "topic": "t", "partition": -1},
            {"offset": 1},
            "has an invalid value -1 for the 'partition' key, which cannot be negative",
        ),
        (
            {"cluster": "C", "topic": "t", "partition": 0},
            {"offset": 1},
            "is of the cluster 'C', and this connector copies from 'A'",
        ),
        (
            {"cluster": "A", "topic": "t", "partition": 0, "x": 1},
            None,
            "has the key 'x', which means nothing here",
        ),
        (
            {"cluster": "A", "topic": "t", "partition": 0},
            {},
            "Source offset {} for source partition {cluster=A, topic=t, partition=0} is missing the 'offset' key",
        ),
        (
            {"cluster": "A", "topic": "t", "partition": 0},
            {"offset": "1"},
            "has an invalid value 1 for the 'offset' key, which must be an integer",
        ),
        (
            {"cluster": "A", "topic": "t", "partition": 0},
            {"offset": -2},
            "has an invalid value -2 for the 'offset' key, which cannot be less than -1",
        ),
        (
            {"cluster": "A", "topic": "t", "partition": 0},
            {"offset": 1, "flow": "A->B"},
            "has the key 'flow', which means nothing here",
        ),
        (
            {"cluster": "A", "topic": "t", "partition": 0},
            {"offset": 1, "topicId": "short"},
            "has an invalid value short for the 'topicId' key",
        ),
        (
            {"cluster": "A", "topic": "t", "partition": 0},
            {"offset": 1, "leaderEpoch": -1},
            "has an invalid value -1 for the 'leaderEpoch' key",
        ),
        ({"cluster": "A", "flow": "A->B"}, {"offset": 1}, "is {discovered=true}"),
    ],
)
def test_offsets_that_no_task_could_resume_from_are_refused(
    partition: dict[str, object], offset: SourceOffset | None, sentence: str
):
    """In MirrorMaker's words where it has some."""
    with pytest.raises(OffsetsError) as raised:
        check_offsets(FLOW, {SourcePartition(partition): offset})  # pyright: ignore[reportArgumentType]

    assert sentence in str(raised.value)


def test_offsets_that_users_give_are_accepted():
    """With and without what identifies the log, removals, and what GET shows."""
    check_offsets(
        FLOW,
        {
            ORDERS: {"offset": 17},
            FLOW.partition(TopicPartition("orders", 4)): Position(0, "c", ID, 0).offset,
            FLOW.partition(TopicPartition("orders", 5)): None,
            FLOW.discovery: DISCOVERED,
        },
    )


def test_offsets_that_the_source_does_not_have_are_refused_with_what_it_has():
    """As far as it is known; before the first record, and after the last, is in the log."""
    place, partitions = TopicPartition("orders", 1), {"orders": (0, 1)}
    for at in (0, 10):
        check_in_source({place: Position(at)}, partitions, {place: 10})
    check_in_source({place: Position(11)}, partitions, {})

    with pytest.raises(OffsetsError, match=r"offset 10 of orders-1 .* at most the offset 9\."):
        check_in_source({place: Position(11)}, partitions, {place: 10})
    with pytest.raises(OffsetsError, match="no partition orders-99: it has 2, numbered from 0"):
        check_in_source({place._replace(partition=99): Position(0)}, partitions, {})
    with pytest.raises(OffsetsError, match="no partition nope-1: it has no such topic"):
        check_in_source({place._replace(topic="nope"): Position(0)}, partitions, {})


def test_a_source_that_is_away_refuses_no_offset(monkeypatch: pytest.MonkeyPatch):
    """They may be given before it is there."""
    monkeypatch.setattr("headrace.mirror.source_connector._CHECK_SECONDS", 0.2)
    props = {**PROPS, "source.cluster.bootstrap.servers": "127.0.0.1:9"}
    offsets = {FLOW.partition(TopicPartition("orders", 1)): {"offset": 3}}

    MirrorSourceConnector().check_offsets({**props, "name": "m"}, offsets)
