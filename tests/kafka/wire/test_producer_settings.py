"""What a producer's settings mean to one of our own."""

from __future__ import annotations

import pytest

from headrace.connect.errors import ConfigError
from headrace.kafka.client_config import producer_config
from headrace.kafka.wire.producer_settings import ProducerWireSettings, producer_wire_settings


def settings(*, transactional: bool = False, **given: str) -> ProducerWireSettings:
    """Those of a producer's configuration, in Java's names with underscores."""
    properties = {key.replace("_", "."): value for key, value in given.items()}
    return producer_wire_settings(
        producer_config(properties, transactional_id="id" if transactional else None).settings
    )


def test_defaults_are_those_of_our_other_producer() -> None:
    """Records are waited for without end, or as long as a transaction may last."""
    assert ProducerWireSettings() == settings()
    assert 60.0 == settings(transactional=True).delivery_seconds


def test_java_names_are_read() -> None:
    """In their units."""
    found = settings(
        max_request_size="2000000",
        request_timeout_ms="7000",
        delivery_timeout_ms="9000",
        buffer_memory="4194304",
        transaction_timeout_ms="15000",
        transactional=True,
    )

    assert (
        ProducerWireSettings(
            max_request_bytes=2_000_000,
            request_seconds=7.0,
            delivery_seconds=9.0,
            buffer_bytes=4_194_304,
            transaction_ms=15_000,
        )
        == found
    )


@pytest.mark.parametrize(("given", "expected"), [("1", 1), ("2", 2), ("5", 3)])
def test_requests_in_flight_are_bounded(given: str, expected: int) -> None:
    """By the user's number, or ours."""
    assert expected == settings(max_in_flight_requests_per_connection=given).most_in_flight


def test_a_number_that_is_none_is_told_by_its_java_name() -> None:
    """With what was given."""
    with pytest.raises(ConfigError, match=r"request\.timeout\.ms.*'soon'"):
        settings(request_timeout_ms="soon")
