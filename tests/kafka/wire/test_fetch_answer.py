"""Our reading of Fetch answers against kafka-python's."""

from __future__ import annotations

import warnings
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.kafka.wire.fetch_answer import VERSIONS, WITH_TOPIC_IDS, PartitionAnswer, fetch_answer

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    from kafka.protocol.consumer.fetch import FetchResponse

TOPIC = FetchResponse.FetchableTopicResponse
PARTITION = TOPIC.PartitionData
INT64 = st.integers(-(2**63), 2**63 - 1)
VERSION = st.integers(*VERSIONS)

aborted = st.builds(PARTITION.AbortedTransaction, producer_id=INT64, first_offset=INT64)
partitions = st.builds(
    PARTITION,
    partition_index=st.integers(0, 2**31 - 1),
    error_code=st.integers(-1, 133),
    high_watermark=INT64,
    last_stable_offset=INT64,
    log_start_offset=INT64,
    aborted_transactions=st.none() | st.lists(aborted, max_size=3),
    preferred_read_replica=st.integers(-1, 5),
    records=st.none() | st.binary(max_size=300),
)
topics = st.builds(
    TOPIC,
    topic=st.text("abc.", min_size=1, max_size=200),
    topic_id=st.uuids(),
    partitions=st.lists(partitions, max_size=3),
)
answers = st.builds(
    FetchResponse,
    throttle_time_ms=st.integers(0, 2**31 - 1),
    error_code=st.integers(-1, 133),
    session_id=st.just(0),
    responses=st.lists(topics, max_size=3),
    node_endpoints=st.lists(
        st.builds(
            FetchResponse.NodeEndpoint,
            node_id=st.integers(0, 9),
            host=st.text("ab", min_size=1),
            port=st.integers(1, 65_535),
            rack=st.none() | st.text("ab"),
        ),
        max_size=2,
    ),
)


def _ours(answer: FetchResponse, version: int) -> list[PartitionAnswer]:
    """What kafka-python's class says, in our words."""
    return [
        PartitionAnswer(
            topic.topic_id or UUID(int=0) if version >= WITH_TOPIC_IDS else topic.topic,
            each.partition_index,
            each.error_code,
            each.high_watermark,
            each.last_stable_offset,
            each.log_start_offset if version >= 5 else -1,
            [(one.producer_id, one.first_offset) for one in each.aborted_transactions or ()],
            each.preferred_read_replica if version >= 11 else -1,
            memoryview(each.records or b""),
        )
        for topic in answer.responses
        for each in topic.partitions
    ]


@given(answer=answers, version=VERSION)
def test_it_is_read_as_kafka_python_reads_it(answer: FetchResponse, version: int) -> None:
    """In each version that we ask for."""
    encoded = bytes(answer.encode(version=version))
    expected = FetchResponse.decode(encoded, version=version)
    found = fetch_answer(memoryview(encoded), version)

    assert expected.throttle_time_ms == found.throttle_ms
    assert (expected.error_code if version >= 7 else 0) == found.error_code
    assert _ours(expected, version) == found.partitions


@given(answer=answers, version=VERSION, share=st.floats(0, 1, exclude_max=True))
def test_a_short_answer_is_no_answer(answer: FetchResponse, version: int, share: float) -> None:
    """However much of it is there: never one with fewer partitions."""
    encoded = bytes(answer.encode(version=version))

    with pytest.raises(ConnectionError):
        fetch_answer(memoryview(encoded)[: int(share * len(encoded))], version)


@pytest.mark.parametrize("version", range(VERSIONS[0], VERSIONS[1] + 1))
def test_record_batches_are_not_copied(version: int) -> None:
    """What is handed out lies in the buffer that was received into."""
    one = PARTITION(
        partition_index=0,
        error_code=0,
        high_watermark=1,
        last_stable_offset=1,
        log_start_offset=0,
        aborted_transactions=[],
        preferred_read_replica=-1,
        records=b"record batches",
    )
    answer = FetchResponse(responses=[TOPIC(topic="t", topic_id=UUID(int=1), partitions=[one])])
    buffer = bytearray(answer.encode(version=version))
    records = fetch_answer(memoryview(buffer), version).partitions[0].records
    buffer[buffer.index(b"record")] = ord("R")

    assert b"Record batches" == bytes(records)
