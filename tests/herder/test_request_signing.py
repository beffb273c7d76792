"""How workers sign their requests to each other, and when the leader makes another key."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.config.distributed_config import DistributedConfig
from headrace.herder.errors import (
    BadRequestError,
    ConflictError,
    ForbiddenError,
    NotFoundError,
    RequestError,
    ServerError,
    UnavailableError,
    error_of,
)
from headrace.herder.request_signing import (
    ALGORITHM_HEADER,
    SIGNATURE_HEADER,
    RequestSigning,
)
from headrace.storage.protocols import SessionKey

PROPS = {
    "group.id": "g",
    "key.converter": "string",
    "value.converter": "string",
    "offset.storage.topic": "o",
    "config.storage.topic": "c",
    "status.storage.topic": "s",
}
NOW = 10_000_000


def signing(**settings: str) -> RequestSigning:
    """As the settings say, whose keys begin with ``inter.worker.``."""
    given_ = {f"inter.worker.{key.replace('_', '.')}": value for key, value in settings.items()}
    return RequestSigning.of(DistributedConfig.parse({**PROPS, **given_}))


def key(algorithm: str = "HmacSHA256", *, size: int = 32, age_ms: int = 0) -> SessionKey:
    """One of that size and age."""
    return SessionKey(key=b"k" * size, algorithm=algorithm, created_ms=NOW - age_ms)


def test_a_body_is_signed_as_kafka_connect_signs_it() -> None:
    """Java has computed this signature."""
    made = SessionKey(key=b"key", algorithm="HmacSHA256", created_ms=0)

    assert {
        SIGNATURE_HEADER: "XV0TlWPJW1lnub2ajJsjOp3ttFByeUzSMtwbdIMmB9A=",
        ALGORITHM_HEADER: "HmacSHA256",
    } == signing().signed(b"", made)


@given(body=st.binary(), secret=st.binary(min_size=1), at=st.integers(min_value=0))
def test_what_was_signed_is_verified_and_nothing_else(body: bytes, secret: bytes, at: int) -> None:
    """Neither another body nor another key."""
    worker = signing(
        signature_algorithm="HmacSHA512", verification_algorithms="HmacSHA256,HmacSHA512"
    )
    made = SessionKey(key=secret, algorithm="A", created_ms=0)
    headers = worker.signed(body, made)
    signature, algorithm = headers[SIGNATURE_HEADER], headers[ALGORITHM_HEADER]

    worker.verify(body, signature, algorithm, made)
    cut = at % (len(body) + 1)
    changed = body[:cut] + b"x" + body[cut:]
    other = SessionKey(key=secret + b"x", algorithm="A", created_ms=0)
    for refused in ((changed, made), (body, other)):
        with pytest.raises(ForbiddenError, match="Internal request contained invalid signature"):
            worker.verify(refused[0], signature, algorithm, refused[1])


@given(
    who=st.text(st.characters(exclude_categories=["Cs"])),
    request=st.binary(),
    more=st.binary(min_size=1),
)
def test_who_asked_is_believed_of_that_request_alone(who: str, request: bytes, more: bytes) -> None:
    """Neither of another one, nor with another key, nor is another name."""
    worker, made = signing(), key()
    header = worker.told_requester(who, request, made)
    assert header is not None
    assert header.isascii()

    assert who == worker.believed_requester(header, request, made)
    other = SessionKey(key=made.key + b"x", algorithm="A", created_ms=0)
    refused = [(request + more, made), (request, other), (request, None)]
    assert [None] * 3 == [worker.believed_requester(header, *each) for each in refused]
    assert worker.believed_requester(f"x{header}", request, made) is None
    assert worker.told_requester(who, request, None) is None


@pytest.mark.parametrize("header", ["", "  ", "a", "a b", "a HmacSHA256 ", "a NoMac x", "a b c d"])
def test_what_tells_no_requester_is_not_believed(header: str) -> None:
    """Whatever clients send, no error comes of it."""
    assert signing().believed_requester(header, b"", key()) is None


def test_signatures_of_requests_and_of_who_asked_differ() -> None:
    """None of one kind can be used as one of the other."""
    worker, made = signing(), key()
    header = worker.told_requester("a", b"x", made)
    assert header is not None
    quoted, algorithm, signature = header.split(" ")
    with pytest.raises(ForbiddenError):
        worker.verify(b"a\nx", signature, algorithm, made)
    signed = worker.signed(b"a\nx", made)[SIGNATURE_HEADER]
    assert worker.believed_requester(f"{quoted} {algorithm} {signed}", b"x", made) is None
    sha512 = signing(
        signature_algorithm="HmacSHA512", verification_algorithms="HmacSHA256,HmacSHA512"
    )
    told = sha512.told_requester("a", b"x", made)
    assert told is not None
    assert worker.believed_requester(told, b"x", made) is None
    assert "a" == sha512.believed_requester(header, b"x", made)


def test_without_a_key_nothing_is_signed() -> None:
    """It has not been read yet."""
    with pytest.raises(UnavailableError, match="has not been able to read a session key"):
        signing().signed(b"", None)


@pytest.mark.parametrize(
    ("settings", "found", "is_needed"),
    [
        ({}, None, True),
        ({}, key(), False),
        ({}, key(age_ms=3_599_999), False),
        ({}, key(age_ms=3_600_000), True),
        ({}, key(age_ms=-5_000), False),
        ({"key_ttl_ms": "1000"}, key(age_ms=999), False),
        ({"key_ttl_ms": "1000"}, key(age_ms=1_000), True),
        ({"key_ttl_ms": "0"}, key(age_ms=NOW), False),
        ({"key_ttl_ms": "0"}, None, True),
        ({"key_ttl_ms": "0"}, key(size=31), True),
        ({}, key("HmacSHA512"), True),
        ({}, key(size=64), True),
        ({"key_size": "512"}, key(size=64), False),
        ({"key_size": "257"}, key(size=33), False),
        ({"key_generation_algorithm": "HmacSHA512"}, key("HmacSHA512", size=64), False),
        ({"key_generation_algorithm": "HmacSHA512"}, key("HmacSHA512", size=32), True),
    ],
)
def test_the_leader_makes_a_key_when_it_has_to(
    settings: dict[str, str], found: SessionKey | None, *, is_needed: bool
) -> None:
    """Where there is none, and where it is too old or not of the leader's own settings."""
    assert is_needed == signing(**settings).needs_new_key(found, now_ms=NOW)


@pytest.mark.parametrize(
    ("settings", "size"),
    [({}, 32), ({"key_size": "40"}, 5), ({"key_generation_algorithm": "HmacSHA384"}, 48)],
)
def test_a_new_key_is_of_the_settings(settings: dict[str, str], size: int) -> None:
    """So it is not replaced at once; it is random, and not shown."""
    worker = signing(**settings)
    made, other = worker.new_key(now_ms=NOW), worker.new_key(now_ms=NOW)

    assert (size, NOW) == (len(made.key), made.created_ms)
    assert made.key != other.key
    assert not worker.needs_new_key(made, now_ms=NOW)
    assert repr(made.key) not in repr(made)


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, BadRequestError),
        (401, BadRequestError),
        (403, ForbiddenError),
        (404, NotFoundError),
        (409, ConflictError),
        (500, ServerError),
        (502, ServerError),
        (503, UnavailableError),
    ],
)
def test_what_another_worker_answers_is_the_error_of_its_status(
    status: int, kind: type[RequestError]
) -> None:
    """Or of its kind, with its sentence."""
    error = error_of(status, "Connector c not found")

    assert (kind, "Connector c not found") == (type(error), str(error))
