"""What is stored of a discovery: our JSON and bytes, and what Flink has written."""

from __future__ import annotations

import json
import zlib
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discovery.cluster_double import ClusterDouble, Log, Source
from headrace.connect.errors import TaskFailedError
from headrace.discovery.offsets_initializer import LatestOffsets
from headrace.discovery.state import (
    VERSION,
    EnumeratorState,
    Kind,
    PartitionState,
    Status,
)
from headrace.discovery.state_serializer import from_bytes, to_bytes
from headrace.discovery.subscribers import TopicListSubscriber
from headrace.kafka.topic_partition import TopicPartition
from project.sampling import drawn

A0, A1 = TopicPartition("t1", 0), TopicPartition("t1", 1)
ASSIGNED, UNASSIGNED = PartitionState(Status.ASSIGNED), PartitionState(Status.UNASSIGNED)
SPLIT_0 = "00027431 00000000 fffffffffffffffe 8000000000000000"
SPLIT_1 = "00027431 00000001 000000000000002a 8000000000000000"
V3 = f"00000002 00000000  00000018 {SPLIT_0} 00000000  00000018 {SPLIT_1} 00000001  01"
V2 = "00000002  00027431 00000000 00000000  00027431 00000001 00000001  01"
V1 = "00000002  00027431 00000000  00027431 00000001"
V0 = f"00000002 00000000  00000007 00000001 00000018 {SPLIT_1}  00000009 00000000"

OFFSETS = st.none() | st.integers(0, 2**62)
NAMES = st.sampled_from(["t", "a.b_c-d", "orders", "Z"])
UNRESOLVED = st.builds(
    PartitionState,
    st.sampled_from([Status.UNASSIGNED, Status.REMOVED]),
    start=st.none(),
    stop=st.none(),
    position=st.none(),
    kind=st.sampled_from(Kind),
    expects_zero=st.just(False),
)
FROM_ZERO = UNRESOLVED.map(lambda one: one._replace(kind=Kind.NEW, expects_zero=True))
RESOLVED = st.builds(
    PartitionState,
    st.sampled_from(Status),
    OFFSETS,
    OFFSETS,
    OFFSETS,
    kind=st.none(),
    expects_zero=st.just(False),
)
STATES = st.builds(
    EnumeratorState,
    partitions=st.dictionaries(
        st.builds(TopicPartition, NAMES, st.integers(0, 2**31 - 1)),
        UNRESOLVED | FROM_ZERO | RESOLVED,
    ),
    initial_discovery_finished=st.booleans(),
)


def restored(version: int, text: str) -> EnumeratorState:
    """From bytes in hexadecimal."""
    return from_bytes(version, bytes.fromhex(text))


def test_flinks_version_3_keeps_what_was_resolved():
    """What was assigned as "the earliest" is where its reader is, which is not in there."""
    state = restored(3, V3)

    assert {A0: ASSIGNED, A1: UNASSIGNED._replace(start=42)} == state.partitions
    assert state.initial_discovery_finished


def test_e63_flinks_version_2_has_an_unassigned_partition_resolved_again():
    """By the user's initializer: it was found by the first discovery."""
    state = restored(2, V2)
    cluster = ClusterDouble()
    cluster.create("t1", Log(0, 9), Log(0, 70))
    source = Source(cluster, TopicListSubscriber(("t1",)), LatestOffsets())
    source.restart(state)

    assert {A0: ASSIGNED, A1: UNASSIGNED._replace(kind=Kind.INITIAL)} == state.partitions
    assert state.initial_discovery_finished
    assert {A1: 70} == source.found()


def test_a_partition_that_flink_has_left_at_the_earliest_offset_may_begin_anywhere():
    """It may be an initial one: that its first records were deleted before is no loss, also beside an assigned one."""
    found, known = f"00000018 {SPLIT_0} 00000001", f"00000018 {SPLIT_1} 00000000"
    state = restored(3, f"00000002 00000000 {found} {known} 01")
    cluster = ClusterDouble()
    cluster.create("t1", Log(20, 50), Log(20, 50))
    source = Source(cluster, TopicListSubscriber(("t1",)))
    source.restart(state)

    assert UNASSIGNED._replace(kind=Kind.NEW) == state.partitions[A0]
    assert 20 == source.found()[A0]


def test_e62_flinks_versions_0_and_1_have_assigned_partitions_only_and_a_first_discovery():
    """The first keeps offsets, the second has none."""
    assert {A0: ASSIGNED, A1: ASSIGNED} == restored(1, V1).partitions
    assert {A1: ASSIGNED._replace(start=42)} == restored(0, V0).partitions
    assert all(restored(*one).initial_discovery_finished for one in ((1, V1), (0, V0)))


def test_flinks_empty_state_says_whether_there_was_a_discovery():
    """Which found nothing."""
    assert EnumeratorState() == restored(3, "00000000 00000000 00")
    assert EnumeratorState(initial_discovery_finished=True) == restored(3, "00000000 00000000 01")


