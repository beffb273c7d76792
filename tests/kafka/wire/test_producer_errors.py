"""What a producer does about each error code of Kafka's protocol, at each step."""

from __future__ import annotations

import pickle
import warnings

import pytest

from headrace.kafka.topic_partition import TopicPartition
from headrace.kafka.wire.error_codes import named
from headrace.kafka.wire.producer_errors import (
    BatchRefusedError,
    ProducerReaction,
    Step,
    advice,
    error_name,
    reaction,
    severest,
)

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    from kafka.errors import RetriableError, kafka_errors

CODES = {code: kind for code, kind in kafka_errors.items() if code}
IN_TRANSACTION = (
    Step.ADD_PARTITIONS,
    Step.PRODUCE,
    Step.ADD_OFFSETS,
    Step.COMMIT_OFFSETS,
    Step.END,
)
REPEATED = (ProducerReaction.RETRY, ProducerReaction.REFRESH, ProducerReaction.MISSING)
# Retriable for Java's clients, but not by the same request: see the reasons at the reactions.
NEVER_REPEATED = {
    "CORRUPT_MESSAGE",
    "ELECTION_NOT_NEEDED",
    "SHARE_SESSION_NOT_FOUND",
    "INVALID_SHARE_SESSION_EPOCH",
}


def code_of(name: str) -> int:
    """Its number."""
    return named(name).code


@pytest.mark.parametrize("step", Step)
def test_every_code_has_a_reaction_at_every_step(step: Step) -> None:
    """Those of another client's table are all that there are."""
    for code in CODES:
        assert isinstance(reaction(step, code), ProducerReaction)
        assert isinstance(reaction(step, code, outlived=True), ProducerReaction)


@pytest.mark.parametrize("step", Step)
def test_what_another_client_retries_is_repeated(step: Step) -> None:
    """By the same request, which the broker has answered."""
    for code, kind in CODES.items():
        if issubclass(kind, RetriableError) and error_name(code) not in NEVER_REPEATED:
            assert reaction(step, code) in REPEATED, error_name(code)


@pytest.mark.parametrize("step", Step)
def test_what_another_client_does_not_retry_is_not_repeated(step: Step) -> None:
    """But where the table says why."""
    repeated = {
        error_name(code)
        for code, kind in CODES.items()
        if not issubclass(kind, RetriableError) and reaction(step, code) in REPEATED
    }

    assert repeated <= {
        Step.TAKE: {"INVALID_PRODUCER_EPOCH", "PRODUCER_FENCED"},
        Step.FIND_COORDINATOR: {"UNKNOWN_SERVER_ERROR"},
        Step.ADD_PARTITIONS: {"OPERATION_NOT_ATTEMPTED"},
    }.get(step, set[str]()) | {"BROKER_NOT_AVAILABLE"}


@pytest.mark.parametrize("step", IN_TRANSACTION)
@pytest.mark.parametrize("name", ["INVALID_PRODUCER_EPOCH", "PRODUCER_FENCED"])
def test_a_newer_producer_is_told_from_a_transaction_that_was_too_long(
    step: Step, name: str
) -> None:
    """By the time that it has been open: the broker says the same of both."""
    code = code_of(name)

    assert ProducerReaction.FENCED is reaction(step, code)
    assert ProducerReaction.TIMED_OUT is reaction(step, code, outlived=True)


def test_whoever_takes_an_id_is_not_fenced() -> None:
    """Another one takes it at the same moment; but its own id and epoch prove that it was taken."""
    code = code_of("PRODUCER_FENCED")

    assert ProducerReaction.RETRY is reaction(Step.TAKE, code)
    assert ProducerReaction.FENCED is reaction(Step.RENEW, code)


