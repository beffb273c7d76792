"""What each of the client's errors means for the one who catches ours."""

from __future__ import annotations

import pickle

import pytest
from confluent_kafka import KafkaError, KafkaException

from headrace.connect.errors import (
    FencedError,
    ReplanError,
    RetriableError,
    TaskFailedError,
    TransactionTimedOutError,
)
from headrace.kafka.errors import Context, translated

WRITING = Context(doing="writing to", topic="t", transactional_id="id", owner="task c-0")


def error(
    name: str, *, fatal: bool = False, retriable: bool = False, abort: bool = False
) -> KafkaError:
    """The client's error of that name."""
    code = getattr(KafkaError, name)
    return KafkaError(code, "reason", fatal, retriable, abort)


@pytest.mark.parametrize("name", ["_FENCED", "INVALID_PRODUCER_EPOCH", "PRODUCER_FENCED"])
def test_a_fenced_producer_has_a_newer_owner(name: str) -> None:
    """Without a transaction, or with one that is young enough, somebody else has taken over."""
    young = Context(transactional_id="id", open_seconds=59.9, timeout_seconds=60)

    assert type(translated(error(name, fatal=True), WRITING)) is FencedError
    assert type(translated(error(name, fatal=True), young)) is FencedError


@pytest.mark.parametrize("name", ["_FENCED", "INVALID_PRODUCER_EPOCH", "PRODUCER_FENCED"])
def test_an_old_transaction_has_timed_out(name: str) -> None:
    """The client cannot tell; the clock can, and the advice is Kafka Connect's."""
    old = Context(owner="task c-0", open_seconds=60.1, timeout_seconds=60)
    told = translated(error(name, fatal=True), old)

    assert isinstance(told, TransactionTimedOutError)
    assert str(told).startswith("The task c-0 was unable to finish writing records to Kafka before")


@pytest.mark.parametrize("was_away", [True, False])
@pytest.mark.parametrize("name", ["_FENCED", "_MSG_TIMED_OUT"])
def test_a_late_transaction_says_whether_the_broker_was_away(name: str, *, was_away: bool) -> None:
    """Then the next one may be faster; a record that waited for all its time tells of lateness, too."""
    old = Context(open_seconds=60.1, timeout_seconds=60, was_away=was_away)
    told = translated(error(name), old)

    assert isinstance(told, TransactionTimedOutError)
    assert (60.1, 60, was_away) == (told.open_seconds, told.timeout_seconds, told.in_outage)


@pytest.mark.parametrize(
    "name",
    [
        "_MSG_TIMED_OUT",
        "_TRANSPORT",
        "NOT_ENOUGH_REPLICAS",
        "_TIMED_OUT",
        "NOT_LEADER_FOR_PARTITION",
        "FENCED_LEADER_EPOCH",
        "UNKNOWN_LEADER_EPOCH",
        "PREFERRED_LEADER_NOT_AVAILABLE",
        "ELIGIBLE_LEADERS_NOT_AVAILABLE",
        "LISTENER_NOT_FOUND",
        "FETCH_SESSION_ID_NOT_FOUND",
        "INVALID_FETCH_SESSION_EPOCH",
        "_NOENT",
    ],
)
def test_what_may_pass_is_retriable(name: str) -> None:
    """A broker that is away is no reason to fail a task."""
    assert isinstance(translated(error(name), WRITING), RetriableError)


def test_an_abort_may_help() -> None:
    """What the client wants aborted may go well in the next transaction."""
    assert isinstance(translated(error("UNKNOWN", abort=True), WRITING), RetriableError)


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("TOPIC_AUTHORIZATION_FAILED", "Grant this client Write"),
        ("CLUSTER_AUTHORIZATION_FAILED", "Grant this client IdempotentWrite"),
        ("TOPIC_EXCEPTION", "letters, digits"),
        ("MSG_SIZE_TOO_LARGE", "max.request.size"),
        ("UNKNOWN_TOPIC_OR_PART", "Create the topic"),
        ("_UNKNOWN_TOPIC", "Create the topic"),
    ],
)
def test_what_no_retry_mends_says_what_to_do(name: str, advice: str) -> None:
    """Permanent errors fail the task, also where the client wants an abort first."""
    told = translated(KafkaException(error(name, abort=True)), WRITING)

    assert isinstance(told, TaskFailedError)
    assert advice in str(told)
    assert "'t'" in str(told)


def test_a_fatal_error_replaces_the_producer() -> None:
    """A producer that has lost its sequence cannot go on, but the task can."""
    told = translated(error("OUT_OF_ORDER_SEQUENCE_NUMBER", fatal=True), WRITING)

    assert type(told) is ReplanError


def test_errors_survive_pickling() -> None:
    """They travel from Spark's processes to the driver."""
    told = translated(error("_FENCED"), WRITING)

    assert str(told) == str(pickle.loads(pickle.dumps(told)))
