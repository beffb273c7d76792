"""What a reader does about each error code of Kafka's protocol."""

from __future__ import annotations

import warnings

import pytest

from headrace.kafka.wire.error_codes import ErrorCode, Reaction, error_code

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    from kafka.errors import (
        BrokerResponseError,
        InvalidMetadataError,
        RetriableError,
        kafka_errors,
    )

CODES = {code: kind for code, kind in kafka_errors.items() if code}
# The producer's and the broker's own, and what Java's consumer raises, too.
NEVER_RETRIED = {"CORRUPT_MESSAGE", "ELECTION_NOT_NEEDED", "SHARE_SESSION_NOT_FOUND"}
NEVER_RETRIED |= {"INVALID_SHARE_SESSION_EPOCH"}


def found(code: int) -> ErrorCode:
    """The entry of a code of an error."""
    entry = error_code(code)
    assert entry is not None
    return entry


@pytest.mark.parametrize("code", CODES)
def test_every_code_is_known(code: int) -> None:
    """Under its own number."""
    assert code == found(code).code
    assert not found(code).name.startswith("UNKNOWN_ERROR_CODE")


@pytest.mark.parametrize(("code", "kind"), CODES.items())
def test_what_another_client_retries_is_retried(code: int, kind: type[BrokerResponseError]) -> None:
    """And where it asks for metadata first, ours does."""
    entry = found(code)
    if entry.name in NEVER_RETRIED:
        assert entry.reaction is Reaction.FAIL
    elif issubclass(kind, InvalidMetadataError):
        assert entry.reaction is Reaction.REFRESH_METADATA
    elif issubclass(kind, RetriableError):
        assert entry.reaction is not Reaction.FAIL


@pytest.mark.parametrize(
    ("code", "name", "reaction"),
    [
        (-1, "UNKNOWN_SERVER_ERROR", Reaction.RETRY),
        (1, "OFFSET_OUT_OF_RANGE", Reaction.OUT_OF_RANGE),
        (2, "CORRUPT_MESSAGE", Reaction.FAIL),
        (3, "UNKNOWN_TOPIC_OR_PARTITION", Reaction.REFRESH_METADATA),
        (6, "NOT_LEADER_OR_FOLLOWER", Reaction.REFRESH_METADATA),
        (14, "COORDINATOR_LOAD_IN_PROGRESS", Reaction.RETRY),
        (16, "NOT_COORDINATOR", Reaction.FIND_COORDINATOR),
        (56, "KAFKA_STORAGE_ERROR", Reaction.REFRESH_METADATA),
        (74, "FENCED_LEADER_EPOCH", Reaction.REFRESH_METADATA),
        (78, "OFFSET_NOT_AVAILABLE", Reaction.RETRY),
        (88, "UNSTABLE_OFFSET_COMMIT", Reaction.RETRY),
        (100, "UNKNOWN_TOPIC_ID", Reaction.REFRESH_METADATA),
        (103, "INCONSISTENT_TOPIC_ID", Reaction.REFRESH_METADATA),
    ],
)
def test_what_a_fetch_is_answered_with(code: int, name: str, reaction: Reaction) -> None:
    """As Java's consumer takes it."""
    assert (name, reaction) == (found(code).name, found(code).reaction)


@pytest.mark.parametrize("code", [17, 25, 29, 30, 35, 43, 58])
def test_a_user_is_told_what_to_do(code: int) -> None:
    """Where it is in a user's hands."""
    assert found(code).reaction is Reaction.FAIL
    assert found(code).advice.endswith(".")


def test_success_is_no_error() -> None:
    """Its code is 0."""
    assert error_code(0) is None


def test_a_code_of_a_newer_kafka_fails() -> None:
    """With its number in the name, rather than be taken for data or retried for ever."""
    entry = found(9_999)

    assert entry.reaction is Reaction.FAIL
    assert "9999" in entry.name
