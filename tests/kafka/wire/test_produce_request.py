"""Produce requests and answers, compared with those of another library's classes."""

from __future__ import annotations

import warnings
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.kafka.wire.produce_request import (
    JOINING_VERSIONS,
    VERSIONS,
    ProduceResult,
    RefusedRecord,
    produce_answer,
    produce_body,
)

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    from kafka.protocol.producer.produce import ProduceRequest, ProduceResponse

ALL = range(VERSIONS[0], JOINING_VERSIONS[1] + 1)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=200)
PIECES = st.lists(st.binary(min_size=1, max_size=300), min_size=1, max_size=3)
BATCHES = st.dictionaries(
    TEXTS,
    st.dictionaries(st.integers(0, 2**31 - 1), PIECES, min_size=1, max_size=3),
    min_size=1,
    max_size=3,
)


def theirs(
    batches: dict[str, dict[int, list[bytes]]],
    version: int,
    transactional_id: str | None,
    timeout_ms: int,
) -> bytes:
    """The bytes of the other library's request."""
    topic_class = ProduceRequest.TopicProduceData
    topics = [
        topic_class(
            name=topic,
            partition_data=[
                topic_class.PartitionProduceData(index=number, records=b"".join(pieces))
                for number, pieces in partitions.items()
            ],
        )
        for topic, partitions in batches.items()
    ]
    request = ProduceRequest(
        transactional_id=transactional_id, acks=-1, timeout_ms=timeout_ms, topic_data=topics
    )
    return bytes(request.encode(version=version))


@pytest.mark.parametrize("version", ALL)
@given(batches=BATCHES, transactional_id=st.none() | TEXTS, timeout_ms=st.integers(0, 2**31 - 1))
def test_the_bytes_are_those_of_another_encoder(
    version: int,
    batches: dict[str, dict[int, list[bytes]]],
    transactional_id: str | None,
    timeout_ms: int,
) -> None:
    """In every version."""
    ours = produce_body(
        {topic: list(partitions.items()) for topic, partitions in batches.items()},
        version=version,
        transactional_id=transactional_id,
        timeout_ms=timeout_ms,
    )

    assert theirs(batches, version, transactional_id, timeout_ms) == b"".join(ours)


def test_long_pieces_are_not_copied() -> None:
    """Only what is between them is."""
    records = [memoryview(bytes(10_000)), memoryview(bytes(20_000))]
    pieces = produce_body(
        {"t": [(number, [b"header", each]) for number, each in enumerate(records)]},
        version=9,
        transactional_id=None,
        timeout_ms=1,
    )

    assert records == [each for each in pieces if len(each) >= 10_000]
    assert all(mine is theirs for mine, theirs in zip(pieces[1::2], records, strict=True))


def test_short_pieces_are_gathered() -> None:
    """The system takes only so many at a time."""
    batches = {
        f"t{topic}": [(each, [b"header", b"records"]) for each in range(500)] for topic in (0, 1)
    }

    assert 1 == len(produce_body(batches, version=9, transactional_id=None, timeout_ms=1))


RESULTS = st.builds(
    dict,
    index=st.integers(0, 2**31 - 1),
    error_code=st.integers(-1, 133),
    base_offset=st.integers(-1, 2**63 - 1),
    log_append_time_ms=st.integers(-1, 2**63 - 1),
    log_start_offset=st.integers(-1, 2**63 - 1),
    record_errors=st.lists(st.tuples(st.integers(0, 2**31 - 1), st.none() | TEXTS), max_size=2),
    error_message=st.none() | TEXTS,
    current_leader=st.none() | st.tuples(st.integers(0, 9), st.integers(0, 9)),
)


@pytest.mark.parametrize("version", ALL)
@given(topics=st.dictionaries(TEXTS, st.lists(RESULTS, min_size=1, max_size=3), max_size=3))
def test_answers_are_read_as_another_decoder_does(
    version: int, topics: dict[str, list[dict[str, Any]]]
) -> None:
    """In every version, with fields that nobody needs."""
    answer = _answer(topics)
    read = produce_answer(memoryview(bytes(answer.encode(version=version))), version)
    expected = [
        ProduceResult(
            topic,
            each["index"],
            each["error_code"],
            each["base_offset"],
            each["log_append_time_ms"],
            (each["error_message"] or "") if version >= 8 else "",
            [RefusedRecord(row, message or "") for row, message in each["record_errors"]]
            if version >= 8
            else [],
        )
        for topic, results in topics.items()
        for each in results
    ]

    assert (5, expected) == (
        read.throttle_ms,
        [each._replace(refused=list(each.refused)) for each in read.results],
    )


def _answer(topics: dict[str, list[dict[str, Any]]]) -> Any:  # noqa: ANN401 (the library has no common type)
    topic_class = ProduceResponse.TopicProduceResponse
    return ProduceResponse(
        throttle_time_ms=5,
        responses=[
            topic_class(name=topic, partition_responses=[_partition(each) for each in results])
            for topic, results in topics.items()
        ],
    )


def _partition(result: dict[str, Any]) -> Any:  # noqa: ANN401 (the library has no common type)
    kind = ProduceResponse.TopicProduceResponse.PartitionProduceResponse
    fields = {name: each for name, each in result.items() if name != "current_leader"}
    fields["record_errors"] = [
        kind.BatchIndexAndErrorMessage(batch_index=row, batch_index_error_message=message)
        for row, message in result["record_errors"]
    ]
    if result["current_leader"]:
        node, epoch = result["current_leader"]
        fields["current_leader"] = kind.LeaderIdAndEpoch(leader_id=node, leader_epoch=epoch)
    return kind(**fields)


@given(cut=st.integers(0, 60))
def test_an_answer_that_is_cut_off_is_no_answer(cut: int) -> None:
    """It says so instead of giving a part."""
    topics = {"topic": [_result(0), _result(1)]}
    whole = bytes(_answer(topics).encode(version=9))

    with pytest.raises(ConnectionError, match="Produce"):
        produce_answer(memoryview(whole[: min(cut, len(whole) - 1)]), 9)


def _result(index: int) -> dict[str, Any]:
    return {
        "index": index,
        "error_code": 0,
        "base_offset": 7,
        "log_append_time_ms": -1,
        "log_start_offset": 0,
        "record_errors": [],
        "error_message": None,
        "current_leader": None,
    }


def test_results_are_read_in_order() -> None:
    """Of all topics."""
    topics = {"b": [_result(3), _result(1)], "a": [_result(2)]}
    read = produce_answer(memoryview(bytes(_answer(topics).encode(version=11))), 11)

    assert [("b", 3), ("b", 1), ("a", 2)] == [(each.topic, each.partition) for each in read.results]
    assert [()] * 3 == [each.refused for each in read.results]