@pytest.mark.parametrize(
    ("version", "text", "reason"),
    [
        (4, V3, "its version is 4"),
        (1001, "", "its version is 1001"),
        (3, f"{V3} 00", "1 bytes are left over"),
        (2, f"{V2} 0000", "2 bytes are left over"),
        (1, f"{V1} 00", "1 bytes are left over"),
        (2, V2[:-3], "end too early"),
        (3, V3[:30], "end too early"),
        (2, V2.replace("00000001  01", "00000002  01"), "status 2"),
        (3, V3.replace("00000000  00000018", "00000007  00000018", 1), "splits are of version 7"),
        (3, V3.replace("00000018", "00000019", 1), "left over behind the split|end too early"),
        (3, V3.replace("8000000000000000", "fffffffffffffffd", 1), "t1-0 stops at -3"),
    ],
)
def test_bytes_that_are_not_known_are_refused_with_a_sentence(version: int, text: str, reason: str):
    """A newer version, bytes that are left over or missing, an unknown status."""
    with pytest.raises(TaskFailedError, match=reason):
        restored(version, text)


@settings(max_examples=drawn(100))
@given(state=STATES, ids=st.dictionaries(NAMES, st.uuids()))
def test_a_state_is_read_as_it_was_written(state: EnumeratorState, ids: dict[str, UUID]):
    """As JSON and as bytes; ids of topics without partitions are not kept."""
    topics = {place.topic for place in state.partitions}
    whole = EnumeratorState(
        partitions=state.partitions,
        topic_ids={topic: ids[topic] for topic in topics & ids.keys()},
        initial_discovery_finished=state.initial_discovery_finished,
    )

    assert whole == EnumeratorState.from_json(whole.to_json())
    assert whole == from_bytes(VERSION, to_bytes(whole))


@settings(max_examples=drawn(50))
@given(state=STATES, chance=st.randoms())
def test_equal_states_are_equal_text(state: EnumeratorState, chance: object):
    """Spark compares offsets by their text: one that has not moved must not look like new data."""
    entries = sorted(state.partitions.items(), reverse=True)
    turned = EnumeratorState(
        partitions=dict(entries), initial_discovery_finished=state.initial_discovery_finished
    )

    assert state.to_json() == turned.to_json()


def test_the_json_is_as_it_is_documented():
    """Numbers in order, and not of their texts; nothing empty."""
    state = EnumeratorState(
        partitions={
            TopicPartition("orders", 10): ASSIGNED._replace(start=0, position=7),
            TopicPartition("orders", 9): ASSIGNED._replace(position=120, stop=130),
            TopicPartition("orders", 2): UNASSIGNED._replace(kind=Kind.INITIAL),
            TopicPartition("orders", 3): PartitionState(Status.REMOVED, position=55),
            TopicPartition("orders", 11): UNASSIGNED._replace(kind=Kind.NEW, expects_zero=True),
        },
        topic_ids={"orders": UUID(int=1)},
        initial_discovery_finished=True,
    )

    assert (
        '{"version":1000,"initial_discovery_finished":true,"topics":{"orders":{'
        '"id":"AAAAAAAAAAAAAAAAAAAAAQ",'
        '"assigned":{"9":120,"10":7},"unassigned":{"2":null,"11":null},"removed":{"3":55},'
        '"initial":[2],"new":[11],"from_zero":[11],"start":{"10":0},"stop":{"9":130}}}}'
    ) == state.to_json()


@pytest.mark.parametrize(
    "change",
    [
        {"version": 1001},
        {"version": None},
        {"topics": {"t": {"lost": {"0": 1}}}},
        {"topics": {"t": {"assigned": {"0": "1"}}}},
        {"topics": {"t": {"assigned": {"x": 1}}}},
        {"topics": {"t": {"assigned": {"0": -2}}}},
        {"topics": {"t": {"assigned": {"0": 1}, "removed": {"0": 1}}}},
        {"topics": {"t": {"assigned": {"0": 1}, "initial": [1]}}},
        {"topics": {"t": {"assigned": {"0": 1}, "start": {"1": 1}}}},
        {"topics": {"t": {"unassigned": {"0": None}, "initial": [0], "from_zero": [0]}}},
        {"topics": {"t": {"id": "short"}}},
        {"topics": []},
        {"initial_discovery_finished": 1},
    ],
)
def test_json_that_is_not_a_state_is_refused_with_a_sentence(change: dict[str, object]):
    """Never taken for an empty one."""
    whole = {"version": VERSION, "initial_discovery_finished": True, "topics": {}, **change}

    with pytest.raises(TaskFailedError, match="stored state of the partition discovery"):
        EnumeratorState.from_json(json.dumps(whole))


@pytest.mark.parametrize("text", ["", "[]", "{}", "null", '{"version":1000}', "{"])
def test_text_that_is_not_a_state_is_refused_with_a_sentence(text: str):
    """Never taken for an empty one."""
    with pytest.raises(TaskFailedError, match="stored state of the partition discovery"):
        EnumeratorState.from_json(text)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (to_bytes(EnumeratorState()) + b"x", "1 bytes are left over"),
        (to_bytes(EnumeratorState())[:-1], "end too early"),
        (b"xx", "damaged"),
        (zlib.compress(b"\xff"), "damaged"),
    ],
)
def test_our_own_bytes_are_read_to_their_end_and_no_further(data: bytes, reason: str):
    """As Flink's."""
    with pytest.raises(TaskFailedError, match=reason):
        from_bytes(VERSION, data)