@pytest.mark.parametrize(
    ("step", "name", "expected"),
    [
        (Step.PRODUCE, "NOT_LEADER_OR_FOLLOWER", ProducerReaction.REFRESH),
        (Step.PRODUCE, "NOT_ENOUGH_REPLICAS_AFTER_APPEND", ProducerReaction.RETRY),
        (Step.PRODUCE, "REQUEST_TIMED_OUT", ProducerReaction.RETRY),
        (Step.PRODUCE, "CONCURRENT_TRANSACTIONS", ProducerReaction.RETRY),
        (Step.PRODUCE, "UNKNOWN_TOPIC_OR_PARTITION", ProducerReaction.MISSING),
        (Step.PRODUCE, "DUPLICATE_SEQUENCE_NUMBER", ProducerReaction.ACCEPTED),
        (Step.PRODUCE, "OUT_OF_ORDER_SEQUENCE_NUMBER", ProducerReaction.OUT_OF_ORDER),
        (Step.PRODUCE, "UNKNOWN_PRODUCER_ID", ProducerReaction.ABORT),
        (Step.PRODUCE, "MESSAGE_TOO_LARGE", ProducerReaction.REFUSED),
        (Step.PRODUCE, "INVALID_TIMESTAMP", ProducerReaction.REFUSED),
        (Step.PRODUCE, "INVALID_RECORD", ProducerReaction.REFUSED),
        (Step.PRODUCE, "UNKNOWN_SERVER_ERROR", ProducerReaction.FAIL),
        (Step.PRODUCE, "TOPIC_AUTHORIZATION_FAILED", ProducerReaction.FAIL),
        (Step.PRODUCE, "INVALID_TXN_STATE", ProducerReaction.DOUBTFUL),
        (Step.PRODUCE, "TRANSACTION_ABORTABLE", ProducerReaction.ABORT),
        (Step.COMMIT_OFFSETS, "NOT_COORDINATOR", ProducerReaction.REFRESH),
        (Step.COMMIT_OFFSETS, "UNKNOWN_TOPIC_OR_PARTITION", ProducerReaction.MISSING),
        (Step.COMMIT_OFFSETS, "OFFSET_METADATA_TOO_LARGE", ProducerReaction.FAIL),
        (Step.ADD_PARTITIONS, "CONCURRENT_TRANSACTIONS", ProducerReaction.RETRY),
        (Step.ADD_PARTITIONS, "OPERATION_NOT_ATTEMPTED", ProducerReaction.RETRY),
        (Step.END, "COORDINATOR_NOT_AVAILABLE", ProducerReaction.REFRESH),
        (Step.END, "UNKNOWN_SERVER_ERROR", ProducerReaction.DOUBTFUL),
        (Step.END, "TRANSACTION_ABORTABLE", ProducerReaction.DOUBTFUL),
        (Step.END, "INVALID_PRODUCER_ID_MAPPING", ProducerReaction.DOUBTFUL),
        (Step.TAKE, "CONCURRENT_TRANSACTIONS", ProducerReaction.RETRY),
        (Step.TAKE, "INVALID_TRANSACTION_TIMEOUT", ProducerReaction.FAIL),
        (Step.RENEW, "INVALID_PRODUCER_ID_MAPPING", ProducerReaction.FENCED),
        (Step.FIND_COORDINATOR, "TRANSACTIONAL_ID_AUTHORIZATION_FAILED", ProducerReaction.FAIL),
    ],
)
def test_what_brokers_answer_with(step: Step, name: str, expected: ProducerReaction) -> None:
    """And what is done then."""
    assert expected is reaction(step, code_of(name))


def test_the_severest_of_many_codes_counts() -> None:
    """Because of it, others may not have been tried."""
    codes = [0, code_of("OPERATION_NOT_ATTEMPTED"), code_of("TOPIC_AUTHORIZATION_FAILED")]

    assert code_of("TOPIC_AUTHORIZATION_FAILED") == severest(Step.ADD_PARTITIONS, codes)
    assert severest(Step.ADD_PARTITIONS, [0, 0]) is None


def test_success_has_no_reaction() -> None:
    """Whoever asks has not looked."""
    with pytest.raises(ValueError, match="success"):
        reaction(Step.PRODUCE, 0)


def test_a_code_of_a_newer_kafka_fails() -> None:
    """With its number."""
    assert ProducerReaction.FAIL is reaction(Step.PRODUCE, 9_999)
    assert "9999" in error_name(9_999)
    assert advice(Step.PRODUCE, 9_999)


@pytest.mark.parametrize(
    ("step", "name", "part"),
    [
        (Step.PRODUCE, "TOPIC_AUTHORIZATION_FAILED", "Write"),
        (Step.PRODUCE, "MESSAGE_TOO_LARGE", "max.message.bytes"),
        (Step.PRODUCE, "UNKNOWN_TOPIC_OR_PARTITION", "Create the topic"),
        (Step.PRODUCE, "UNKNOWN_SERVER_ERROR", "log"),
        (Step.COMMIT_OFFSETS, "UNKNOWN_TOPIC_OR_PARTITION", "must exist"),
        (Step.COMMIT_OFFSETS, "TOPIC_AUTHORIZATION_FAILED", "Read on the topic"),
        (Step.COMMIT_OFFSETS, "GROUP_AUTHORIZATION_FAILED", "group"),
        (Step.COMMIT_OFFSETS, "OFFSET_METADATA_TOO_LARGE", "offset.metadata.max.bytes"),
        (Step.TAKE, "TRANSACTIONAL_ID_AUTHORIZATION_FAILED", "transactional ids"),
        (Step.TAKE, "CLUSTER_AUTHORIZATION_FAILED", "IdempotentWrite"),
        (Step.TAKE, "INVALID_TRANSACTION_TIMEOUT", "transaction.max.timeout.ms"),
    ],
)
def test_a_user_is_told_what_to_do(step: Step, name: str, part: str) -> None:
    """In a sentence."""
    found = advice(step, code_of(name))

    assert part in found
    assert found.endswith(".")


def test_a_refused_batch_is_told_with_its_place() -> None:
    """Also in another process."""
    error = BatchRefusedError(
        TopicPartition("t", 3),
        17,
        error="INVALID_RECORD",
        advice="A compacted topic needs keys.",
        detail="One or more records have been rejected.",
        rows=[2],
    )
    there: BatchRefusedError = pickle.loads(pickle.dumps(error))

    assert str(error) == str(there)
    assert (TopicPartition("t", 3), 17, (2,)) == (there.place, there.number, there.rows)
    assert "t-3: INVALID_RECORD: One or more" in str(there)
